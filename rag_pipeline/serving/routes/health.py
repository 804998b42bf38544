"""`GET /health` and `GET /health/live`: whether it runs, whether it can answer, and how fresh the index is."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from fastapi import APIRouter, Response
from pydantic import BaseModel

from rag_pipeline.errors import DatabaseUnavailable
from rag_pipeline.refresh.freshness import Standing
from rag_pipeline.serving.depends import ServicesOf, Shown
from rag_pipeline.serving.errors import documented

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


class Health(BaseModel):
    """Whether questions are answered."""

    status: Literal["ok", "degraded", "unavailable"]
    """`degraded`: it answers, though a source is stale or nothing is indexed yet."""
    live: Literal[True] = True
    ready: bool
    index: list[SourceHealth] | None = None
    """Of the caller's tenant; nothing without a key, unless none is needed."""
    problem: str | None = None


@router.get("/health/live", responses=documented(500, only=(400,)))
async def live() -> Live:
    """Whether the process runs; says nothing of the database."""
    return Live()


@router.get("/health", responses=documented(500, only=(400,)) | {503: {"model": Health, "description": "Not ready"}})
async def health(response: Response, services: ServicesOf, shown: Shown) -> Health:
    """Whether it can answer, and how fresh the index is; 503 while it cannot. Answers within two seconds."""
    condition = await services.conditions.now()
    response.status_code = 200 if condition.is_ready else 503
    if not condition.is_ready:
        response.headers["Retry-After"] = "2"
        return Health(status="unavailable", ready=False, problem=condition.problem)
    index = None
    try:
        caller = await services.spare.run(lambda: services.gate.who(shown)) if shown.key else services.gate.who(shown)
    except DatabaseUnavailable:
        caller = None
    if caller is not None:
        index = [_entry(standing) for standing in condition.standings if standing.key.tenant == caller.tenant]
    is_well = not condition.problem and not condition.is_stale
    return Health(
        status="ok" if is_well else "degraded", ready=True, index=index, problem=condition.problem or None
    )  # fmt: skip


def _entry(standing: Standing) -> SourceHealth:
    return SourceHealth(
        repository=standing.key.repository, source=standing.key.source, state=str(standing.state),
        complete_until=standing.seen.complete_until, last_indexed=standing.seen.indexed_at,
        lag_s=None if standing.lag is None else round(standing.lag.total_seconds(), 1),
    )  # fmt: skip
