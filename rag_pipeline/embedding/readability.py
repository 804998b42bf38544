"""Texts that a model cannot read: it knows too few of their words, so that their vectors would all be alike.

They get no vector, and are found by their words alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from rag_pipeline.embedding.embedder import Embedder, Vectors
from rag_pipeline.embedding.passing import PassingEmbedder
from rag_pipeline.errors import UnreadableText

REMEDY = "set a multilingual model under [embedding] (provider, model)"
"""What to do about texts that a model cannot read."""


@runtime_checkable
class KnowsWords(Protocol):
    """An embedder whose model has a fixed vocabulary; one that reads any bytes has none."""

    def known_shares(self, texts: Sequence[str]) -> list[float]:
        """What share of each text's words the model knows, from 0 to 1; 1 for a text without words."""


class SelectiveEmbedder(PassingEmbedder):
    """An embedder of texts of whose words its model knows enough; see `ChoosyEmbedder`."""

    def __init__(self, embedder: Embedder, *, vocabulary: KnowsWords, min_known_share: float) -> None:
        """`vocabulary` is asked for the texts as they are, without the prefixes that `embedder` may add."""
        super().__init__(embedder)
        self._vocabulary = vocabulary
        self._min_known_share = min_known_share

    def readable(self, texts: Sequence[str]) -> list[bool]:
        """See `ChoosyEmbedder`."""
        return [share >= self._min_known_share for share in self._vocabulary.known_shares(texts)]

    def embed_query(self, text: str) -> Vectors:
        """The vector of a question; raises `UnreadableText` for one of which the model knows too few words."""
        (share,) = self._vocabulary.known_shares([text])
        if share < self._min_known_share:
            raise UnreadableText(
                f"{self.model} knows {share:.0%} of the question's words, and needs {self._min_known_share:.0%} "
                f"(embedding.min_known_share): {REMEDY}"
            )
        return super().embed_query(text)
