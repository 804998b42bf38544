"""Search hits made to order, and vectors for them: what tests of everything after the search start from."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from uuid import UUID

import numpy as np
from hypothesis import strategies as st

from rag_pipeline.model import LegResult, SearchHit, stable_id

NOW = datetime(2024, 5, 1, tzinfo=UTC)


def hit(
    text: str,
    *,
    rank: int = 1,
    score: float | None = None,
    document: str = "guide.md",
    lines: tuple[int, int] = (1, 1),
    anchor: str = "#L{start}-L{end}",
    url: str | None = None,
    location: str | None = None,
    title: str = "Guide",
    headings: Sequence[str] = (),
    tokens: int | None = None,
    terms: Sequence[str] = (),
    chunk: str | None = None,
) -> SearchHit:
    """A hit of a chunk; one with the same text, document and lines is the same chunk."""
    start, end = lines
    return SearchHit(
        rank=rank, score=1.0 - rank / 100 if score is None else score, title=title, text=text,
        url=url if url is not None else f"https://example.org/{document}" + anchor.format(start=start, end=end),
        location=location if location is not None else f"{document}:{start}-{end}", repository="handbook",
        source_type="docs", source_id=f"handbook:{document}", language="markdown", heading_path=tuple(headings),
        start_line=start, end_line=end, document_id=stable_id("document", document),
        chunk_id=stable_id("chunk", chunk or f"{document}:{lines}:{text}"), source_updated_at=NOW,
        tokens=len(text.split()) if tokens is None else tokens,
        legs=(LegResult(leg="vector", rank=rank, score=0.5),), matched_terms=tuple(terms),
    )  # fmt: skip


def ranked(*texts: str, **options) -> list[SearchHit]:
    """Hits of these texts, each of its own document, best first."""
    return [hit(text, rank=n, document=f"{n}.md", **options) for n, text in enumerate(texts, start=1)]


def vectors_of(hits: Sequence[SearchHit], rows: Sequence[Sequence[float]]) -> dict[UUID, np.ndarray]:
    """The rows as the vectors of the hits."""
    return {found.chunk_id: np.array(row, dtype=np.float32) for found, row in zip(hits, rows, strict=True)}


TEXTS = st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=60), min_size=1, max_size=12)
"""Texts of hits, in any script and with anything in them."""
