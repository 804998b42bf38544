"""What embedding may cost: tokens are set aside before texts are sent, and only what the budget holds is sent.

Pure but for the ledger, which is a protocol: where it is kept, and what time it is, is somebody else's business.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import accumulate, takewhile
from typing import Protocol

from rag_pipeline.errors import BudgetExceeded, ConfigError
from rag_pipeline.model import Spent
from rag_pipeline.settings import Limits, usd

_ROUNDING = 1e-6
"""Of a token: sums of prices are not exact."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A text that shall be sent: whose it is, and how many tokens the model will read."""

    repository: str
    tokens: int


class Ledger(Protocol):
    """What one tenant has spent, by run and month, kept where parallel runs see it."""

    def exclusive(self) -> AbstractContextManager[None]:
        """Nobody else looks at this tenant's account and sets aside meanwhile."""

    def spent(self) -> tuple[Spent, Spent]:
        """By this run, and by all runs this month; what is set aside counts as spent."""

    def set_aside(self, tokens: Mapping[str, int]) -> None:
        """Note what is about to be spent, by repository."""

    def book(self, tokens: Mapping[str, int], *, released: Mapping[str, int], requests: int, seconds: float) -> None:
        """Note what was spent, by repository; `released` had been set aside for it and is no more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """One limit, and what is left under it."""

    key: str
    """Of the settings, below `budget`."""
    limit: float
    spent: float
    """In the limit's unit: tokens or USD."""
    tokens: int
    """That still fit."""


def rooms(limits: Limits, *, price: float | None, run: Spent, month: Spent) -> list[Room]:
    """What is left under each limit there is, the narrowest first; `price` is USD per million tokens."""
    found = []
    for key, limit, spent in (("run", limits.run_tokens, run), ("month", limits.month_tokens, month)):
        if limit is not None:
            left = max(0, limit - spent.tokens)
            found.append(Room(key=f"{key}_tokens", limit=limit, spent=spent.tokens, tokens=left))
    for key, money, spent in (("run", limits.run_usd, run), ("month", limits.month_usd, month)):
        if money is not None and price:
            left = max(0, math.floor((money - spent.usd) * 1e6 / price + _ROUNDING))
            found.append(Room(key=f"{key}_usd", limit=money, spent=spent.usd, tokens=left))
    return sorted(found, key=lambda room: room.tokens)


def shares(total: int, weights: Sequence[int]) -> list[int]:
    """A whole number cut in proportion to the weights; the parts add up to it again."""
    weights = weights if sum(weights) else [1] * len(weights)
    ends = [round(total * so_far / sum(weights)) for so_far in accumulate(weights)]
    return [end - start for start, end in zip([0, *ends], ends, strict=False)]


class Spending:
    """One tenant's account while texts are embedded: `allow` before they are sent, `record` for what came back."""

    def __init__(self, *, tenant: str, model: str, limits: Limits, price: float | None, ledger: Ledger) -> None:
        """`price` is USD per million tokens; None: nobody knows it."""
        self._tenant = tenant
        self._model = model
        self._limits = limits
        self._price = price
        self._ledger = ledger
        self._open: Counter[str] = Counter()
        self._expected = 0
        self._charged = 0

    def allow(self, wanted: Sequence[Wanted]) -> int:
        """How many of the texts, from the first one on, may be sent now; their tokens are set aside.

        Raises:
            BudgetExceeded: not even the first one.
            ConfigError: the budget is in USD, and the model's price is not known.
        """
        if not self._limits.limits_anything:
            self._set_aside(wanted)
            return len(wanted)
        if self._limits.limits_money and self._price is None:
            raise ConfigError(
                f"the budget is in USD, but there is no price for model {self._model!r}: "
                f'add `"{self._model}" = USD per million tokens` under [prices] (0 when it costs nothing)'
            )
        with self._ledger.exclusive():
            run, month = self._ledger.spent()
            left = rooms(self._limits, price=self._price, run=run, month=month)
            if not left:  # in USD only, for a model that costs nothing
                granted = len(wanted)
            else:
                # What is under way is set aside as we count it, and will be charged as the service does.
                surplus = self._open.total() * (self._surcharge - 1.0)
                most, so_far = (left[0].tokens - surplus) / self._surcharge, accumulate(one.tokens for one in wanted)
                granted = sum(1 for _ in takewhile(lambda total: total <= most, so_far))
            self._set_aside(wanted[:granted])
        if wanted and not granted:
            raise BudgetExceeded(self._refusal(left[0], wanted[0].tokens))
        return granted

    def record(self, answered: Sequence[Wanted], *, tokens: int, requests: int, seconds: float) -> None:
        """What was asked of the model for these texts: tokens in all, requests, and seconds that the model ran."""
        spent, released = Counter[str](), Counter[str]()
        for one, share in zip(answered, shares(tokens, [one.tokens for one in answered]), strict=True):
            spent[one.repository] += share
            released[one.repository] += one.tokens
        self._open -= released
        self._expected += released.total()
        self._charged += tokens
        self._ledger.book(spent, released=released, requests=requests, seconds=seconds)

    def release(self) -> None:
        """What was set aside and not sent is free again."""
        if self._open:
            rest, self._open = self._open, Counter()
            self._ledger.book({}, released=rest, requests=0, seconds=0.0)

    @property
    def is_guessing(self) -> bool:
        """Whether there is a limit, and no answer yet that shows how the service counts: little is sent until then."""
        return self._limits.limits_anything and not self._expected

    @property
    def _surcharge(self) -> float:
        """A service whose tokenizer we only guess may charge more than we count: by so much, as far as we saw."""
        return max(1.0, self._charged / self._expected) if self._expected else 1.0

    def _set_aside(self, wanted: Sequence[Wanted]) -> None:
        by_repository = Counter[str]()
        for one in wanted:
            by_repository[one.repository] += one.tokens
        if wanted:
            self._ledger.set_aside(by_repository)
            self._open += by_repository

    def _refusal(self, room: Room, needed: int) -> str:
        in_usd, span = room.key.endswith("usd"), room.key.split("_")[0]
        spent = f"{room.spent:,.4f} USD" if in_usd else f"{room.spent:,.0f} tokens"
        limit = f"{room.limit:,.4f} USD" if in_usd else f"{room.limit:,.0f} tokens"
        need = f"{usd(needed, self._price):,.6f} USD" if in_usd else f"{needed:,} tokens"
        whose = "this run has" if span == "run" else "runs of this month have"
        return (
            f"budget.{room.key} of tenant {self._tenant!r} is {limit}; {whose} spent or set aside {spent}, and the "
            f"next text for {self._model} needs {need}: raise it in rag_pipeline.toml (under [budget], or "
            f"[budget.tenants.{self._tenant}]) and run again. What was embedded is kept and is not paid for twice"
        )
