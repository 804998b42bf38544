"""`GET /health` and `GET /health/live`: whether it runs, whether it can answer, and how fresh the index is."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import Literal

from fastapi import APIRouter, Response
from pydantic import BaseModel

from rag_pipeline.errors import DatabaseUnavailable
from rag_pipeline.refresh.freshness import Standing
from rag_pipeline.serving.depends import ServicesOf, Shown
from rag_pipeline.serving.errors import documented
from rag_pipeline.serving.freshness import ReplicaCondition

router = APIRouter(tags=["health"])


class Live(BaseModel):
    """The process runs and its event loop turns."""

    status: Literal["ok"] = "ok"
    live: Literal[True] = True


class SourceHealth(BaseModel):
    """How fresh one source is."""

    repository: str
    source: str
    state: str
    """`fresh`, `behind`, `stale` or `never indexed`."""
    complete_until: datetime | None
    """Everything that it showed up to here is in the index."""
    lag_s: float | None
    """Since then; none: it was never wholly indexed."""
    last_indexed: datetime | None


class ReplicaHealth(BaseModel):
    """Of a service that reads from a replica."""

    answers: bool
    """Otherwise the primary answers searches in its place."""
    primary_answers: bool
    """Otherwise searches go on, and what is to be written waits or is left out."""
    lag_s: float | None
    """So far it is behind the primary, at most; none: nobody knows, because one of them does not answer."""
    replayed_until: datetime | None
    """The last transaction that it has was committed then."""


class Health(BaseModel):
    """Whether questions are answered."""

    status: Literal["ok", "degraded", "unavailable"]
    """`degraded`: it answers, though a source is stale or nothing is indexed yet."""
    live: Literal[True] = True
    ready: bool
    index: list[SourceHealth] | None = None
    """Of the caller's tenant; nothing without a key, unless none is needed."""
    problem: str | None = None
    replica: ReplicaHealth | None = None
    """None: reads and writes are of one database."""


@router.get("/health/live", responses=documented(500, only=(400,)))
async def live() -> Live:
    """Whether the process runs; says nothing of the database."""
    return Live()


@router.get(
    "/health",
    openapi_extra={"security": [{}]},
    responses=documented(500, only=(400,)) | {503: {"model": Health, "description": "Not ready"}},
)
async def health(response: Response, services: ServicesOf, shown: Shown) -> Health:
    """Whether it can answer, and how fresh the index is; 503 while it cannot. Answers within two seconds."""
    condition = await services.conditions.now()
    response.status_code = 200 if condition.is_ready else 503
    if not condition.is_ready:
        response.headers["Retry-After"] = "2"
        return Health(
            status="unavailable", ready=False, problem=condition.problem, replica=_replica(condition.replica)
        )  # fmt: skip
    index = None
    try:
        look = partial(services.gate.who, shown)
        caller = await services.spare.run(look) if services.gate.blocks(shown) else look()
    except DatabaseUnavailable:
        caller = None
    if caller is not None:
        index = [_entry(standing) for standing in condition.standings if standing.key.tenant == caller.tenant]
    is_well = not condition.problem and not condition.is_stale
    return Health(
        status="ok" if is_well else "degraded", ready=True, index=index, problem=condition.problem or None,
        replica=_replica(condition.replica),
    )  # fmt: skip


def _replica(condition: ReplicaCondition | None) -> ReplicaHealth | None:
    if condition is None:
        return None
    lag = condition.lag
    return ReplicaHealth(
        answers=condition.answers, primary_answers=condition.primary_answers,
        lag_s=None if lag is None or lag.lag_s is None else round(lag.lag_s, 1),
        replayed_until=lag.replayed_until if lag else None,
    )  # fmt: skip


def _entry(standing: Standing) -> SourceHealth:
    return SourceHealth(
        repository=standing.key.repository, source=standing.key.source, state=str(standing.state),
        complete_until=standing.seen.complete_until, last_indexed=standing.seen.indexed_at,
        lag_s=None if standing.lag is None else round(standing.lag.total_seconds(), 1),
    )  # fmt: skip
