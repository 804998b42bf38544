"""From settings to services; everything that was opened is closed at the end."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime

import psycopg

from rag_pipeline.embedded import database_url
from rag_pipeline.embedding import Embedder, make_embedder
from rag_pipeline.embedding.spaces import embedder_of
from rag_pipeline.errors import DatabaseUnavailable
from rag_pipeline.index.pool import Pool
from rag_pipeline.retrieval.query import SearchQuery
from rag_pipeline.retrieval.rerank import make_reranker
from rag_pipeline.retrieval.retriever import Found, Retriever
from rag_pipeline.serving.freshness import Conditions
from rag_pipeline.serving.gate import Gate
from rag_pipeline.serving.quotas import Quotas
from rag_pipeline.serving.services import Services
from rag_pipeline.serving.workers import Workers
from rag_pipeline.settings import Settings
from rag_pipeline.sources.drops.inbox import Inbox

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
) -> Iterator[Services]:
    """The services that the settings describe. `is_local`: they are reached by a loopback address only.

    Raises:
        ConfigError: a model or a reranker cannot be made as it is configured.
        DatabaseUnavailable: the embedded server does not start; another one may come later.
    """
    with ExitStack() as closing:
        serving = settings.serving
        pool = Pool(database_url(settings), size=serving.max_concurrent + _SPARE, statement_s=serving.request_timeout_s)
        closing.callback(pool.close)
        quotas = Quotas(pool, most=serving.requests_per_month)
        closing.callback(_flush, quotas)
        reranker = make_reranker(settings.rerank, environ=environ)
        if reranker is not None:
            closing.callback(reranker.close)
        # Before what they work with is closed, the workers end.
        workers = Workers(
            max_concurrent=serving.max_concurrent, max_waiting=serving.max_waiting, timeout_s=serving.request_timeout_s
        )
        closing.callback(workers.close)
        spare = Workers(
            max_concurrent=_SPARE, max_waiting=_SPARE_WAITING, timeout_s=serving.request_timeout_s
        )  # fmt: skip
        closing.callback(spare.close)

        def search(query: SearchQuery) -> Found:
            with pool.connection() as connection:
                retriever = Retriever(
                    connection, settings=settings.retrieval, rerank=settings.rerank, reranker=reranker,
                    embedder_of=lambda space: embedder_of(
                        space, settings=settings.embedding, environ=environ, make=make
                    ),
                )  # fmt: skip
                return retriever.find(query)

        yield Services(
            settings=settings, environ=environ, clock=clock, workers=workers, spare=spare, pool=pool, quotas=quotas,
            gate=Gate(settings, is_local=is_local, pool=pool, quotas=quotas, clock=clock),
            conditions=Conditions(settings, pool=pool, spare=spare, clock=clock),
            search=search, inbox=Inbox(settings.inbox_url),
        )  # fmt: skip


def _flush(quotas: Quotas) -> None:
    try:
        quotas.flush()
    except (DatabaseUnavailable, psycopg.Error):
        _log.warning("the requests of the last seconds could not be counted: the database does not answer")
