"""Words around what is embedded, for models that were trained with them ("query: …", "passage: …")."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rag_pipeline.embedding.embedder import EmbeddedBatch, Embedder, Vectors, embed_stream
from rag_pipeline.embedding.passing import PassingEmbedder
from rag_pipeline.settings import Context


class PromptedEmbedder(PassingEmbedder):
    """An embedder that puts a prefix before each passage, and another one before each question.

    Chunks bring what they stand under with them; only the space has to know that they do.
    """

    def __init__(self, embedder: Embedder, *, passage_prefix: str, query_prefix: str, context: Context) -> None:
        """The prefixes are put before the text as they are; `context` names what the texts come with."""
        super().__init__(embedder)
        self._passage_prefix = passage_prefix
        self._query_prefix = query_prefix
        self._context = context

    @property
    def recipe(self) -> str:
        prefixes = f" passage={self._passage_prefix!r} query={self._query_prefix!r}"
        has_prefixes = self._passage_prefix or self._query_prefix
        return f"{self._embedder.recipe} context={self._context}{prefixes if has_prefixes else ''}"

    def embed(self, texts: Sequence[str]) -> Iterator[EmbeddedBatch]:
        return self._embedder.embed([self._passage_prefix + text for text in texts])

    def embed_stream(self, texts: Iterable[str]) -> Iterator[EmbeddedBatch]:
        return embed_stream(self._embedder, (self._passage_prefix + text for text in texts))

    def embed_query(self, text: str) -> Vectors:
        return self._embedder.embed_query(self._query_prefix + text)

    def input_tokens(self, texts: Sequence[str]) -> list[int]:
        return self._embedder.input_tokens([self._passage_prefix + text for text in texts])
