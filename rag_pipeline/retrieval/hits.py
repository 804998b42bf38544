"""Rows of chunks and their documents to search hits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from rag_pipeline.lexical.analyzer import placed_terms
from rag_pipeline.model import PLACE, LegResult, SearchHit


def hit_of(
    row: Sequence[Any],
    *,
    rank: int,
    score: float,
    legs: Sequence[LegResult] = (),
    matched_terms: Sequence[str] = (),
    linked_from: UUID | None = None,
    corrections: Mapping[str, Sequence[str]] | None = None,
) -> SearchHit:
    """The hit of a row as `search.hits` gives it behind the number, and `linked.linked` behind the document.

    `corrections`: words of the question with the terms that were looked for instead.
    """
    (chunk_id, document_id, title, text, url, anchor, path, repository, source_type, source_id,
     language, heading_path, start, end, updated, tokens, section, reference) = row  # fmt: skip
    # A section's own place on the page, or a name of lines in a file.
    place = section if section and section[0] not in "#/?" else ""
    lines = anchor.format(start=start, end=end) if anchor else ""
    fragment = lines if section is None or place else section
    location = reference if reference and not path else f"{path or source_id}:{start}-{end}"
    location += f"{PLACE}{place}" if place else ""
    return SearchHit(
        rank=rank, score=score, title=title or source_id, text=text, url=f"{url or ''}{fragment}",
        location=location, repository=repository, source_type=source_type,
        source_id=source_id, language=language, heading_path=tuple(heading_path), start_line=start, end_line=end,
        document_id=document_id, chunk_id=chunk_id, source_updated_at=updated, tokens=tokens, legs=tuple(legs),
        matched_terms=tuple(matched_terms), linked_from=linked_from,
        corrected=_corrected("\n".join([text, title or "", *heading_path, location]), corrections or {}),
    )  # fmt: skip


def _corrected(text: str, corrections: Mapping[str, Sequence[str]]) -> Mapping[str, Sequence[str]]:
    """The words of a hit that were looked for instead of others, as they are written there.

    Only what the hit shows anyway is told, so that no one learns words of what they may not see.
    """
    if not corrections:
        return {}
    among = {term for terms in corrections.values() for term in terms}
    written: dict[str, str] = {}
    for term, start, end in placed_terms(text, among=among):
        written.setdefault(term, text[start:end].casefold())
    found = {word: tuple(written[term] for term in terms if term in written) for word, terms in corrections.items()}
    return {word: words for word, words in found.items() if words}
