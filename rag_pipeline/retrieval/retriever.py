"""A retriever over one database: knows the active embedding space and the model that fits it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import psycopg
from numpy.typing import NDArray

from rag_pipeline.embedding import Embedder, make_embedder
from rag_pipeline.embedding.spaces import embedder_of
from rag_pipeline.errors import ConfigError, NothingIndexed, RagPipelineError, UnreadableText
from rag_pipeline.index.changes import IndexState
from rag_pipeline.index.database import Connection
from rag_pipeline.index.spaces import active_space
from rag_pipeline.model import EmbeddingSpace, SearchHit
from rag_pipeline.retrieval.observer import NOBODY, Observer, timed
from rag_pipeline.retrieval.query import SearchQuery
from rag_pipeline.retrieval.refinement import Refinement
from rag_pipeline.retrieval.rerank import Reranker, make_reranker
from rag_pipeline.retrieval.search import SpaceChanged, search
from rag_pipeline.settings import Rerank, Retrieval, Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a search gave."""

    hits: Sequence[SearchHit]
    degraded: str = ""
    """What could not be done, and was done without; empty: nothing."""
    is_unreadable: bool = False
    """The model cannot read the question, so its words alone were looked for, as they will be the next time."""
    state: IndexState | None = None
    """Of the index before it was searched, where somebody looked: what is here is of that state, or of a newer one."""

    @property
    def corrected(self) -> dict[str, list[str]]:
        """Words of the question that no document holds, with the words of hits that were looked for instead."""
        return corrected_in(self.hits)


def corrected_in(hits: Sequence[SearchHit]) -> dict[str, list[str]]:
    """What hits say of words that were looked for instead of others; see `SearchHit.corrected`."""
    found: dict[str, dict[str, None]] = {}
    for hit in hits:
        for word, words in hit.corrected.items():
            found.setdefault(word, {}).update(dict.fromkeys(words))
    return {word: list(words) for word, words in found.items()}


def said_of_corrections(corrected: Mapping[str, Sequence[str]]) -> str:
    """Corrections for people to read; empty: there are none."""
    if not corrected:
        return ""
    instead = "; ".join(f"{' or '.join(words)} instead of {word}" for word, words in corrected.items())
    return f"no document holds some words, so similar ones were looked for: {instead}"


class Retriever:
    """Answers queries over an open connection; `embedder_of` makes the embedder of a space.

    `space`: search this one, whichever is active; it is how a space is measured before it answers anybody.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        embedder_of: Callable[[EmbeddingSpace], Embedder],
        settings: Retrieval | None = None,
        rerank: Rerank | None = None,
        reranker: Reranker | None = None,
        space: EmbeddingSpace | None = None,
        observer: Observer = NOBODY,
    ) -> None:
        self._observer = observer
        self._space = space
        self._connection = connection
        self._embedder_of = embedder_of
        self._settings = settings or Retrieval()
        self._rerank = rerank or Rerank()
        self._reranker = reranker

    def search(self, query: SearchQuery) -> list[SearchHit]:
        """At most `k` hits, best first, all of them from one embedding space.

        Raises:
            ConfigError: the query is not answerable as it stands, or nothing is indexed yet.
        """
        return list(self.find(query).hits)

    def find(self, query: SearchQuery) -> Found:
        """At most `k` hits, best first; without a model, those of the lexical leg alone.

        Raises:
            ConfigError: the query is not answerable as it stands, or nothing is indexed yet.
            TransientError: only the vector leg was asked for, and its model does not answer.
            UnreadableText: only the vector leg was asked for, and its model knows too few words of the question.
        """
        query.check()
        while True:
            space = self._space or self._active()
            try:
                return self._find(query, space)
            except SpaceChanged:
                continue  # another one was promoted between our look and the search
            except (
                psycopg.errors.UndefinedTable, psycopg.errors.UndefinedColumn, psycopg.errors.UndefinedFunction
            ):  # fmt: skip
                # And the one we looked at was dropped, or its vectors were laid out anew.
                if self._space is not None or self._active() == space:
                    raise

    def _active(self) -> EmbeddingSpace:
        space = active_space(self._connection)
        if space is None:
            raise NothingIndexed("nothing is indexed yet: run `rag-pipeline up` or `rag-pipeline materialize` first")
        return space

    def _find(self, query: SearchQuery, space: EmbeddingSpace) -> Found:
        vector, degraded, is_unreadable = None, "", False
        if query.legs != "lexical":
            try:
                with timed(self._observer, "embed"):
                    vector = self._embedded(query.text, space)
            except RagPipelineError as error:
                if query.legs == "vector":
                    raise
                is_unreadable = isinstance(error, UnreadableText)
                degraded = f"{'not searched by meaning' if is_unreadable else 'searched by words alone'}: {error}"
        searched = space if vector is not None else None
        refinement = Refinement(
            connection=self._connection, query=query, space=searched, settings=self._settings, rerank=self._rerank,
            reranker=self._reranker, observer=self._observer,
        )  # fmt: skip
        hits = search(
            self._connection, query, space=searched, vector=vector, settings=self._settings, depth=refinement.depth,
            must_be_active=self._space is None, observer=self._observer,
        )  # fmt: skip
        hits, problem = refinement.apply(hits)
        told = "; ".join(part for part in (degraded, problem) if part)
        return Found(hits=hits, degraded=told, is_unreadable=is_unreadable and not problem)

    def _embedded(self, text: str, space: EmbeddingSpace) -> NDArray[np.float32]:
        embedder = self._embedder_of(space)
        try:
            if embedder.recipe != space.recipe:
                raise ConfigError(
                    f"the index was embedded with recipe {space.recipe!r}, this code uses {embedder.recipe!r}: "
                    "run `rag-pipeline materialize` to bring it up to date"
                )
            return embedder.embed_query(text)
        finally:
            embedder.close()


@contextmanager
def open_retriever(
    connection: Connection,
    settings: Settings,
    *,
    environ: Mapping[str, str],
    make: Callable[..., Embedder] = make_embedder,
    observer: Observer = NOBODY,
) -> Iterator[Retriever]:
    """The retriever that the settings describe, with their reranker.

    Raises:
        ConfigError: the reranker cannot be made as it is configured.
    """
    reranker = make_reranker(settings.rerank, environ=environ)
    try:
        yield Retriever(
            connection, settings=settings.retrieval, rerank=settings.rerank, reranker=reranker, observer=observer,
            embedder_of=lambda space: embedder_of(space, settings=settings.embedding, environ=environ, make=make),
        )  # fmt: skip
    finally:
        if reranker is not None:
            reranker.close()
