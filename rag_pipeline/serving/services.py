"""What the routes work with; one of each per service, made by `compose`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from rag_pipeline.index.pool import Pool
from rag_pipeline.model import Answer
from rag_pipeline.retrieval.query import SearchQuery
from rag_pipeline.retrieval.retriever import Found
from rag_pipeline.serving.freshness import Conditions
from rag_pipeline.serving.gate import Gate
from rag_pipeline.serving.quotas import Quotas
from rag_pipeline.serving.workers import Workers
from rag_pipeline.settings import Settings
from rag_pipeline.sources.drops.inbox import Inbox


class Answerer(Protocol):
    """Gives way to `answering.answerer.Answerer`."""

    def ask(self, question: Any) -> Answer: ...

    def stream(self, question: Any) -> Iterator[Any]: ...


class QueryLog(Protocol):
    """Gives way to the query log."""

    def asked(self, **what: Any) -> Any: ...


class Metrics(Protocol):
    """Gives way to the metrics."""


class Caches(Protocol):
    """Gives way to the caches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """All of a service but its routes. Blocking work goes through `workers`."""

    settings: Settings
    environ: Mapping[str, str]
    clock: Callable[[], datetime]
    workers: Workers
    spare: Workers
    """For what must not wait behind searches: health, and what is written now and then."""
    pool: Pool
    gate: Gate
    quotas: Quotas
    conditions: Conditions
    search: Callable[[SearchQuery], Found]
    """Blocks; takes a connection from the pool."""
    inbox: Inbox
    answerer: Answerer = None  # type: ignore[assignment]
    log: QueryLog = None  # type: ignore[assignment]
    metrics: Metrics = None
    caches: Caches = None
