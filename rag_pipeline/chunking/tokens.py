"""What counts tokens. The counters of real models belong to their embedders; here is only the contract."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

TokenCounter = Callable[[Sequence[str]], list[int]]
"""Texts to their lengths in tokens, in order, without the tokens a model adds around an input.

The chunker asks for many texts at a time, so that a counter can work in batches.
"""


def adds_up(count_tokens: TokenCounter) -> bool:
    """Whether a text has as many tokens as its parts together, cut anywhere at white space: none is counted twice.

    A counter says so by an attribute of this name; those whose tokens hold white space do not add up.
    """
    return getattr(count_tokens, "adds_up", False) is True


_WORD = re.compile(r"\w+|[^\w\s]")


def count_words(texts: Sequence[str]) -> list[int]:
    """Words and punctuation marks of each text: a stand-in for a model's tokens where no model is at hand."""
    return [len(_WORD.findall(text)) for text in texts]
