"""`POST /v1/context`: text for a prompt, cited and fenced, within a budget of tokens and of time."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from fastapi import APIRouter
from starlette.exceptions import HTTPException

from rag_pipeline.errors import UnknownSource
from rag_pipeline.model import SearchHit
from rag_pipeline.retrieval.context import Context, build_context
from rag_pipeline.retrieval.query import SearchQuery
from rag_pipeline.retrieval.retriever import corrected_in
from rag_pipeline.serving.caller import Caller
from rag_pipeline.serving.depends import Admitted, ServicesOf
from rag_pipeline.serving.errors import documented, refusal
from rag_pipeline.serving.record import note_search
from rag_pipeline.serving.schemas import ContextAnswer, ContextBody, cited_bodies
from rag_pipeline.serving.services import Services

router = APIRouter(tags=["context"], responses=documented())
_LEAST_S: Final = 0.01
_SPARE_S: Final = 0.1
"""So that the search says itself that it took too long."""
_log = logging.getLogger(__name__)


@router.post("/v1/context")
async def context(body: ContextBody, admitted: Admitted, services: ServicesOf) -> ContextAnswer:
    """The passages that help most with a question, numbered, as text to put into a prompt.

    A chat must go on whatever happens here, so what cannot be looked up is a `reason`, not a status, and the answer is
    there within `timeout_ms`. Without a key that was verified there is no context.
    """
    serving = services.settings.serving
    most = serving.most_context_tokens
    if body.budget_tokens > most:
        raise refusal(422, f"budget_tokens is {body.budget_tokens}, this service allows {most}: ask for no more")
    ends_at = time.monotonic() + (body.timeout_ms or serving.context_timeout_ms) / 1000

    def left() -> float:
        return max(_LEAST_S, ends_at - time.monotonic())

    try:
        caller = await admitted(timeout_s=left())
        scopes = caller.scoped(body.scopes)
        made = await services.workers.run(
            lambda: _built(services, caller, body, scopes, timeout_s=left()), timeout_s=left() + _SPARE_S
        )
    except Exception as error:
        if isinstance(error, UnknownSource) or (isinstance(error, HTTPException) and error.status_code < 500):
            raise  # what is wrong with the request was found out
        _log.warning("no context could be looked up: %s", type(error).__name__)
        made = Context(reason="unavailable")
    return ContextAnswer(
        text=made.text, sources=cited_bodies(made.sources), enabled=made.enabled, reason=made.reason,
        tokens=made.tokens, degraded=made.degraded, corrected=corrected_in(made.sources),
    )  # fmt: skip


def _built(
    services: Services, caller: Caller, body: ContextBody, scopes: Sequence[str], *, timeout_s: float
) -> Context:
    asked_at, started = services.clock(), time.perf_counter()
    degraded: list[str] = []
    unknown: list[UnknownSource] = []

    def search(query: SearchQuery) -> Sequence[SearchHit]:
        filtered = replace(query, labels=tuple(body.labels), **body.parts())
        try:
            found = services.search(filtered, timeout_s=timeout_s)
        except UnknownSource as error:
            unknown.append(error)
            raise
        degraded.append(found.degraded)
        note_search(
            services.log, services.metrics, caller, entrance="context", query=filtered, found=found, asked_at=asked_at,
            milliseconds=round((time.perf_counter() - started) * 1000),
        )  # fmt: skip
        return found.hits

    made = build_context(
        body.question, tenant=caller.tenant, scopes=scopes, search=search, budget_tokens=body.budget_tokens,
        most_tokens=services.settings.serving.most_context_tokens, k=body.k, min_score=body.min_score,
        timeout_s=timeout_s,
    )  # fmt: skip
    if unknown:
        raise unknown[0]
    return replace(made, degraded="".join(degraded))
