"""What answers the questions of a service: its models, its caches, and what searches and writes with them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from rag_pipeline.answering.answerer import Answerer
from rag_pipeline.answering.language_model import LanguageModel
from rag_pipeline.embedding import Embedder
from rag_pipeline.embedding.question_vectors import QuestionEmbedders, QuestionVectors
from rag_pipeline.index.pool import Pool
from rag_pipeline.retrieval.rerank import make_reranker
from rag_pipeline.serving.asking import Asking
from rag_pipeline.serving.caches import Caches
from rag_pipeline.serving.measured import MeasuredModel
from rag_pipeline.serving.metrics import Metrics
from rag_pipeline.serving.searching import Searching
from rag_pipeline.serving.workers import Workers
from rag_pipeline.settings import Settings
from rag_pipeline.settings.prices import cost_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Questions:
    """All that takes part in answering."""

    search: Searching
    asking: Asking
    """Answers, which block; to be asked through `writers`."""
    writers: Workers
    """Threads for answers while they are written, so that searches need not wait for a language model."""
    embedders: QuestionEmbedders
    caches: Caches


@contextmanager
def questions_of(
    settings: Settings,
    environ: Mapping[str, str],
    *,
    pool: Pool,
    metrics: Metrics,
    make: Callable[..., Embedder],
    make_model: Callable[..., LanguageModel | None],
) -> Iterator[Questions]:
    """What the settings describe; everything that was opened is closed at the end, after what is at work is done.

    Raises:
        ConfigError: a reranker or a language model cannot be made as it is configured.
    """
    with ExitStack() as closing:
        serving = settings.serving
        reranker = make_reranker(settings.rerank, environ=environ)
        if reranker is not None:
            closing.callback(reranker.close)
        caches = Caches(
            most=serving.answer_cache, ttl_s=serving.answer_cache_s, monotonic=time.monotonic,
            looked=lambda cache, hit: metrics.cached(cache, hit=hit),
        )  # fmt: skip
        vectors = QuestionVectors(
            most=serving.embedding_cache, looked=lambda hit: metrics.cached("embedding", hit=hit)
        )  # fmt: skip
        embedders = QuestionEmbedders(
            settings.embedding, environ=environ, make=make, vectors=vectors, concurrent=serving.max_concurrent,
            patience_s=serving.embedding_timeout_s, monotonic=time.monotonic,
        )  # fmt: skip
        closing.callback(embedders.close)
        search = Searching(
            settings, pool=pool, embedders=embedders, reranker=reranker, caches=caches, observer=metrics,
            waited=lambda seconds: metrics.took("database", seconds),
        )  # fmt: skip
        writers = Workers(
            max_concurrent=serving.max_concurrent, max_waiting=serving.max_waiting, timeout_s=serving.request_timeout_s
        )
        closing.callback(writers.close)
        model = make_model(settings.answering, environ=environ)
        if model is not None:
            # Before the writers end: whoever still waits for it is let go.
            closing.callback(model.close)
        answerer = Answerer(
            search=search, model=MeasuredModel(model, metrics) if model is not None else None,
            settings=settings.answering,
            prices=lambda name, read, written: cost_of(name, read, written, prices=settings.prices),
        )  # fmt: skip
        yield Questions(
            search=search, asking=Asking(settings, pool=pool, answerer=answerer, caches=caches), writers=writers,
            embedders=embedders, caches=caches,
        )  # fmt: skip
