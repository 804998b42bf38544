"""Hits made to order, and a search that gives them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from rag_pipeline.model import SearchHit, chunk_id, document_id
from rag_pipeline.retrieval.query import SearchQuery

MOMENT = datetime(2024, 5, 1, tzinfo=UTC)


def hit(source_id: str, first: int = 1, last: int = 1, *, source_type: str = "docs") -> SearchHit:
    """A hit on these lines of a document."""
    document = document_id(tenant="acme", source_type=source_type, source_id=source_id)
    return SearchHit(
        rank=1, score=1.0, title=source_id, text=f"lines {first} to {last}", url="", location=f"{source_id}:{first}",
        repository="handbook", source_type=source_type, source_id=source_id, language=None, heading_path=(),
        start_line=first, end_line=last, document_id=document, chunk_id=chunk_id(document, f"{first}-{last}", 0),
        source_updated_at=MOMENT, tokens=1,
    )  # fmt: skip


class FixedSearch:
    """Answers each question with the hits that are written for it and the leg that is asked; remembers the queries."""

    def __init__(self, answers: Mapping[str, Mapping[str, Sequence[SearchHit]]]) -> None:
        self.answers = answers
        self.asked: list[SearchQuery] = []

    def __call__(self, query: SearchQuery) -> list[SearchHit]:
        self.asked.append(query)
        leg = "reranked" if query.rerank else query.legs
        return list(self.answers.get(query.text, {}).get(leg, ()))[: query.k]
