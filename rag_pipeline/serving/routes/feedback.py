"""`POST /v1/feedback`: thumbs up or down, on an answer or on one of the hits."""

from __future__ import annotations

from typing import Annotated, Literal
from uuid import UUID

from fastapi import APIRouter
from pydantic import BaseModel, StringConstraints

from rag_pipeline.index.feedback import Noted, note_feedback
from rag_pipeline.serving.depends import Reader, ServicesOf
from rag_pipeline.serving.errors import documented, refusal
from rag_pipeline.serving.fields import Storable, Strict
from rag_pipeline.serving.record import without_secrets
from rag_pipeline.serving.services import Services

router = APIRouter(tags=["feedback"])
_FLUSH_S = 5.0


class Feedback(Strict):
    """What somebody thinks of an answer."""

    query_id: UUID
    """As the search or the answer gave it."""
    helpful: bool
    reason: Annotated[str, StringConstraints(max_length=2_000), Storable] = ""
    chunk_id: UUID | None = None
    """Of a hit; without it, the answer as a whole is meant."""


class Noticed(BaseModel):
    """It is kept."""

    status: Literal["noted"] = "noted"


@router.post("/v1/feedback", status_code=201, responses=documented(404))
async def give_feedback(body: Feedback, caller: Reader, services: ServicesOf) -> Noticed:
    """Say whether an answer, or a hit, was helpful. What is said of the same again takes the place of it."""
    noted = await services.workers.run(lambda: _note(services, body, tenant=caller.tenant))
    if noted == "no query":
        raise refusal(404, "there is no such query: send the query_id of a search or an answer that is still kept")
    if noted == "no hit":
        raise refusal(404, "this chunk was not among the query's hits: send the chunk_id of one, or none")
    return Noticed()


def _note(services: Services, body: Feedback, *, tenant: str) -> Noted:
    # The thumb may be quicker than the log.
    services.log.flush(_FLUSH_S)
    reason = without_secrets(services.settings.redaction)(body.reason)
    with services.pool.connection() as connection:
        return note_feedback(
            connection, query_id=body.query_id, tenant=tenant, chunk_id=body.chunk_id, helpful=body.helpful,
            reason=reason, now=services.clock(),
        )  # fmt: skip
