"""From settings to services; everything that was opened is closed at the end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime

from rag_pipeline.answering.answerer import Answerer
from rag_pipeline.answering.language_model import LanguageModel
from rag_pipeline.embedded import database_url
from rag_pipeline.embedding import Embedder, make_embedder
from rag_pipeline.index.pool import Pool
from rag_pipeline.retrieval.rerank import make_reranker
from rag_pipeline.serving.asking import Asking
from rag_pipeline.serving.caches import Caches
from rag_pipeline.serving.embedders import QuestionEmbedders, QuestionVectors
from rag_pipeline.serving.gate import Gate
from rag_pipeline.serving.metrics import Metrics
from rag_pipeline.serving.record import make_query_log
from rag_pipeline.serving.searching import Searching
from rag_pipeline.serving.services import Services
from rag_pipeline.serving.workers import Workers
from rag_pipeline.settings import Settings
from rag_pipeline.settings.serving import Serving
from rag_pipeline.sources.drops.inbox import Inbox
from rag_pipeline.sources.drops.received import ReceivedDocuments

_SPARE_CONNECTIONS = 2  # for what must not wait behind searches: health, counts


@contextmanager
def services_of(
    settings: Settings,
    environ: Mapping[str, str],
    *,
    is_local: bool,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    make: Callable[..., Embedder] = make_embedder,
    model: LanguageModel | None = None,
) -> Iterator[Services]:
    """The services that the settings describe. `is_local`: they are reached by a loopback address only.

    Raises:
        ConfigError: a model or a reranker cannot be made as it is configured.
        DatabaseUnavailable: the embedded server does not start; another one may come later.
    """
    with ExitStack() as closing:
        serving = settings.serving
        pool = Pool(database_url(settings), size=serving.max_concurrent + _SPARE_CONNECTIONS)
        closing.callback(pool.close)
        metrics = Metrics()
        log = make_query_log(settings, pool.connection, metrics)
        closing.callback(log.close)
        reranker = make_reranker(settings.rerank, environ=environ)
        if reranker is not None:
            closing.callback(reranker.close)
        caches = Caches(
            most=serving.answer_cache, ttl_s=serving.answer_cache_s, monotonic=time.monotonic,
            looked=lambda cache, hit: metrics.cached(cache, hit=hit),
        )  # fmt: skip
        embedders = QuestionEmbedders(
            settings.embedding, environ=environ, make=make, concurrent=serving.max_concurrent,
            patience_s=serving.embedding_timeout_s, monotonic=time.monotonic,
            vectors=QuestionVectors(
                most=serving.embedding_cache, looked=lambda hit: metrics.cached("embedding", hit=hit)
            ),
        )  # fmt: skip
        closing.callback(embedders.close)
        search = Searching(
            settings, pool=pool, embedders=embedders, reranker=reranker, caches=caches, observer=metrics,
            waited=lambda seconds: metrics.took("database", seconds),
        )  # fmt: skip
        answerer = Answerer(search=search, model=model, settings=settings.answering)
        # Before what they work with is closed, the workers end.
        workers, writers = _workers(serving), _workers(serving)
        closing.callback(workers.close)
        closing.callback(writers.close)
        metrics.watch("requests_waiting", lambda: workers.busy)
        inbox = Inbox(settings.inbox_url)
        yield Services(
            settings=settings, environ=environ, clock=clock, workers=workers, pool=pool,
            gate=Gate(settings, is_local=is_local), search=search, inbox=inbox, log=log,
            documents=ReceivedDocuments(inbox, clock=clock, max_drop_bytes=settings.drops.max_drop_bytes),
            metrics=metrics, asking=Asking(settings, pool=pool, answerer=answerer, caches=caches), writers=writers,
            embedders=embedders, caches=caches,
        )  # fmt: skip


def _workers(serving: Serving) -> Workers:
    return Workers(
        max_concurrent=serving.max_concurrent, max_waiting=serving.max_waiting, timeout_s=serving.request_timeout_s
    )
