"""An embedder for many questions: each is embedded once for all legs, and the model stays loaded between them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from rag_pipeline.embedding import Embedder
from rag_pipeline.embedding.embedder import Vectors
from rag_pipeline.embedding.passing import PassingEmbedder
from rag_pipeline.errors import ConfigError, TransientError, UnreadableText
from rag_pipeline.evaluation.run import Search
from rag_pipeline.index.database import Connection
from rag_pipeline.model import EmbeddingSpace, SearchHit
from rag_pipeline.retrieval.query import SearchQuery
from rag_pipeline.retrieval.rerank import make_reranker
from rag_pipeline.retrieval.retriever import Retriever
from rag_pipeline.settings import Settings


@contextmanager
def open_search(
    connection: Connection,
    embedder: Embedder,
    *,
    settings: Settings,
    environ: Mapping[str, str],
    space: EmbeddingSpace | None = None,
) -> Iterator[Search]:
    """The search that people get, over the active space of a database or over `space`; `embedder` made its vectors.

    It raises where people would get less than was asked for, a TransientError when a model does not answer and a
    ConfigError when there is no reranker: figures of half a search would pass for those of a whole one. `embedder`
    stays the caller's to close.
    """
    remembering = RememberingEmbedder(embedder)
    reranker = make_reranker(settings.rerank, environ=environ)
    retriever = Retriever(
        connection, settings=settings.retrieval, rerank=settings.rerank, reranker=reranker,
        embedder_of=lambda _space: remembering, space=space,
    )  # fmt: skip

    def search(query: SearchQuery) -> Sequence[SearchHit]:
        if query.rerank and reranker is None:
            raise ConfigError("there is no reranker to measure `reranked` with: set `provider` under [rerank]")
        try:
            found = retriever.find(query)
        except UnreadableText:
            return []  # of the vector leg alone, people get as little
        if found.degraded and not found.is_unreadable:
            raise TransientError(f"{query.text[:80]!r} was not answered as it should be: {found.degraded}")
        return found.hits

    try:
        yield search
    finally:
        if reranker is not None:
            reranker.close()


class RememberingEmbedder(PassingEmbedder):
    """Passes everything on but `close`, which a search calls after each question: whoever made the embedder does it."""

    def __init__(self, embedder: Embedder) -> None:
        super().__init__(embedder)
        self._known: dict[str, Vectors] = {}

    def embed_query(self, text: str) -> Vectors:
        """Embedded once, then known."""
        if text not in self._known:
            self._known[text] = self._embedder.embed_query(text)
        return self._known[text]

    def close(self) -> None:
        """Does nothing."""
