"""`POST /v1/ask`: an answer with citations, whole or as it is written (server-sent events)."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from fastapi import APIRouter, Request
from fastapi.sse import KEEPALIVE_COMMENT, format_sse_event
from pydantic import BaseModel
from starlette.responses import Response, StreamingResponse

from rag_pipeline.answering.answerer import Looked, Question, Wrote
from rag_pipeline.answering.language_model import Message
from rag_pipeline.retrieval.query import SearchQuery
from rag_pipeline.serving.asking import Given
from rag_pipeline.serving.caller import Caller
from rag_pipeline.serving.depends import Reader, ServicesOf
from rag_pipeline.serving.errors import as_refusal, documented, error_body
from rag_pipeline.serving.pumping import pumped
from rag_pipeline.serving.record import note_answer
from rag_pipeline.serving.schemas import AnswerBody, AskBody, LookedBody, answer_body, looked_hits
from rag_pipeline.serving.services import Services

router = APIRouter(tags=["ask"])
_log = logging.getLogger(__name__)
_TICK_S: Final = 0.5
"""So often it is looked whether anybody still waits for the answer."""
_HEARTBEAT_S: Final = 10.0
"""Proxies take a connection on which nothing is sent for a dead one."""
_EVENTS: Final = "text/event-stream"
_STREAMED: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "description": "The answer; or, for `Accept: text/event-stream`, the events `looked` (what it will be written "
        "from), `text` (more of its text) and at the end `answer` (the whole of it, which counts) or `error`.",
        "content": {_EVENTS: {"schema": {"type": "string"}}},
    }
}  # fmt: skip
Event = Looked | Wrote | Given


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """One request, and how its answer is put on record and into words."""

    services: Services
    caller: Caller
    question: Question
    asked_at: datetime
    started: float

    def events(self, *, tick_s: float) -> AsyncGenerator[Event | None, None]:
        """What happens, made on a thread; None: nothing did for a while."""
        services = self.services
        return pumped(services.writers, lambda: services.asking.stream(self.question), tick_s=tick_s)

    def body(self, given: Given) -> AnswerBody:
        """The answer, noted in the log."""
        milliseconds = round((time.perf_counter() - self.started) * 1000)
        query_id = note_answer(
            self.services.log, self.services.metrics, self.caller, query=self.question.query, answer=given.answer,
            hits=given.looked.hits if given.looked else (), asked_at=self.asked_at, milliseconds=milliseconds,
            is_cached=given.is_cached,
        )  # fmt: skip
        return answer_body(given.answer, query_id=query_id, milliseconds=milliseconds)


@router.post("/v1/ask", response_model=AnswerBody, responses=_STREAMED | documented())
async def ask(body: AskBody, request: Request, caller: Reader, services: ServicesOf) -> Response | AnswerBody:
    """An answer from what is indexed, each sentence with the source it stands on; without a model, the passages that
    answer best. What is not known is said to be so.

    Who goes away before the answer is there stops the model.
    """
    query = SearchQuery(
        text=body.question, tenant=caller.tenant, scopes=caller.scoped(body.scopes), labels=tuple(body.labels),
        k=body.k or services.settings.answering.k, **body.parts(),
    )  # fmt: skip
    query.check()
    history = tuple(Message(role=turn.role, content=turn.content) for turn in body.history)
    asked = _Asked(
        services=services, caller=caller, question=Question(query=query, history=history),
        asked_at=services.clock(), started=time.perf_counter(),
    )  # fmt: skip
    events = asked.events(tick_s=_TICK_S)
    if _wants_events(request):
        return await _streamed(asked, events, request)
    async with aclosing(events):
        looked_at = time.monotonic()
        async for event in events:
            if isinstance(event, Given):
                return asked.body(event)
            # By the clock, and not when nothing happens: a model that never pauses would write to its end for nobody.
            if time.monotonic() - looked_at >= _TICK_S:
                if await request.is_disconnected():
                    return _nobody()
                looked_at = time.monotonic()
    raise AssertionError("unreachable: the last event is an answer, or an error was raised")


async def _streamed(asked: _Asked, events: AsyncGenerator[Event | None, None], request: Request) -> Response:
    """A stream, once there is something to stream: until then what goes wrong has a status."""
    try:
        async for first in events:
            if first is not None:
                return StreamingResponse(
                    _frames(asked, first, events, request), media_type=_EVENTS,
                    headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
                )  # fmt: skip
            if await request.is_disconnected():
                break
    except BaseException:
        await events.aclose()
        raise
    await events.aclose()
    return _nobody()


async def _frames(
    asked: _Asked, first: Event, events: AsyncGenerator[Event | None, None], request: Request
) -> AsyncIterator[bytes]:
    async with aclosing(events):
        try:
            yield _frame(asked, first)
            quiet_since = time.monotonic()
            async for event in events:
                if event is not None:
                    yield _frame(asked, event)
                elif await request.is_disconnected():
                    return
                elif time.monotonic() - quiet_since >= _HEARTBEAT_S:
                    yield KEEPALIVE_COMMENT
                else:
                    continue
                quiet_since = time.monotonic()
        except Exception as error:
            yield _failure(error)


def _frame(asked: _Asked, event: Event) -> bytes:
    match event:
        case Looked():
            hits = looked_hits(event.hits)
            return _sent("looked", LookedBody(asked=event.asked, hits=hits, degraded=event.degraded))
        case Wrote():
            return format_sse_event(event="text", data_str=json.dumps({"text": event.text}))
        case Given():
            return _sent("answer", asked.body(event))


def _sent(name: str, body: BaseModel) -> bytes:
    return format_sse_event(event=name, data_str=body.model_dump_json())


def _failure(error: Exception) -> bytes:
    """What is said of an error when the status is sent already."""
    refused = as_refusal(error)
    detail: Any = getattr(refused or error, "detail", None)
    if isinstance(detail, dict):
        said = error_body(str(detail["code"]), str(detail["message"]))
    else:
        _log.error("an answer could not be streamed", exc_info=error)
        said = error_body("internal", "something went wrong while the answer was written: ask again")
    return format_sse_event(event="error", data_str=json.dumps(said))


def _wants_events(request: Request) -> bool:
    kinds = (part.partition(";")[0].strip().lower() for part in request.headers.get("accept", "").split(","))
    return _EVENTS in kinds


def _nobody() -> Response:
    """For a connection that is closed already."""
    return Response(status_code=499)
