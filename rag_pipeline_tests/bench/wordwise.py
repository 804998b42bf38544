"""What the embedders of benchmarks that ask no model have in common."""

from __future__ import annotations

from collections.abc import Sequence


class Wordwise:
    """Counts words for tokens, takes none of them for spent, and holds nothing that would have to be closed."""

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(text.split()) for text in texts]

    def input_tokens(self, texts: Sequence[str]) -> list[int]:
        return [0] * len(texts)

    def close(self) -> None:
        pass
