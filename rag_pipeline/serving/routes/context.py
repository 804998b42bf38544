"""`POST /v1/context`: text for a prompt, cited and fenced, within a budget of tokens."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from fastapi import APIRouter

from rag_pipeline.model import SearchHit
from rag_pipeline.retrieval.context import Context, build_context
from rag_pipeline.retrieval.query import SearchQuery
from rag_pipeline.serving.caller import Caller
from rag_pipeline.serving.depends import Reader, ServicesOf
from rag_pipeline.serving.errors import documented, refusal
from rag_pipeline.serving.record import note_search
from rag_pipeline.serving.schemas import ContextAnswer, ContextBody, cited_bodies
from rag_pipeline.serving.services import Services

router = APIRouter(tags=["context"], responses=documented())


@router.post("/v1/context")
async def context(body: ContextBody, caller: Reader, services: ServicesOf) -> ContextAnswer:
    """The passages that help most with a question, numbered, as text to put into a prompt.

    A chat must go on whatever happens here, so what goes wrong with the search is a `reason`, not a status.
    """
    most = services.settings.serving.most_context_tokens
    if body.budget_tokens > most:
        raise refusal(422, f"budget_tokens is {body.budget_tokens}, this service allows {most}: ask for no more")
    scopes = caller.scoped(body.scopes)
    made = await services.workers.run(lambda: _built(services, caller, body, scopes))
    return ContextAnswer(
        text=made.text, sources=cited_bodies(made.sources), enabled=made.enabled, reason=made.reason, tokens=made.tokens
    )


def _built(services: Services, caller: Caller, body: ContextBody, scopes: Sequence[str]) -> Context:
    asked_at, started = services.clock(), time.perf_counter()

    def search(query: SearchQuery) -> Sequence[SearchHit]:
        filtered = replace(query, labels=tuple(body.labels), **body.parts())
        found = services.search(filtered)
        note_search(
            services.log, services.metrics, caller, entrance="context", query=filtered, found=found, asked_at=asked_at,
            milliseconds=round((time.perf_counter() - started) * 1000),
        )  # fmt: skip
        return found.hits

    serving = services.settings.serving
    return build_context(
        body.question, tenant=caller.tenant, scopes=scopes, search=search, budget_tokens=body.budget_tokens,
        most_tokens=serving.most_context_tokens, k=body.k, min_score=body.min_score,
        timeout_s=serving.request_timeout_s,
    )  # fmt: skip
