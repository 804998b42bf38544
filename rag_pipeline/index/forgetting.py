"""Forgetting in the database: the marks, documents with all that hangs on them, and what the pipeline remembers.

Taking a document out goes through segments like any other change; what is gone is then merged away, so that no posting
of it is left.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import date, datetime
from typing import Final
from uuid import UUID

import numpy as np
import psycopg

from rag_pipeline.errors import TransientError
from rag_pipeline.forgotten import Forgotten, Mark
from rag_pipeline.index.database import Connection
from rag_pipeline.index.locks import Lock, shared, wait_at_most
from rag_pipeline.index.segments import Worded, add_segments, merge_segments
from rag_pipeline.index.spaces import space_records, statement
from rag_pipeline.index.sql_files import queries
from rag_pipeline.lake.store import Part
from rag_pipeline.lexical.postings import ENTRY, among, read_members
from rag_pipeline.model import Document

_PATIENCE_S: Final = 60.0
_BATCH: Final = 500  # documents
_MERGE_TRIES: Final = 60  # seconds that another merge may take
_MEMORIES: Final = (
    "source_progress", "windows_read", "stored_parts", "checked_parts", "source_freshness", "index_sizes", "usage",
    "evaluations", "api_keys", "requests_served", "index_changes",
)  # fmt: skip
_OF_TENANTS: Final = (
    "delete_usage", "delete_evaluations", "delete_keys", "delete_served", "delete_changes", "delete_marks_of_tenant",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Indexed:
    """A document of the index, as far as it takes to know whether it is forgotten; `document` has no text."""

    document: Document
    url: str | None


@contextmanager
def at_work(connection: Connection) -> Iterator[None]:
    """While a stage makes something of what it reads, nothing is forgotten. Stages do not exclude each other."""
    with shared(connection, Lock.AT_WORK):
        yield


@contextmanager
def alone(connection: Connection) -> Iterator[None]:
    """No stage is at work and nobody writes documents until the block ends.

    Raises:
        TransientError: a run is at work for longer than we wait.
    """
    held: list[Lock] = []
    try:
        wait_at_most(connection, _PATIENCE_S, in_transaction=False)
        # In this order: a stage that writes the index is at work already when it asks for the second.
        for lock in (Lock.AT_WORK, Lock.WRITING):
            connection.execute(queries("forgetting")["shut_out"], {"lock": int(lock)})
            held.append(lock)
        wait_at_most(connection, 0, in_transaction=False)
        yield
    except psycopg.errors.LockNotAvailable as error:
        raise TransientError("a run is at work on the index: forget again when it has ended") from error
    finally:
        with suppress(psycopg.Error):
            for lock in held:
                connection.execute(queries("forgetting")["let_in"], {"lock": int(lock)})
            wait_at_most(connection, 0, in_transaction=False)


def marks(connection: Connection) -> frozenset[Mark]:
    """All that is forgotten."""
    return frozenset(Mark(*row) for row in connection.execute(queries("forgetting")["marks"]))


def add_marks(connection: Connection, new: Iterable[Mark], *, now: datetime) -> int:
    """Note what is forgotten from now on; returns how many of it were not noted yet."""
    with connection.transaction():
        sql = queries("forgetting")["add_mark"]
        return sum(connection.execute(sql, _values(mark) | {"now": now}).rowcount for mark in sorted(new))


def drop_marks(connection: Connection, old: Iterable[Mark]) -> int:
    """Allow it again; returns how many of it were noted."""
    with connection.transaction():
        return sum(connection.execute(queries("forgetting")["drop_mark"], _values(mark)).rowcount for mark in old)


def indexed_documents(connection: Connection) -> Iterator[Indexed]:
    """Every document of the index, tombstones included, a few thousand in memory at a time."""
    with connection.transaction(), connection.cursor(name="all_documents") as cursor:
        cursor.itersize = 5000
        for row in cursor.execute(queries("forgetting")["documents"]):
            document_id, tenant, repository, source_type, source_id, changed_at, author, path, url = row
            document = Document(
                tenant=tenant, document_id=document_id, source_type=source_type, source_id=source_id,
                repository=repository, day=date.min, source_updated_at=changed_at, observed_at=changed_at,
                path=path, metadata={"author": author} if author else {},
            )  # fmt: skip
            yield Indexed(document=document, url=url)


def count_rows(connection: Connection, documents: Sequence[UUID]) -> dict[str, int]:
    """How many chunks and links hang on these documents."""
    sql, values = queries("forgetting"), {"ids": list(documents)}
    found = {"chunks": sql["count_chunks"], "links": sql["count_links"]}
    return {name: int((connection.execute(query, values).fetchone() or (0,))[0]) for name, query in found.items()}


def remove_documents(connection: Connection, documents: Iterable[UUID]) -> int:
    """Take documents out with their chunks, links and words, each batch wholly or not at all; returns how many."""
    ids, gone = sorted(documents), 0
    for start in range(0, len(ids), _BATCH):
        values = {"ids": ids[start : start + _BATCH]}
        with connection.transaction():
            connection.execute(queries("forgetting")["lock_documents"], values)
            worded = connection.execute(queries("forgetting")["chunks_of"], values).fetchall()
            gone += connection.execute(queries("forgetting")["delete_documents"], values).rowcount
            add_segments(connection, added=(), removed=map(Worded._make, worded))
    return gone


def merge_away(connection: Connection, tenant: str) -> None:
    """Merge a tenant's segments until none holds a posting of a chunk that is gone.

    Raises:
        TransientError: another process has been merging all the time.
    """
    for _ in range(_MERGE_TRIES):
        merge_segments(connection, everything=True, tenant=tenant)
        connection.execute(queries("forgetting")["delete_empty_segments"], {"tenant": tenant})
        if stale_postings(connection, tenant) == 0:
            return
        time.sleep(1)
    raise TransientError("another process is merging postings: forget again when it has ended")


def stale_postings(connection: Connection, tenant: str, *, without: Iterable[UUID] = ()) -> int:
    """Entries and members in a tenant's postings whose chunk is not in the index; reads all of them.

    Chunks of the documents `without` count as gone.
    """
    values = {"tenant": tenant, "without": list(without)}
    numbers = [row[0] for row in connection.execute(queries("forgetting")["chunk_numbers"], values)]
    living = np.array(numbers, dtype=np.uint32)
    rows = connection.execute(queries("forgetting")["members"], values).fetchall()
    stale = sum(int((~among(read_members([row[0]])["number"], living)).sum()) for row in rows)
    stale += sum(len(read_members([row[1]])) for row in rows)
    with connection.transaction(), connection.cursor(name="all_entries", binary=True) as cursor:
        for (entries,) in cursor.execute(queries("forgetting")["entries_of_tenant"], values):
            stale += int((~among(np.frombuffer(entries, dtype=ENTRY)["number"], living)).sum())
    return stale


def orphaned_vectors(
    connection: Connection, tenant: str, *, held: set[UUID], without: Iterable[UUID], remove: bool
) -> int:
    """Vectors of texts that neither a chunk of the tenant nor the lake (`held`) has; removed when that is wanted.

    Chunks of the documents `without` count as gone.
    """
    found, leaving = 0, {"tenant": tenant, "without": list(without)}
    for record in space_records(connection):
        rows = connection.execute(statement("orphaned_vectors", record.space, file="forgetting"), leaving)
        hashes = [row[0] for row in rows if row[0] not in held]
        found += len(hashes)
        if remove and hashes:
            values = {"tenant": tenant, "hashes": hashes}
            connection.execute(statement("delete_vectors", record.space, file="forgetting"), values)
    return found


def forgotten_failures(connection: Connection, forgotten: Forgotten, *, remove: bool) -> int:
    """What stands in quarantine of forgotten things."""
    found = []
    for tenant, repository, source_type, source_id, changed_at, stage in connection.execute(
        queries("forgetting")["failures"]
    ):
        is_gone = forgotten.repository(tenant, repository) or forgotten.document(tenant, source_type, source_id)
        if is_gone or forgotten.expired(source_type, changed_at):
            found.append({"tenant": tenant, "source_type": source_type, "source_id": source_id, "stage": stage})
    if remove:
        with connection.transaction():
            for values in found:
                connection.execute(queries("forgetting")["delete_failure"], values)
    return len(found)


def remembered(connection: Connection) -> list[tuple[str, str]]:
    """(tenant, repository) of all that the pipeline remembers of its own work; the repository may be empty."""
    return [(row[0], row[1]) for row in connection.execute(queries("forgetting")["remembered"])]


def memories(connection: Connection, tenant: str, repository: str | None, *, remove: bool) -> dict[str, int]:
    """Rows that tell of a repository, or with None of a whole tenant, by table; of usage only the name goes."""
    sql, values = queries("forgetting"), {"tenant": tenant, "repository": repository}
    counts = connection.execute(sql["count_memories"], values).fetchone() or ()
    if remove:
        with connection.transaction():
            connection.execute(sql["delete_progress"], values)
            connection.execute(sql["delete_windows"], values)
            for name in ("delete_stored_parts", "delete_checked_parts", "delete_freshness", "delete_sizes"):
                connection.execute(sql[name], values)
            if repository is not None:
                connection.execute(sql["anonymous_usage"], values)
            else:
                for name in _OF_TENANTS:
                    connection.execute(sql[name], values)
    return dict(zip(_MEMORIES, counts, strict=True))


def look_again(connection: Connection, *, tenant: str, repository: str | None, parts: bool = False) -> None:
    """Let the next run read these sources from their beginning, and with `parts` index the whole lake again."""
    values = {"tenant": tenant, "repository": repository}
    connection.execute(queries("forgetting")["delete_progress"], values)
    connection.execute(queries("forgetting")["delete_windows"], values)
    if parts:
        connection.execute(queries("forgetting")["delete_stored_parts"], values)


def move_part_records(connection: Connection, part: Part, moved: dict[tuple[str, str], str | None]) -> None:
    """Note that what is stored of a part is what its rewritten files hold: (stage, old fingerprint) → the new one."""
    where = {"tenant": part.tenant, "repository": part.repository, "day": part.day}
    sql = queries("forgetting")
    for stage, space, fingerprint in connection.execute(sql["part_records"], where).fetchall():
        if (stage, fingerprint) in moved:
            new = moved[stage, fingerprint]
            values = where | {"stage": stage, "space": space, "fingerprint": new}
            query = sql["delete_part_record"] if new is None else sql["move_part_record"]
            connection.execute(query, values)


def vacuum(connection: Connection) -> None:
    """Give the room of what was deleted free, so that it is written over."""
    connection.execute(queries("forgetting")["vacuum"])
    for record in space_records(connection):
        connection.execute(statement("vacuum_vectors", record.space, file="forgetting"))


def _values(mark: Mark) -> dict[str, object]:
    return {"tenant": mark.tenant, "kind": mark.kind, "name_hash": mark.name_hash}
