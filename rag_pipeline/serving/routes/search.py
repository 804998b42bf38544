"""`GET /v1/search`: passages for a question, best first. `GET /v1/sources`: what there is to search."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field

from rag_pipeline.index.changes import index_state
from rag_pipeline.index.database import Connection
from rag_pipeline.index.pool import connected_twice
from rag_pipeline.retrieval.known_sources import KnownSource, known_sources
from rag_pipeline.retrieval.reader import reading
from rag_pipeline.serving.caches import sources_key
from rag_pipeline.serving.depends import Reader, ServicesOf
from rag_pipeline.serving.errors import documented
from rag_pipeline.serving.fields import Name, Strict
from rag_pipeline.serving.record import note_search
from rag_pipeline.serving.schemas import (
    MOST_SCOPES,
    SearchBody,
    SearchParameters,
    SourcesBody,
    hit_body,
    source_body,
)
from rag_pipeline.serving.services import Services

router = APIRouter(tags=["search"], responses=documented())


class SourcesParameters(Strict):
    """What `GET /v1/sources` takes."""

    scope: list[Name] = Field(
        default=[], max_length=MOST_SCOPES, examples=[["user:ada"]],
        description="In whose name you ask, as far as your key may: what is for their eyes only is counted, too.",
    )  # fmt: skip


@router.get("/v1/search")
async def search(
    parameters: Annotated[SearchParameters, Query()], caller: Reader, services: ServicesOf
) -> SearchBody:  # fmt: skip
    """Passages of what is indexed that say something about `q`, best first, each with why it was found.

    Where the model that embeds questions does not answer, the words alone are searched, and `degraded` says so.
    """
    query = parameters.query(tenant=caller.tenant, scopes=caller.scoped(parameters.scope))
    asked_at, started = services.clock(), time.perf_counter()

    def work() -> SearchBody:
        found = services.search(query)
        milliseconds = round((time.perf_counter() - started) * 1000)
        query_id = note_search(
            services.log, services.metrics, caller, entrance="search", query=query, found=found, asked_at=asked_at,
            milliseconds=milliseconds,
        )  # fmt: skip
        hits = [hit_body(hit, question=query.text) for hit in found.hits]
        return SearchBody(
            query_id=query_id, hits=hits, degraded=found.degraded, corrected=found.corrected, milliseconds=milliseconds
        )

    return await services.workers.run(work)


@router.get("/v1/sources")
async def sources(
    parameters: Annotated[SourcesParameters, Query()], caller: Reader, services: ServicesOf
) -> SourcesBody:  # fmt: skip
    """Repositories and kinds of documents that you may search, with how much there is and how fresh it is."""
    scopes = caller.scoped(parameters.scope)
    found = await services.workers.run(lambda: _sources(services, caller.tenant, scopes))
    return SourcesBody(sources=[source_body(source) for source in found])


def _sources(services: Services, tenant: str, scopes: Sequence[str]) -> Sequence[KnownSource]:
    """Counting takes time with the size of the index, so it is done once for each state of it."""

    def work(connection: Connection) -> Sequence[KnownSource]:
        key, state = sources_key(tenant, scopes), index_state(connection, tenant)
        known = services.caches.sources.get(key, state)
        if known is None:
            with reading(connection, tenant=tenant, scopes=scopes):
                known = known_sources(connection, tenant=tenant)
            services.caches.sources.put(key, state, known)
        return known

    return connected_twice(services.reads.connection, work)
