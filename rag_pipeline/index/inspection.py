"""What is wrong with the rows of the index: orphans, chunks without vectors, counts that do not add up.

Each look is one set-based statement that gives how many rows offend and the first ten of them, so that the work stays
in PostgreSQL and a million chunks take seconds. All of them see one state of the index, whoever writes meanwhile.
What the catalog says is `catalog`'s business, what postings say `posted`'s, what the lake says `against_lake`'s.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, LiteralString

from psycopg import IsolationLevel, sql
from psycopg.rows import dict_row

from rag_pipeline.index.database import Connection
from rag_pipeline.index.spaces import statement
from rag_pipeline.index.sql_files import queries
from rag_pipeline.model import EmbeddingSpace

SHOWN: Final = 10
"""Offending rows that are named."""

_OF_ALL: Final[tuple[LiteralString, ...]] = (
    "orphan_chunks", "orphan_links", "orphan_postings", "orphan_bookkeeping", "segment_sums", "broken_segments",
)  # fmt: skip
_OF_A_SPACE: Final[tuple[LiteralString, ...]] = ("chunks_without_vector", "vectors_without_chunk")


@dataclass(frozen=True, slots=True, kw_only=True)
class Offences:
    """What is wrong in one respect."""

    count: int = 0
    sample: Sequence[Mapping[str, object]] = ()
    """The first of them, at most `SHOWN`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How much there is to look at."""

    documents: int
    tombstones: int
    chunks: int
    links: int
    segments: int
    vectors: int
    """Of the space that was looked at."""

    @property
    def rows(self) -> int:
        """Of all tables that were compared."""
        return self.documents + self.tombstones + self.chunks + self.links + self.segments + self.vectors


@contextmanager
def inspecting(connection: Connection) -> Iterator[None]:
    """One state of the index for all looks at it; nothing can be written."""
    before = connection.isolation_level, connection.read_only
    connection.isolation_level, connection.read_only = IsolationLevel.REPEATABLE_READ, True
    try:
        with connection.transaction():
            connection.execute(queries("inspection")["prepare"])
            yield
    finally:
        if not connection.closed:
            connection.isolation_level, connection.read_only = before


def offences(rows: Sequence[Mapping[str, object]]) -> Offences:
    """Things that were found one by one."""
    return Offences(count=len(rows), sample=rows[:SHOWN])


def sizes(connection: Connection, space: EmbeddingSpace | None) -> Sizes:
    """How much the index holds."""
    found = connection.execute(queries("inspection")["sizes"]).fetchone() or (0,) * 5
    vectors: Any = (0,)
    if space is not None:
        vectors = connection.execute(statement("vector_count", space, file="inspection")).fetchone()
    documents, tombstones, chunks, links, segments = found
    return Sizes(
        documents=documents, tombstones=tombstones, chunks=chunks, links=links, segments=segments, vectors=vectors[0]
    )


def size_by_segments(connection: Connection) -> int:
    """Living chunks, as the segments count them: a few rows, however many chunks there are."""
    row = connection.execute(queries("inspection")["size_by_segments"]).fetchone()
    return int(row[0]) if row else 0


def inspect_rows(connection: Connection, space: EmbeddingSpace | None) -> dict[str, Offences]:
    """What is wrong in each respect, by its name; `space` is the one that documents wait for (None: there is none)."""
    found = {name: _look(connection, sql.SQL(queries("inspection")[name])) for name in _OF_ALL}
    if space is not None:
        found |= {name: _look(connection, statement(name, space, file="inspection")) for name in _OF_A_SPACE}
    return found


def vectors_off_length(connection: Connection, space: EmbeddingSpace, *, tolerance: float | None) -> Offences:
    """Vectors that are not of length 1 within the tolerance; None: that have no length at all."""
    least, most = (1 - tolerance, 1 + tolerance) if tolerance is not None else (1e-6, 1e9)
    values = {"least": least, "most": most}
    return _look(connection, statement("vectors_of_wrong_length", space, file="inspection"), values)


def _look(
    connection: Connection, asked: sql.SQL | sql.Composed, values: Mapping[str, object] | None = None
) -> Offences:
    with connection.cursor(row_factory=dict_row) as cursor:
        rows = cursor.execute(asked, values).fetchall()
    count = int(rows[0]["found"]) if rows else 0
    return Offences(count=count, sample=[{k: v for k, v in row.items() if k != "found"} for row in rows])
