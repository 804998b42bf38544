"""Searches of a service: over its pool, with the models it keeps open, and what it found before.

What goes wrong with a model costs a leg, not the search, and callers are told that, but not what went wrong: that
stands in the log, because it may name machines and variables of ours.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import replace

from rag_pipeline.embedding import Embedder
from rag_pipeline.embedding.embedder import Vectors
from rag_pipeline.embedding.passing import PassingEmbedder
from rag_pipeline.embedding.question_vectors import QuestionEmbedders
from rag_pipeline.errors import NothingIndexed, RagPipelineError, TransientError, UnknownSource, UnreadableText
from rag_pipeline.index.changes import index_state
from rag_pipeline.index.database import Connection
from rag_pipeline.index.pool import PATIENCE_S, Connections, connected_twice
from rag_pipeline.model import EmbeddingSpace
from rag_pipeline.retrieval.deadline import within
from rag_pipeline.retrieval.observer import NOBODY, Observer
from rag_pipeline.retrieval.query import SearchQuery
from rag_pipeline.retrieval.rerank import Reranker
from rag_pipeline.retrieval.retriever import Found, Retriever
from rag_pipeline.serving.caches import Caches, query_key
from rag_pipeline.serving.degraded import told
from rag_pipeline.settings import Settings
from rag_pipeline.settings.model import fingerprint_of

_log = logging.getLogger(__name__)


class Searching:
    """Searches; may be used from several threads."""

    def __init__(
        self, settings: Settings, *, reads: Connections, embedders: QuestionEmbedders, reranker: Reranker | None,
        caches: Caches, observer: Observer = NOBODY, waited: Callable[[float], object] = lambda seconds: None,
    ) -> None:  # fmt: skip
        """`waited` is told how long each search waited for its connection."""
        self._waited = waited
        self._observer = observer
        self._settings = settings
        self._fingerprint = fingerprint_of(settings, "retrieval", "rerank", "embedding")
        self._reads = reads
        self._embedders = embedders
        self._reranker = reranker
        self._caches = caches

    def __call__(self, query: SearchQuery, *, timeout_s: float | None = None) -> Found:
        """What a search finds; blocks.

        `timeout_s`: no more than half of it goes into waiting for a connection, and a quarter into waiting for the
        question's vector, so that something is left to search by words.

        Raises:
            ConfigError: the query is not answerable as it stands.
            NothingIndexed: there is nothing to search yet.
            TransientError: only the vector leg was asked for, and its model does not answer.
            DatabaseUnavailable: the database does not answer.
        """
        query.check()
        started = time.perf_counter()

        def work(connection: Connection) -> Found:
            self._waited(time.perf_counter() - started)
            return self._found(connection, query, timeout_s)

        patience_s = PATIENCE_S if timeout_s is None else min(PATIENCE_S, timeout_s / 2)
        return connected_twice(lambda: self._reads.connection(patience_s=patience_s), work)

    def _found(self, connection: Connection, query: SearchQuery, timeout_s: float | None) -> Found:
        key, state = query_key(query, settings=self._fingerprint), index_state(connection, query.tenant)
        known = self._caches.results.get(key, state)
        if known is not None:
            return known
        found = replace(self._searched(connection, query, timeout_s), state=state)
        if not found.degraded or found.is_unreadable:
            self._caches.results.put(key, state, found)
        return found

    def _searched(self, connection: Connection, query: SearchQuery, timeout_s: float | None) -> Found:
        def embedder_of(space: EmbeddingSpace) -> Embedder:
            embedder = self._embedders.of(space)
            return embedder if timeout_s is None else _Hurried(embedder, timeout_s / 4)

        retriever = Retriever(
            connection, settings=self._settings.retrieval, rerank=self._settings.rerank, reranker=self._reranker,
            embedder_of=embedder_of, observer=self._observer,
        )  # fmt: skip
        try:
            found = retriever.find(query)
        except (NothingIndexed, UnknownSource, UnreadableText):
            raise
        except RagPipelineError as error:
            # The query was fit to be answered, so this is about a model, and the vector leg was all that was wanted.
            _log.warning("a question could not be embedded: %s", error)
            raise TransientError(
                "the model that embeds questions does not answer: search with legs=fused or legs=lexical meanwhile"
            ) from error
        if not found.degraded:
            return found
        _log.warning("a search was degraded: %s", found.degraded)
        return replace(found, degraded=told(found.degraded))


class _Hurried(PassingEmbedder):
    """An embedder of questions that is waited for only so long."""

    def __init__(self, embedder: Embedder, patience_s: float) -> None:
        super().__init__(embedder)
        self._patience_s = patience_s

    def embed_query(self, text: str) -> Vectors:
        try:
            return within(self._patience_s, lambda: super(_Hurried, self).embed_query(text))
        except TimeoutError as error:
            raise TransientError(f"the model that embeds questions did not answer in time: {error}") from error
