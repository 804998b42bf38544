"""Hits to rankings that can be judged, whatever the documents were cut into."""

from __future__ import annotations

from collections.abc import Iterable

from rag_pipeline.evaluation.labels import Label, Question
from rag_pipeline.model import SearchHit


def judged(question: Question, hits: Iterable[SearchHit]) -> list[str]:
    """What the hits found, best first, each once; names that `grades_of` grades are relevant, all others are not.

    A document stands where its best hit stands. Of a document that is labelled by lines, each labelled span stands
    where the first hit that shares a line with it stands; hits elsewhere in it count together as one wrong answer. So
    the number of chunks that a document was cut into changes nothing.
    """
    ranking: dict[str, None] = {}
    for hit in hits:
        if any(_is_of(label, hit) for label in question.left_out):
            continue
        found = [_name(number) for number, label in enumerate(question.relevant) if _answers(label, hit)]
        ranking.update(dict.fromkeys(found or [f"not relevant: {hit.document_id}"]))
    return list(ranking)


def grades_of(question: Question) -> dict[str, int]:
    """The grade of each label of the question, by the name that `judged` gives it."""
    return {_name(number): label.grade for number, label in enumerate(question.relevant)}


def _name(number: int) -> str:
    return f"label {number}"


def _is_of(label: Label, hit: SearchHit) -> bool:
    return label.source_id == hit.source_id and label.source_type in (None, hit.source_type)


def _answers(label: Label, hit: SearchHit) -> bool:
    if not _is_of(label, hit):
        return False
    return label.lines is None or (hit.start_line <= label.lines[1] and label.lines[0] <= hit.end_line)
