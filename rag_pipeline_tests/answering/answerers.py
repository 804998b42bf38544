"""Answerers over hits made to order, and what comes out of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from rag_pipeline.answering.answerer import Answerer, Looked, Question, Wrote
from rag_pipeline.answering.language_model import LanguageModel, Message
from rag_pipeline.model import Answer, LegResult, SearchHit
from rag_pipeline.retrieval.query import SearchQuery
from rag_pipeline.retrieval.retriever import Found
from rag_pipeline.settings import Answering
from rag_pipeline_tests.retrieval.hits import hit

BACKUPS = hit(
    "Backups of the ledger run nightly at 02:00 UTC. They are kept for 30 days. Restore one with `ledgerctl restore`.",
    document="backups.md", title="Backups", headings=("Backups", "Restoring the ledger"), lines=(3, 6),
)  # fmt: skip
RETENTION = hit(
    "Logs are deleted after 90 days. Audit trails of the ledger are never deleted.",
    rank=2, document="retention.md", title="Retention", headings=("Retention", "Audit trails"), lines=(8, 9),
)  # fmt: skip
SURE = 0.8


def near(found: SearchHit, cosine: float = SURE) -> SearchHit:
    """The hit, so similar to the question."""
    return replace(found, legs=(LegResult(leg="vector", rank=found.rank, score=cosine),))


def searching(*hits: SearchHit, degraded: str = "") -> Callable[[SearchQuery], Found]:
    """A search that finds these, and remembers in `.queries` what it was asked."""
    queries: list[SearchQuery] = []

    def search(query: SearchQuery) -> Found:
        queries.append(query)
        return Found(hits=hits, degraded=degraded)

    search.queries = queries  # type: ignore[attr-defined]
    return search


def asking(text: str, *, history: Sequence[Message] = (), **query: Any) -> Question:
    return Question(query=SearchQuery(text=text, tenant="acme", **query), history=history)


def answerer(*hits: SearchHit, model: LanguageModel | None = None, **settings: Any) -> Answerer:
    found = hits or (near(BACKUPS), near(RETENTION))
    return Answerer(search=searching(*found), model=model, settings=Answering(**settings), prices=prices)


def prices(model: str, read: int, written: int) -> float | None:
    """A dollar for a thousand tokens that are read, two for as many that are written."""
    return read / 1e3 + written * 2 / 1e3 if model == "scripted-1" else None


def events(answering: Answerer, question: Question) -> tuple[list[Looked], str, Answer]:
    """What was looked at, the text that was streamed, and the answer."""
    seen = list(answering.stream(question))
    assert [isinstance(one, Answer) for one in seen] == [False] * (len(seen) - 1) + [True]
    looked = [one for one in seen if isinstance(one, Looked)]
    last = seen[-1]
    assert isinstance(last, Answer)
    return looked, "".join(one.text for one in seen if isinstance(one, Wrote)), last
