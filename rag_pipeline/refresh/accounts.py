"""On whose account a run embeds: joins the budget and the prices of the settings with the ledger in the index."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from rag_pipeline.embedding import Spending
from rag_pipeline.index.database import Connection
from rag_pipeline.index.usage import RunLedger
from rag_pipeline.model import EmbeddingSpace
from rag_pipeline.settings import Budget, Embedding, Price, price_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """Under which name a run spends, and how much it may."""

    run_id: str
    budget: Budget
    prices: Mapping[str, Price]
    clock: Callable[[], datetime]

    def spending(
        self, connection: Connection, space: EmbeddingSpace, *, settings: Embedding, tenant: str
    ) -> Spending:  # fmt: skip
        """The account of one tenant for one space; `settings` make the space's vectors."""
        price = price_of(settings, self.prices)
        ledger = RunLedger(
            connection, tenant=tenant, run_id=self.run_id, provider=space.provider, model=space.model,
            price=price or 0.0, clock=self.clock,
        )  # fmt: skip
        return Spending(
            tenant=tenant, model=space.model, limits=self.budget.of(tenant), price=price, ledger=ledger
        )  # fmt: skip
