"""An embedder for many questions: each is embedded once for all legs, and the model stays loaded between them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rag_pipeline.embedding import EmbeddedBatch, Embedder
from rag_pipeline.embedding.embedder import Vectors
from rag_pipeline.evaluation.run import Search
from rag_pipeline.index.database import Connection
from rag_pipeline.retrieval.retriever import Retriever


def search_of(connection: Connection, embedder: Embedder) -> Search:
    """The search over the active space of a database, whose vectors `embedder` made; it stays the caller's to close."""
    remembering = RememberingEmbedder(embedder)
    return Retriever(connection, embedder_of=lambda _space: remembering).search


class RememberingEmbedder:
    """Passes everything on but `close`, which a search calls after each question: whoever made the embedder does it."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._known: dict[str, Vectors] = {}

    @property
    def provider(self) -> str:
        """See `Embedder`, as for all that follow."""
        return self._embedder.provider

    @property
    def model(self) -> str:
        """Passed on."""
        return self._embedder.model

    @property
    def recipe(self) -> str:
        """Passed on."""
        return self._embedder.recipe

    @property
    def dimensions(self) -> int | None:
        """Passed on."""
        return self._embedder.dimensions

    @property
    def model_seconds(self) -> float:
        """Passed on."""
        return self._embedder.model_seconds

    def embed(self, texts: Sequence[str]) -> Iterator[EmbeddedBatch]:
        """Passed on."""
        return self._embedder.embed(texts)

    def embed_query(self, text: str) -> Vectors:
        """Embedded once, then known."""
        if text not in self._known:
            self._known[text] = self._embedder.embed_query(text)
        return self._known[text]

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Passed on."""
        return self._embedder.count_tokens(texts)

    def close(self) -> None:
        """Does nothing."""
