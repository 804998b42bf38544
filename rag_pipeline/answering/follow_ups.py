"""What could be asked next: questions that the sources at hand answer. Pure.

A model that writes an answer suggests some in the same call; those that its sources do not speak of are left out.
Without a model, or where it suggests too few, they are made of what the hits stand under: headings and symbols.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from rag_pipeline.answering.citations import without_marks
from rag_pipeline.answering.links import plain
from rag_pipeline.answering.terms import content_terms
from rag_pipeline.lexical.analyzer import terms_of
from rag_pipeline.model import SearchHit

_MOST_CHARS: Final = 160
_SPOKEN_OF: Final = 0.5
"""Such a share of its terms a source must hold."""
_RELATED: Final = 0.3
"""Of the terms that were asked for, such a share a hit must hold whose heading becomes a question."""
_SAME: Final = 0.8
_NAME: Final = re.compile(r"[A-Za-z_][\w.]*(?:\(\))?")
_EMPTY_HEADING: Final = re.compile(
    r"\W*(?:overview|introduction|intro|notes?|see also|examples?|usage|contents|table of contents|references|readme|"
    r"unreleased|changelog|misc|other|general|summary|conclusion|description|comments?)\W*",
    re.IGNORECASE,
)


def follow_ups(asked: str, suggested: Sequence[str], hits: Sequence[SearchHit], *, most: int) -> list[str]:
    """At most so many questions: the model's that the hits speak of, then those made of headings."""
    chosen: list[str] = []
    told = [set(terms_of("\n".join([hit.title, *hit.heading_path, hit.text]))) for hit in hits]
    for question in [*_plausible(suggested, told), *_of_headings(asked, hits)]:
        if len(chosen) >= most:
            break
        if not any(_alike(question, other) for other in [asked, *chosen]):
            chosen.append(question)
    return chosen


def _plausible(suggested: Sequence[str], told: Sequence[set[str]]) -> list[str]:
    """What a model suggested, as plain text, where some hit speaks of it."""
    found = []
    for text in suggested:
        question = plain(without_marks(text), max_chars=_MOST_CHARS)
        terms = set(content_terms(question))
        if len(text) <= 2 * _MOST_CHARS and terms and any(len(terms & one) >= _SPOKEN_OF * len(terms) for one in told):
            found.append(question)
    return found


def _of_headings(asked: str, hits: Sequence[SearchHit]) -> list[str]:
    """A question about the place of each hit that has to do with what was asked.

    What stands first answers the question already, so it comes last.
    """
    questions = []
    wanted = set(content_terms(asked))
    related = [hit for hit in hits if len(wanted & set(terms_of(hit.text))) >= _RELATED * len(wanted)]
    for hit in [*related[1:], *related[:1]]:
        place = plain(hit.heading_path[-1] if hit.heading_path else hit.title, max_chars=80).strip(" #:.")
        # A package is called by its folder; its file is called like every other's.
        place = place.removesuffix("/__init__.py")
        if not content_terms(place) or _EMPTY_HEADING.fullmatch(place):
            continue
        if place.endswith("?"):
            questions.append(place)
        elif hit.source_type == "code" and _NAME.fullmatch(place):
            questions.append(f"What does {place} do?")
        else:
            questions.append(f"What is said about “{place}”?")
    return questions


def _alike(one: str, other: str) -> bool:
    left, right = set(content_terms(one)), set(content_terms(other))
    return one == other or len(left & right) >= _SAME * max(1, min(len(left), len(right)))
