"""What a refresh would do and cost, before it is done: nothing in the lake, the index or the ledger is changed.

Tokens are counted, not guessed: sources are read, cleaned and cut as the run would, in a lake that is thrown away, and
texts that have a vector are left out. Only what GitHub was never asked for, and how long it all takes, is estimated.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from rag_pipeline.embedding.spending import rooms
from rag_pipeline.errors import RagPipelineError
from rag_pipeline.index.database import Connection
from rag_pipeline.index.usage import spent, tokens_per_second
from rag_pipeline.lake.store import Lake
from rag_pipeline.model import DayRange, Spent
from rag_pipeline.progress import Progress
from rag_pipeline.refresh.needs import SERVING, Need, counting_of, needs_of, runs_here
from rag_pipeline.refresh.rehearsal import rehearse
from rag_pipeline.refresh.spaces import Models
from rag_pipeline.settings import Settings, embedding_prices, usd
from rag_pipeline.sources.github.outlook import Outlook, outlook
from rag_pipeline.sources.github.stage import Access
from rag_pipeline.sources.kinds.protocol import Outside

TOKENS_PER_THREAD = 700
"""Of an issue or pull request that nobody has read yet; a guess."""
CHUNKS_PER_S = 1_000
"""Into the index; a cautious guess."""
DEFAULT_TOKENS_PER_S: Mapping[str, int] = {"local": 8_000, "openai": 20_000, "azure-openai": 20_000}
"""Until a model has been measured; of those that are not named here, as of the local one."""
_SERVICES = ("openai", "azure-openai")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCost:
    """What one model of the run would cost."""

    provider: str
    model: str
    role: str
    texts: int
    """To embed, after reuse."""
    tokens: int
    requests: int
    price: float | None
    """USD per million tokens; None: not known."""
    usd: float | None
    seconds: float
    measured: bool
    """Whether the rate behind `seconds` was measured in earlier runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherCost:
    """What the same texts would cost with another model; one that is new here would have to embed all others, too."""

    model: str
    tokens: int
    price: float
    usd: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetLeft:
    """One limit of one tenant."""

    tenant: str
    key: str
    limit: float
    left: float
    needed: float
    """In the limit's unit: tokens or USD; of the largest run for `run_…`, of all runs for `month_…`."""

    @property
    def stops(self) -> bool:
        """Whether a run would be stopped by it."""
        return self.needed > self.left + 1e-10


@dataclass(slots=True, kw_only=True)
class Estimate:
    """What a refresh over some days would do."""

    days: list[str] = field(default_factory=list)
    """A line per run."""
    reasons: Sequence[str] = ()
    items: int = 0
    tombstones: int = 0
    documents: int = 0
    chunks: int = 0
    reused: int = 0
    """Texts that have a vector in the space that answers questions."""
    models: list[ModelCost] = field(default_factory=list)
    others: list[OtherCost] = field(default_factory=list)
    repositories: list[tuple[str, str, int, float]] = field(default_factory=list)
    """Tenant, repository, tokens and USD, over all models."""
    github_requests: int = 0
    guessed_tokens: int = 0
    """Of threads that were never read; not among the tokens of the models."""
    guessed_usd: float = 0.0
    drops: int = 0
    seconds: float = 0.0
    budgets: list[BudgetLeft] = field(default_factory=list)
    stopped_by: list[str] = field(default_factory=list)
    """Budgets that would stop it."""
    notes: list[str] = field(default_factory=list)
    """What is estimated, and what could not be read."""

    @property
    def tokens(self) -> int:
        """To embed after reuse, over all models."""
        return sum(model.tokens for model in self.models)

    @property
    def usd(self) -> float:
        """Over all models with a known price."""
        return sum(model.usd or 0.0 for model in self.models)


def estimate(
    settings: Settings, ranges: Sequence[DayRange], *, connection: Connection, models: Models, access: Access,
    lake: Lake, now: datetime, progress: Progress, reasons: Sequence[str] = (),
) -> Estimate:  # fmt: skip
    """What runs over these ranges, one after the other, would do.

    Raises:
        RagPipelineError: no git repository can be read, or the model cannot be used as it is configured.
    """
    found = Estimate(days=[str(days) for days in ranges], reasons=reasons)
    outlooks = _outlooks(settings, access, found)
    needs = needs_of(connection, models, prices=settings.prices)
    by_run: list[Counter[tuple[int, str]]] = []
    outside = Outside(base=settings.base, environ=access.environ)
    try:
        for days in ranges:
            before = [need.tokens.copy() for need in needs]
            with tempfile.TemporaryDirectory(prefix="rag-plan-") as folder:
                run = rehearse(settings, lake, Lake(folder), days, outside=outside, now=now, progress=progress)
                for need in needs:
                    need.add(connection, lake, run)
            found.items += run.items
            found.tombstones += run.tombstones
            found.documents += run.documents
            found.chunks += run.chunks
            found.drops += run.waiting.drops
            found.seconds += run.seconds + run.chunks / CHUNKS_PER_S
            found.notes += run.problems
            if run.waiting.deliveries:
                found.notes.append(f"{run.waiting.deliveries:,} deliveries wait; what they touch is not counted")
            by_run.append(_by_tenant(needs, before))
    finally:
        for need in needs:
            need.embedder.close()
    _add_models(found, needs, connection)
    _add_budgets(found, settings, needs, by_run, outlooks, connection, now=now)
    return found


def _outlooks(settings: Settings, access: Access, found: Estimate) -> list[Outlook]:
    outlooks = []
    for repository in settings.github_repositories:
        try:
            outlooks.append(one := outlook(settings, repository, access))
        except RagPipelineError as error:
            found.notes.append(f"{repository.name}: GitHub could not be asked: {error}")
            continue
        found.github_requests += one.requests
        if one.unread_threads:
            tokens = one.unread_threads * TOKENS_PER_THREAD
            found.guessed_tokens += tokens
            found.notes.append(
                f"{repository.name}: {one.unread_threads:,} issues and pull requests were never read: about {tokens:,} "
                f"tokens ({TOKENS_PER_THREAD} each) and {one.requests:,} requests, estimated from GitHub's counts"
            )
        else:
            found.notes.append(f"{repository.name}: GitHub as it was last read; what changed since is not counted")
    return outlooks


def _by_tenant(needs: Sequence[Need], before: Sequence[Counter[tuple[str, str]]]) -> Counter[tuple[int, str]]:
    """Tokens of one run, by model (its number) and tenant."""
    tokens = Counter[tuple[int, str]]()
    for number, (need, earlier) in enumerate(zip(needs, before, strict=True)):
        for (tenant, _), count in (need.tokens - earlier).items():
            tokens[number, tenant] += count
    return tokens


def _add_models(found: Estimate, needs: Sequence[Need], connection: Connection) -> None:
    for need in needs:
        tokens, settings = need.tokens.total(), need.settings
        rate = tokens_per_second(connection, provider=settings.provider, model=settings.model)
        seconds = tokens / (rate or DEFAULT_TOKENS_PER_S.get(settings.provider, DEFAULT_TOKENS_PER_S["local"]))
        batches = max(-(-need.to_embed // settings.batch_texts), -(-tokens // settings.batch_tokens))
        cost = None if need.price is None else usd(tokens, need.price)
        found.models.append(
            ModelCost(
                provider=settings.provider, model=settings.model, role=need.role, texts=need.to_embed, tokens=tokens,
                requests=batches if settings.provider in _SERVICES else 0, price=need.price, usd=cost,
                seconds=seconds, measured=rate is not None,
            )
        )  # fmt: skip
        found.seconds += seconds
        if need.role == SERVING:
            found.reused = need.reused
            found.guessed_usd = usd(found.guessed_tokens, need.price)
    repositories = {key for need in needs for key, tokens in need.tokens.items() if tokens}
    found.repositories = [
        (*key, sum(need.tokens[key] for need in needs), sum(usd(need.tokens[key], need.price) for need in needs))
        for key in sorted(repositories)
    ]


def _add_budgets(
    found: Estimate, settings: Settings, needs: Sequence[Need], by_run: Sequence[Counter[tuple[int, str]]],
    outlooks: Sequence[Outlook], connection: Connection, *, now: datetime,
) -> None:  # fmt: skip
    serving = needs[0]
    others = {
        model: price
        for model, price in embedding_prices(settings.prices).items()
        if model != serving.settings.model and runs_here(model)
    }
    for model, price in others.items():
        tokens = serving.elsewhere.get(counting_of(model), 0)
        found.others.append(OtherCost(model=model, tokens=tokens, price=price, usd=usd(tokens, price)))
    guessed = Counter[str]()
    for one in outlooks:
        guessed[one.repository.tenant] += one.unread_threads * TOKENS_PER_THREAD
    tenants = {tenant for run in by_run for _, tenant in run} | {r.tenant for r in settings.repositories}
    for tenant in sorted(tenants):
        runs = [_spent(needs, run, tenant) for run in by_run]
        runs[-1:] = [
            Spent(tokens=run.tokens + guessed[tenant], usd=run.usd + usd(guessed[tenant], serving.price))
            for run in runs[-1:]
        ]
        _compare(found, settings, tenant, runs, needs, connection, now=now)


def _spent(needs: Sequence[Need], run: Counter[tuple[int, str]], tenant: str) -> Spent:
    tokens = [run[number, tenant] for number in range(len(needs))]
    return Spent(
        tokens=sum(tokens), usd=sum(usd(count, need.price) for count, need in zip(tokens, needs, strict=True))
    )  # fmt: skip


def _compare(
    found: Estimate, settings: Settings, tenant: str, runs: Sequence[Spent], needs: Sequence[Need],
    connection: Connection, *, now: datetime,
) -> None:  # fmt: skip
    limits = settings.budget.of(tenant)
    _, month = spent(connection, tenant=tenant, run_id="", now=now)
    nothing = Spent()
    needed = {
        "run_tokens": max((run.tokens for run in runs), default=0),
        "run_usd": max((run.usd for run in runs), default=0.0),
        "month_tokens": sum(run.tokens for run in runs),
        "month_usd": sum(run.usd for run in runs),
    }
    # Any price will do: what is left is shown in the limit's own unit.
    for room in rooms(limits, price=1.0, run=nothing, month=month):
        left = BudgetLeft(
            tenant=tenant, key=room.key, limit=room.limit, left=max(0.0, room.limit - room.spent),
            needed=needed[room.key],
        )  # fmt: skip
        found.budgets.append(left)
        if left.stops:
            found.stopped_by.append(f"budget.{room.key} of tenant {tenant!r}")
    for need in needs:
        if limits.limits_money and need.price is None and any(key[0] == tenant for key in +need.tokens):
            found.stopped_by.append(
                f"the budget of tenant {tenant!r} is in USD, and [prices] has none for model {need.settings.model!r}"
            )
