"""What a service remembers of a question: its figures for Prometheus, and its row in the query log."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import date, datetime
from uuid import UUID

from rag_pipeline.documents.redaction import redact
from rag_pipeline.index.database import Connection
from rag_pipeline.index.query_log import Entrance, QueryLog
from rag_pipeline.model import Answer, Json, SearchHit
from rag_pipeline.retrieval.query import SearchQuery
from rag_pipeline.retrieval.retriever import Found
from rag_pipeline.serving.caller import Caller
from rag_pipeline.serving.metrics import Metrics
from rag_pipeline.settings import Redaction, Settings

_NOT_PARAMETERS = ("text", "tenant")


def without_secrets(settings: Redaction) -> Callable[[str], str]:
    """What takes secrets out of a text, as the pipeline takes them out of documents."""
    return lambda text: redact(text, emails=settings.emails, allowed=settings.allowed).text


def make_query_log(
    settings: Settings, connect: Callable[[], AbstractContextManager[Connection]], metrics: Metrics
) -> QueryLog:
    """The query log as the settings have it; whoever makes it closes it, before the connections."""
    log = QueryLog(
        connect, redact=without_secrets(settings.redaction), enabled=settings.serving.query_log,
        on_dropped=metrics.dropped,
    )  # fmt: skip
    metrics.watch("query_log_waiting", lambda: log.waiting)
    return log


def note_search(
    log: QueryLog, metrics: Metrics, caller: Caller, *, entrance: Entrance, query: SearchQuery, found: Found,
    asked_at: datetime, milliseconds: int,
) -> UUID | None:  # fmt: skip
    """Remember a search; returns the id that feedback on it names, None when it is not kept."""
    metrics.found(entrance, hits=len(found.hits), degraded=bool(found.degraded))
    return log.asked(
        tenant=caller.tenant, key_id=caller.key_id, entrance=entrance, question=query.text,
        parameters=parameters_of(query), hits=found.hits, outcome="found" if found.hits else "nothing_found",
        asked_at=asked_at, milliseconds=milliseconds,
    )  # fmt: skip


def note_answer(
    log: QueryLog, metrics: Metrics, caller: Caller, *, query: SearchQuery, answer: Answer,
    hits: Sequence[SearchHit], asked_at: datetime, milliseconds: int, is_cached: bool = False,
) -> UUID | None:  # fmt: skip
    """Remember an answer and the hits it was written from; returns as `note_search`.

    One out of a cache is a question like any other, but cost nothing this time.
    """
    metrics.found("ask", hits=len(hits), degraded=bool(answer.degraded))
    if not is_cached:
        metrics.answered(answer)
    return log.asked(
        tenant=caller.tenant, key_id=caller.key_id, entrance="ask", question=query.text,
        parameters=parameters_of(query), hits=hits, outcome=answer.status, confidence=answer.confidence,
        asked_at=asked_at, milliseconds=milliseconds,
    )  # fmt: skip


def parameters_of(query: SearchQuery) -> Mapping[str, Json]:
    """What of a query differs from the defaults, beside the question and the tenant."""
    found: dict[str, Json] = {}
    for field in dataclasses.fields(query):
        value = getattr(query, field.name)
        default = field.default_factory() if callable(field.default_factory) else field.default
        if field.name not in _NOT_PARAMETERS and value != default:
            found[field.name] = value.isoformat() if isinstance(value, date) else value
    return found
