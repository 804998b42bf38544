"""The `[prices]` table: what a model asks for a million tokens, and what that makes of the configured one."""

from __future__ import annotations

from collections.abc import Mapping

from rag_pipeline.settings.sections import Embedding

DEFAULT_PRICES: Mapping[str, float] = {
    "all-MiniLM-L6-v2": 0.0,
    "text-embedding-3-small": 0.02,
    "text-embedding-3-large": 0.13,
    "text-embedding-ada-002": 0.10,
}
"""USD per million tokens: the local model, and OpenAI's list prices (https://platform.openai.com/docs/pricing)."""

_SERVICES = ("openai", "azure-openai")


def price_of(embedding: Embedding, prices: Mapping[str, float]) -> float | None:
    """USD per million tokens of the model that these settings name; None: a service whose price nobody told us.

    `embedding.price_per_million_tokens` wins when it is above 0, then `[prices]`. Models that run here cost nothing.
    """
    if embedding.price_per_million_tokens > 0:
        return embedding.price_per_million_tokens
    for name in (embedding.model, embedding.model.rsplit("/", 1)[-1]):
        if name in prices:
            return prices[name]
    return None if embedding.provider in _SERVICES else 0.0


def usd(tokens: int, price: float | None) -> float:
    """What tokens cost at a price per million; nothing where there is no price."""
    return tokens * (price or 0.0) / 1e6
