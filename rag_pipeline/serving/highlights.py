"""Where a hit's text says what the question asks for: spans to mark, so that a person sees why it is there. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from rag_pipeline.lexical.analyzer import placed_terms
from rag_pipeline.lexical.questions import other_spellings, weighted_terms

Span = tuple[int, int]
"""Start and end of a part of a text, in code points; the end is not part of it."""


def wanted_terms(question: str) -> frozenset[str]:
    """The terms of a question that are worth marking: function words only where it has no others."""
    weights = weighted_terms(question)
    telling = frozenset(term for term, weight in weights.items() if weight == 1.0)
    wanted = telling or frozenset(weights)
    return wanted | {spelling for term in wanted for spelling in other_spellings(term)}


def highlights(text: str, wanted: Collection[str]) -> list[Span]:
    """The parts of a text whose terms are wanted: inflected words as a whole, of identifiers only what was asked for.

    In order, none empty, and none touching another.
    """
    return merged([(start, end) for term, start, end in placed_terms(text, among=wanted) if term in wanted])


def merged(spans: Sequence[Span]) -> list[Span]:
    """The same places, in order, with what overlaps or touches made one."""
    whole: list[Span] = []
    for start, end in sorted(span for span in spans if span[0] < span[1]):
        if whole and start <= whole[-1][1]:
            whole[-1] = (whole[-1][0], max(whole[-1][1], end))
        else:
            whole.append((start, end))
    return whole
