"""What the routes work with; one of each per service, made by `compose`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from rag_pipeline.embedding.question_vectors import QuestionEmbedders
from rag_pipeline.index.pool import Connections, Pool
from rag_pipeline.index.query_log import QueryLog
from rag_pipeline.serving.asking import Asking
from rag_pipeline.serving.caches import Caches
from rag_pipeline.serving.freshness import Conditions
from rag_pipeline.serving.gate import Gate
from rag_pipeline.serving.metrics import Metrics
from rag_pipeline.serving.quotas import Quotas
from rag_pipeline.serving.searching import Searching
from rag_pipeline.serving.workers import Workers
from rag_pipeline.settings import Settings
from rag_pipeline.sources.drops.inbox import Inbox
from rag_pipeline.sources.drops.received import ReceivedDocuments


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
    """Of the database that takes writes."""
    reads: Connections
    """Of whatever answers searches: a replica, where there is one and it answers."""
    gate: Gate
    quotas: Quotas
    conditions: Conditions
    search: Searching
    """Blocks; takes a connection from the pool."""
    inbox: Inbox
    documents: ReceivedDocuments
    log: QueryLog
    metrics: Metrics
    asking: Asking
    """Questions to answers, which block; through `writers`."""
    writers: Workers
    """Threads for answers while they are written, so that searches need not wait for a language model."""
    embedders: QuestionEmbedders
    caches: Caches
