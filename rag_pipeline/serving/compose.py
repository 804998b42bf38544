"""From settings to services; everything that was opened is closed at the end."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime

import psycopg

from rag_pipeline.answering.language_model import LanguageModel
from rag_pipeline.answering.models import make_language_model
from rag_pipeline.embedded import database_url
from rag_pipeline.embedding import Embedder, make_embedder
from rag_pipeline.errors import DatabaseUnavailable
from rag_pipeline.index.replica import open_databases
from rag_pipeline.serving.freshness import Conditions
from rag_pipeline.serving.gate import Gate
from rag_pipeline.serving.metrics import Metrics
from rag_pipeline.serving.questions import questions_of
from rag_pipeline.serving.quotas import Quotas
from rag_pipeline.serving.record import make_query_log
from rag_pipeline.serving.services import Services
from rag_pipeline.serving.workers import Workers
from rag_pipeline.settings import Settings
from rag_pipeline.sources.drops.inbox import Inbox
from rag_pipeline.sources.drops.received import ReceivedDocuments

_log = logging.getLogger(__name__)
_SPARE = 2  # threads and connections for what must not wait behind searches
_SPARE_WAITING = 50


@contextmanager
def services_of(
    settings: Settings,
    environ: Mapping[str, str],
    *,
    is_local: bool,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    make: Callable[..., Embedder] = make_embedder,
    make_model: Callable[..., LanguageModel | None] = make_language_model,
) -> Iterator[Services]:
    """The services that the settings describe. `is_local`: they are reached by a loopback address only.

    Raises:
        ConfigError: a model or a reranker cannot be made as it is configured.
        DatabaseUnavailable: the embedded server does not start; another one may come later.
    """
    with ExitStack() as closing:
        serving = settings.serving
        metrics = Metrics()
        databases = closing.enter_context(
            open_databases(
                database_url(settings), settings.replica_url, size=serving.max_concurrent + _SPARE,
                statement_s=serving.request_timeout_s, fell_back=metrics.fell_back,
            )
        )  # fmt: skip
        pool = databases.primary
        log = make_query_log(settings, pool.connection, metrics)
        closing.callback(log.close)
        quotas = Quotas(pool, lookup=databases.keys, most=serving.requests_per_month)
        closing.callback(_flush, quotas)
        questions = closing.enter_context(
            questions_of(
                settings, environ, databases=databases, metrics=metrics, clock=clock, make=make, make_model=make_model
            )
        )  # fmt: skip
        # Before what they work with is closed, the workers end.
        workers = Workers(
            max_concurrent=serving.max_concurrent, max_waiting=serving.max_waiting, timeout_s=serving.request_timeout_s
        )
        closing.callback(workers.close)
        metrics.watch("requests_waiting", lambda: workers.busy)
        inbox = Inbox(settings.inbox_url)
        spare = Workers(
            max_concurrent=_SPARE, max_waiting=_SPARE_WAITING, timeout_s=serving.request_timeout_s
        )  # fmt: skip
        closing.callback(spare.close)
        yield Services(
            settings=settings, environ=environ, clock=clock, workers=workers, spare=spare, pool=pool, quotas=quotas,
            reads=databases.reads,
            gate=Gate(settings, is_local=is_local, pool=databases.keys, quotas=quotas, clock=clock),
            conditions=Conditions(settings, databases=databases, spare=spare, clock=clock),
            search=questions.search, asking=questions.asking, writers=questions.writers, embedders=questions.embedders,
            caches=questions.caches, inbox=inbox, log=log, metrics=metrics,
            documents=ReceivedDocuments(inbox, clock=clock, max_drop_bytes=settings.drops.max_drop_bytes),
        )  # fmt: skip


def _flush(quotas: Quotas) -> None:
    try:
        quotas.flush()
    except (DatabaseUnavailable, psycopg.Error):
        _log.warning("the requests of the last seconds could not be counted: the database does not answer")
