"""Rows of chunks and their documents to search hits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from rag_pipeline.model import PLACE, LegResult, SearchHit


def hit_of(
    row: Sequence[Any],
    *,
    rank: int,
    score: float,
    legs: Sequence[LegResult] = (),
    matched_terms: Sequence[str] = (),
    linked_from: UUID | None = None,
) -> SearchHit:
    """The hit of a row as `search.hits` gives it behind the number, and `linked.linked` behind the document."""
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
    )  # fmt: skip
