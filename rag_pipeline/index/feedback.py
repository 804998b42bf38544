"""What people thought of what they found, and what the query log tells: questions, worst first, and labels of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from rag_pipeline.index.database import Connection
from rag_pipeline.index.sql_files import queries

Noted = Literal["noted", "no query", "no hit"]
"""What became of feedback: its query is not in the tenant's log, or the chunk was not among the query's hits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedQuestion:
    """A question of the log, however often it was asked."""

    tenant: str
    question: str
    """As it was asked last."""
    asked: int
    last_asked_at: datetime
    unanswered: int
    """So many times nothing was found, or nothing that bears an answer out."""
    confidence: float | None
    """Mean over the answers."""
    helpful: int
    unhelpful: int
    reasons: Sequence[str]
    """Given with thumbs down, the newest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HelpfulHit:
    """A question, and what people called helpful for it; more of them than the others."""

    question: str
    source_type: str
    source_id: str
    lines: tuple[int, int] | None
    """In the source; None: the chunk is not in the index any more, its document is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedQuery:
    """What of a question in the log may name something that is forgotten."""

    query_id: UUID
    tenant: str
    question: str
    parameters: Mapping[str, Any]
    documents: Collection[UUID]
    """Of its hits."""
    is_dangling: bool
    """One of them is not in the index, not even as a tombstone."""
    feedback: int


def note_feedback(
    connection: Connection, *, query_id: UUID, tenant: str, helpful: bool, reason: str, now: datetime,
    chunk_id: UUID | None = None,
) -> Noted:  # fmt: skip
    """Note a thumb on an answer or, with `chunk_id`, on one of its hits, in place of an earlier one on the same."""
    sql = queries("query_log")
    values = {
        "query_id": query_id, "tenant": tenant, "chunk_id": chunk_id, "helpful": helpful, "reason": reason, "now": now,
    }  # fmt: skip
    with connection.transaction():
        # The lock makes two thumbs on one hit come one after the other.
        row = connection.execute(sql["lock_query"], values).fetchone()
        if row is None:
            return "no query"
        if not row[0]:
            return "no hit"
        connection.execute(sql["delete_feedback"], values)
        connection.execute(sql["insert_feedback"], values)
    return "noted"


def asked_questions(
    connection: Connection, *, since: datetime, tenant: str | None, limit: int
) -> list[AskedQuestion]:  # fmt: skip
    """The questions since then, of a tenant or of all: first those that people liked least, then the unanswered."""
    rows = connection.execute(queries("query_log")["questions"], {"since": since, "tenant": tenant, "limit": limit})
    return [
        AskedQuestion(
            tenant=row[0], question=row[1], asked=row[2], last_asked_at=row[3], unanswered=row[4], confidence=row[5],
            helpful=row[6], unhelpful=row[7], reasons=row[8],
        )
        for row in rows
    ]  # fmt: skip


def helpful_hits(connection: Connection, *, tenant: str, limit: int) -> list[HelpfulHit]:
    """What was found helpful, question by question, the newest questions first; nothing with a scope."""
    rows = connection.execute(queries("query_log")["helpful_hits"], {"tenant": tenant, "limit": limit})
    return [
        HelpfulHit(
            question=row[0], source_type=row[1], source_id=row[2],
            lines=(row[3], row[4]) if row[3] is not None else None,
        )
        for row in rows
    ]  # fmt: skip


def remove_old_queries(connection: Connection, *, before: datetime) -> int:
    """Remove what was asked before then, with its feedback; how many questions."""
    return connection.execute(queries("query_log")["remove_old"], {"before": before}).rowcount


def logged_queries(connection: Connection, tenants: Collection[str]) -> Iterator[LoggedQuery]:
    """All questions of these tenants, some thousand in memory at a time."""
    with connection.transaction(), connection.cursor(name="all_queries") as cursor:
        cursor.itersize = 5000
        for row in cursor.execute(queries("query_log")["all_queries"], {"tenants": sorted(tenants)}):
            yield LoggedQuery(
                query_id=row[0], tenant=row[1], question=row[2], parameters=row[3], documents=frozenset(row[4]),
                is_dangling=row[5], feedback=row[6],
            )  # fmt: skip


def remove_queries(connection: Connection, ids: Collection[UUID]) -> int:
    """Remove questions with their feedback."""
    return connection.execute(queries("query_log")["remove"], {"ids": sorted(ids)}).rowcount
