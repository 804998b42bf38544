"""The `[prices]` table: what a model asks for a million tokens, and what that makes of what was used."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated

from pydantic import Field, TypeAdapter, WrapValidator

from rag_pipeline.settings.sections import Embedding, Section

Usd = Annotated[float, Field(ge=0)]


class TokenPrices(Section):
    """What a language model asks for a million tokens, in USD."""

    input: Usd
    """Of what it reads."""
    output: Usd
    """Of what it writes, thoughts included."""


_NUMBER = TypeAdapter[float](Usd)


def _read_price(value: object, _: object) -> float | TokenPrices:
    """One kind or the other, so that a wrong value is complained of once."""
    return TokenPrices.model_validate(value) if isinstance(value, dict) else _NUMBER.validate_python(value)


Price = Annotated[Usd | TokenPrices, WrapValidator(_read_price)]
"""USD per million tokens; one number for a model that asks the same for all (as embedding models do)."""


def _of_text(input: float, output: float) -> TokenPrices:  # noqa: A002 # as in the file
    return TokenPrices(input=input, output=output)


DEFAULT_PRICES: Mapping[str, Price] = {
    "all-MiniLM-L6-v2": 0.0,
    "all-MiniLM-L6-v2-int8": 0.0,
    "text-embedding-3-small": 0.02,
    "text-embedding-3-large": 0.13,
    "text-embedding-ada-002": 0.10,
    "gpt-4o": _of_text(2.50, 10.0),
    "gpt-4o-mini": _of_text(0.15, 0.60),
    "gpt-4.1": _of_text(2.0, 8.0),
    "gpt-4.1-mini": _of_text(0.40, 1.60),
    "gpt-4.1-nano": _of_text(0.10, 0.40),
    "gpt-5": _of_text(1.25, 10.0),
    "gpt-5-mini": _of_text(0.25, 2.0),
    "gpt-5-nano": _of_text(0.05, 0.40),
    "claude-sonnet-4-5": _of_text(3.0, 15.0),
    "claude-haiku-4-5": _of_text(1.0, 5.0),
    "claude-opus-4-5": _of_text(5.0, 25.0),
}
"""USD per million tokens: the local models, and the list prices of OpenAI and Anthropic when these models came out
(https://platform.openai.com/docs/pricing, https://claude.com/pricing)."""

_SERVICES = ("openai", "azure-openai")
_DATE = re.compile(r"-(\d{8}|\d{4}-\d{2}-\d{2})$")


def price_of(embedding: Embedding, prices: Mapping[str, Price]) -> float | None:
    """USD per million tokens of the model that these settings name; None: a service whose price nobody told us.

    `embedding.price_per_million_tokens` wins when it is above 0, then `[prices]`. Models that run here cost nothing.
    """
    if embedding.price_per_million_tokens > 0:
        return embedding.price_per_million_tokens
    price = price_named(embedding.model, prices)
    if price is not None:
        return price.input if isinstance(price, TokenPrices) else price
    return None if embedding.provider in _SERVICES else 0.0


def price_named(model: str, prices: Mapping[str, Price]) -> Price | None:
    """The price of a model by its name, also without the provider before it (`openai/gpt-4o`)."""
    for name in (model, model.rsplit("/", 1)[-1]):
        if name in prices:
            return prices[name]
    return None


def embedding_prices(prices: Mapping[str, Price]) -> dict[str, float]:
    """The prices of models that read only: those of one number."""
    return {model: price for model, price in prices.items() if not isinstance(price, TokenPrices)}


def cost_of(
    model: str, input_tokens: int, output_tokens: int, *, prices: Mapping[str, Price] = DEFAULT_PRICES
) -> float | None:
    """USD for a text that a language model wrote; None: nobody told us its price.

    A name with a date (`gpt-4o-2024-08-06`) costs what the name without it does, unless it has a price of its own.
    """
    price = price_named(model, prices)
    if price is None:
        price = price_named(_DATE.sub("", model), prices)
    if price is None:
        return None
    if not isinstance(price, TokenPrices):
        price = TokenPrices(input=price, output=price)
    return (input_tokens * price.input + output_tokens * price.output) / 1e6


def usd(tokens: int, price: float | None) -> float:
    """What tokens cost at a price per million; nothing where there is no price."""
    return tokens * (price or 0.0) / 1e6
