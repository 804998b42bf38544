"""A question to weighted terms: what of it a chunk should hold, and how much each term says."""

from __future__ import annotations

from typing import Final

from rag_pipeline.lexical.analyzer import terms_of

FUNCTION_WORD_WEIGHT: Final = 0.2
"""Against 1 for every other term. Weighed like the rest, `how`, `the` and `does` outvote the words that matter where
they are rare, as in code, which has no articles (docs/retrieval.md has the figures)."""

_FUNCTION_WORDS: Final = frozenset(
    terms_of(
        "how what when where why who which whose whom do does did can could should would will i you we my your our me "
        "us is are was were be been am there the a an of to in on for with and or it its this that these those if "
        "from by as at"
    )
)


def weighted_terms(question: str, *, function_words: float = FUNCTION_WORD_WEIGHT) -> dict[str, float]:
    """The distinct terms of a question, in reading order, and the factor of each in its BM25 sum.

    A term that is asked for twice counts once: questions repeat words for grammar, not for emphasis.
    """
    return {term: function_words if term in _FUNCTION_WORDS else 1.0 for term in terms_of(question)}
