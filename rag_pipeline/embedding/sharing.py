"""One embedder for many questions, from whichever thread they come: loading a model takes longer than a question."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from rag_pipeline.embedding.embedder import Embedder, Vectors, make_embedder
from rag_pipeline.embedding.passing import PassingEmbedder
from rag_pipeline.embedding.spaces import embedder_of
from rag_pipeline.model import EmbeddingSpace
from rag_pipeline.settings import Embedding


class SharedEmbedders:
    """The embedder of each space, made when it is first asked for and kept until `close`."""

    def __init__(
        self, settings: Embedding, *, environ: Mapping[str, str], make: Callable[..., Embedder] = make_embedder
    ) -> None:
        self._settings = settings
        self._environ = environ
        self._make = make
        self._lock = threading.Lock()
        self._kept: dict[tuple[object, ...], _Shared] = {}

    def of(self, space: EmbeddingSpace) -> Embedder:
        """The embedder of a space; its `close` does nothing, so whoever used it may do as with one of its own.

        Raises:
            ConfigError: as `make_embedder`.
        """
        # Another database may give the same number to a space of another model.
        key = (space.space_id, space.provider, space.model, space.dimensions, space.recipe)
        with self._lock:
            if key not in self._kept:
                made = embedder_of(space, settings=self._settings, environ=self._environ, make=self._make)
                self._kept[key] = _Shared(made)
            return self._kept[key]

    def close(self) -> None:
        """Stop threads and connections of all of them; safe to call twice."""
        with self._lock:
            kept, self._kept = list(self._kept.values()), {}
        for shared in kept:
            shared.end()


class _Shared(PassingEmbedder):
    """Asked by one thread at a time, as every embedder wants to be."""

    def __init__(self, embedder: Embedder) -> None:
        super().__init__(embedder)
        self._lock = threading.Lock()

    def embed_query(self, text: str) -> Vectors:
        with self._lock:
            return self._embedder.embed_query(text)

    def close(self) -> None:
        """Does nothing: it is shared."""

    def end(self) -> None:
        self._embedder.close()
