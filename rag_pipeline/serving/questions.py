"""What answers the questions of a service: its models, its caches, and what searches and writes with them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime

from rag_pipeline.answering.language_model import LanguageModel
from rag_pipeline.answering.opening import open_answerer
from rag_pipeline.embedding import Embedder
from rag_pipeline.embedding.question_vectors import QuestionEmbedders, QuestionVectors
from rag_pipeline.index.replica import Databases
from rag_pipeline.retrieval.rerank import make_reranker
from rag_pipeline.serving.asking import Asking
from rag_pipeline.serving.caches import Caches
from rag_pipeline.serving.measured import MeasuredModel
from rag_pipeline.serving.metrics import Metrics
from rag_pipeline.serving.searching import Searching
from rag_pipeline.serving.workers import Workers
from rag_pipeline.settings import Settings


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
    databases: Databases,
    metrics: Metrics,
    clock: Callable[[], datetime],
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
            settings, reads=databases.reads, embedders=embedders, reranker=reranker, caches=caches, observer=metrics,
            waited=lambda seconds: metrics.took("database", seconds),
        )  # fmt: skip
        writers = Workers(
            max_concurrent=serving.max_concurrent, max_waiting=serving.max_waiting, timeout_s=serving.request_timeout_s
        )
        closing.callback(writers.close)
        # Its model ends before the writers do: whoever still waits for it is let go.
        answerer = closing.enter_context(
            open_answerer(
                settings, search=search, environ=environ, make_model=make_model,
                watched=lambda model: MeasuredModel(model, metrics),
            )
        )  # fmt: skip
        asking = Asking(
            settings, reads=databases.reads, pool=databases.primary, answerer=answerer, caches=caches, clock=clock
        )
        yield Questions(search=search, asking=asking, writers=writers, embedders=embedders, caches=caches)
