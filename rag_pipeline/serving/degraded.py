"""What callers are told of what was done without: that it was, and not why, which may name machines and keys of ours.

Why stands in the log.
"""

from __future__ import annotations

from typing import Final

_TOLD: Final = {
    "searched by words alone": "searched by words alone: the model that embeds questions does not answer",
    "not searched by meaning": "not searched by meaning: the embedding model knows too few of the question's words",
    "not reranked": "not reranked: the reranker does not answer",
    "not rewritten": "not rewritten to stand alone: the language model does not answer",
    "answered with quotes": "answered with quotes: the language model could not answer",
    "cut off": "cut off: it became longer than answers may be",
}
"""By what the rooms below begin to say it with."""
_OTHER: Final = "something was done without: the log of the service says what"


def told(degraded: str) -> str:
    """A `degraded` of a search or an answer, for callers; told again, it stays the same."""
    if not degraded:
        return ""
    return "; ".join(said for mark, said in _TOLD.items() if mark in degraded) or _OTHER
