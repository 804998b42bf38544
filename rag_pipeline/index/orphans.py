"""Vectors that nothing needs any more, and how those that a run counts on are told from them.

A run first makes the vectors of its texts and writes the documents later, in other transactions. In between nothing in
the index holds these texts, but the lake does, in a part that is not recorded as indexed: what such parts hold stays.
The part is written before the embeddings stage looks which vectors are known, and that stage and the removal exclude
each other: so it sees either that a vector is gone, or the removal sees the part.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date

import psycopg

from rag_pipeline.index.bookkeeping import stored_parts
from rag_pipeline.index.database import Connection
from rag_pipeline.index.locks import Lock, exclude, shared, wait_at_most
from rag_pipeline.index.spaces import space_records, statement
from rag_pipeline.index.sql_files import queries
from rag_pipeline.index.stage import STAGE, part_fingerprint
from rag_pipeline.lake.derive import parts_in
from rag_pipeline.lake.schemas import ids_of
from rag_pipeline.lake.store import Lake, Part
from rag_pipeline.model import DayRange, EmbeddingSpace

_PATIENCE_S = 10.0  # for a run that embeds
_ALL_DAYS = DayRange(first=date.min, last=date.max)


@dataclass(frozen=True, slots=True, kw_only=True)
class Removed:
    """What was removed from one space."""

    space: EmbeddingSpace
    vectors: int
    waiting: int
    """Parts of the lake that are not indexed for this space: what they hold was kept."""


@contextmanager
def counting_on_vectors(connection: Connection) -> Iterator[None]:
    """While a run counts on vectors that it has seen: none is removed. Several runs may at once."""
    with shared(connection, Lock.EMBEDDING):
        yield


def remove_orphan_vectors(connection: Connection, lake: Lake) -> list[Removed] | None:
    """Remove from each space the vectors of texts that neither the index nor a part that waits to be indexed holds.

    One transaction for all spaces. None: a run is embedding, and nothing was removed.
    """
    sql = queries("maintenance")
    try:
        with connection.transaction():
            wait_at_most(connection, _PATIENCE_S)
            exclude(connection, Lock.EMBEDDING)
            # Only now, that no run looks for vectors any more: see above.
            parts = parts_in(lake, ["chunks"], _ALL_DAYS)
            now = {part: part_fingerprint(lake, part) for part in parts}
            connection.execute(sql["create_waiting"])
            return [_remove(connection, lake, record.space, now) for record in space_records(connection)]
    except psycopg.errors.LockNotAvailable:
        return None


def _remove(connection: Connection, lake: Lake, space: EmbeddingSpace, now: dict[Part, str]) -> Removed:
    sql = queries("maintenance")
    stored = stored_parts(connection, space, _ALL_DAYS, stage=STAGE)
    waiting = [part for part, fingerprint in now.items() if stored.get(part) != fingerprint]
    connection.execute(sql["clear_waiting"])
    with connection.cursor() as cursor, cursor.copy(sql["copy_waiting"]) as copy:
        copy.set_types(("text", "uuid"))
        for part in waiting:
            for batch in lake.read("chunks", part, columns=["text_hash"]):
                for text_hash in ids_of(batch.column("text_hash")):
                    copy.write_row((part.tenant, text_hash))
    connection.execute(sql["analyze_waiting"])
    gone = connection.execute(statement("remove_orphans", space, file="maintenance")).rowcount
    return Removed(space=space, vectors=gone, waiting=len(waiting))
