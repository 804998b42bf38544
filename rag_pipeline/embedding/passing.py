"""An embedder around another one: passes everything on, for those who change a part of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rag_pipeline.embedding.embedder import EmbeddedBatch, Embedder, Vectors, embed_stream


class PassingEmbedder:
    """Does what the embedder in it does; see `Embedder`."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    @property
    def provider(self) -> str:
        return self._embedder.provider

    @property
    def model(self) -> str:
        return self._embedder.model

    @property
    def recipe(self) -> str:
        return self._embedder.recipe

    @property
    def dimensions(self) -> int | None:
        return self._embedder.dimensions

    @property
    def model_seconds(self) -> float:
        return self._embedder.model_seconds

    def embed(self, texts: Sequence[str]) -> Iterator[EmbeddedBatch]:
        return self._embedder.embed(texts)

    def embed_stream(self, texts: Iterable[str]) -> Iterator[EmbeddedBatch]:
        return embed_stream(self._embedder, texts)

    def embed_query(self, text: str) -> Vectors:
        return self._embedder.embed_query(text)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return self._embedder.count_tokens(texts)

    def input_tokens(self, texts: Sequence[str]) -> list[int]:
        return self._embedder.input_tokens(texts)

    def close(self) -> None:
        self._embedder.close()
