"""Segments of the lexical index in PostgreSQL: added with the chunks they are of, merged when they become many.

A segment is immutable, so writers never wait for each other here, and a search that began before a merge goes on with
the segments that it saw.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rag_pipeline.index.database import Connection
from rag_pipeline.index.sql_files import queries
from rag_pipeline.lexical.analyzer import ANALYZER_VERSION
from rag_pipeline.lexical.postings import (
    ENTRY,
    Members,
    Posting,
    Segment,
    Vocabulary,
    among,
    make_segment,
    read_entries,
    read_members,
)  # fmt: skip

_FAN: Final = 8
"""So many segments of about one size become one."""
_SMALLEST: Final = 500
"""Chunks: smaller segments count as of one size."""
_MOST_REMOVED: Final = 0.2
"""When a larger share of all entries is of chunks that are gone, everything is merged."""
_REBUILD_BATCH: Final = 20_000  # chunks
_FETCH: Final = 2_000  # postings; those of common words are megabytes each
_POSTING_TYPES = ("int8", "text", "int4", "int4", "bytea")


class Worded(NamedTuple):
    """What the lexical leg sees of a chunk, and who may see it."""

    tenant: str
    scope: str | None
    number: int
    lead: str
    text: str


def lexical_text(worded: Worded) -> str:
    """The text that is analysed: the lead, which says what the chunk is about, and its own text."""
    return f"{worded.lead}\n{worded.text}" if worded.lead else worded.text


def add_segments(
    connection: Connection, *, added: Iterable[Worded], removed: Iterable[Worded], vocabulary: Vocabulary | None = None
) -> int:
    """Put changes of chunks into the lexical index, inside the transaction that makes them; returns the segments.

    `vocabulary`: whoever writes several batches keeps it from one to the next.
    """
    news: defaultdict[tuple[str, str | None], list[tuple[int, str]]] = defaultdict(list)
    olds: defaultdict[tuple[str, str | None], list[tuple[int, str]]] = defaultdict(list)
    for worded in added:
        news[worded.tenant, worded.scope].append((worded.number, lexical_text(worded)))
    for worded in removed:
        olds[worded.tenant, worded.scope].append((worded.number, lexical_text(worded)))
    keys = sorted(news.keys() | olds.keys(), key=lambda key: (key[0], key[1] or ""))
    for tenant, scope in keys:
        segment = make_segment(news[tenant, scope], olds[tenant, scope], vocabulary=vocabulary)
        _store(connection, segment, tenant=tenant, scope=scope)
    return len(keys)


def merge_segments(
    connection: Connection, *, everything: bool = False, tenant: str | None = None, most: int | None = None
) -> int:
    """Merge segments where many of one size have gathered, or all of each tenant and scope; returns how many are gone.

    With `tenant`, only those of this one. `most`: also all of a tenant and scope that has more than these.

    Each merge is a transaction of its own; one that another process is at is left to it.
    """
    gone = 0
    rows = connection.execute(queries("segments")["sizes"]).fetchall()
    wanted = [row for row in rows if tenant in (None, row[1])]
    for (owner, scope), group in groupby(wanted, key=lambda row: (row[1], row[2])):
        sizes = [_Size(segment_id=row[0], chunks=row[3], removed=row[4]) for row in group]
        every = everything or (most is not None and len(sizes) > most)
        while chosen := ([s.segment_id for s in sizes] if every else _to_merge(sizes)):
            merged = _merge(connection, chosen, tenant=owner, scope=scope) if len(chosen) > 1 else None
            if merged is None:
                break
            gone += len(chosen)
            sizes = [size for size in sizes if size.segment_id not in set(chosen)] + [merged]
    return gone


def rebuild_if_outdated(connection: Connection) -> bool:
    """Write all postings again when they were made by another analyzer, or not at all; True when that was necessary.

    In one transaction: searches go on with the old ones until it ends.
    """
    if not _is_outdated(connection):
        return False
    with connection.transaction():
        connection.execute(queries("segments")["lock_all"])
        if not _is_outdated(connection):
            return False
        connection.execute(queries("segments")["clear"])
        batch: list[Worded] = []
        vocabulary = Vocabulary()
        with connection.cursor(name="all_chunks") as cursor:
            cursor.itersize = _REBUILD_BATCH
            for row in cursor.execute(queries("segments")["all_chunks"]):
                batch.append(Worded(*row))
                if len(batch) == _REBUILD_BATCH:
                    add_segments(connection, added=batch, removed=(), vocabulary=vocabulary)
                    batch = []
        add_segments(connection, added=batch, removed=(), vocabulary=vocabulary)
    return True


def _is_outdated(connection: Connection) -> bool:
    found = connection.execute(queries("segments")["outdated"], {"analyzer": ANALYZER_VERSION}).fetchone()
    return bool(found and found[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Size:
    segment_id: int
    chunks: int
    removed: int

    @property
    def tier(self) -> int:
        """Segments of one tier differ by less than `_FAN` in size."""
        return math.floor(math.log(max(_SMALLEST, self.chunks + self.removed) / _SMALLEST, _FAN))


def _to_merge(sizes: Sequence[_Size]) -> list[int]:
    """Segments to be merged next; none when there is nothing to be gained."""
    if len(sizes) > 1 and sum(s.removed for s in sizes) > _MOST_REMOVED * sum(s.chunks for s in sizes):
        return [size.segment_id for size in sizes]
    tiers = Counter(size.tier for size in sizes)
    full = [tier for tier, count in tiers.items() if count >= _FAN]
    # What is smaller goes with it: its rows are few, and each segment costs every search a look.
    return [size.segment_id for size in sizes if size.tier <= max(full)] if full else []


def _merge(connection: Connection, segments: Sequence[int], *, tenant: str, scope: str | None) -> _Size | None:
    """Several segments become one; None when another process is merging here."""
    sql = queries("segments")
    values = {"segments": list(segments)}
    with connection.transaction():
        locked = connection.execute(sql["lock_merge"], {"tenant": tenant, "scope": scope}).fetchone()
        rows = connection.execute(sql["to_merge"], values).fetchall()
        if not (locked and locked[0]) or len(rows) != len(segments):
            return None
        added, removed = (read_members(row[column] for row in rows) for column in (1, 2))
        # Taken away here and added here: gone for good. Taken away from another segment: still to be said.
        is_gone = among(removed["number"], added["number"])
        gone, left = removed[is_gone], removed[~is_gone]
        kept = added[~among(added["number"], gone["number"])]
        segment_id = _add_row(connection, added=kept, removed=left, tenant=tenant, scope=scope)
        _copy_merged(connection, segment_id, values, gone["number"])
        connection.execute(sql["delete"], values)
    return _Size(segment_id=segment_id, chunks=len(kept), removed=len(left))


def _copy_merged(
    connection: Connection, segment_id: int, values: dict[str, list[int]], gone: NDArray[np.uint32]
) -> None:
    with connection.cursor(name="merged_postings", binary=True) as cursor:
        cursor.itersize = _FETCH
        cursor.execute(queries("segments")["postings"], values)
        merged = (
            (term, _merged([(row[1], row[2]) for row in rows], gone))
            for term, rows in groupby(cursor, key=lambda row: row[0])
        )
        while batch := list(islice(merged, _FETCH)):
            _copy_postings(connection, segment_id, batch)


def _merged(rows: Sequence[tuple[int, bytes]], gone: NDArray[np.uint32]) -> Posting:
    if len(rows) == 1 and not len(gone):
        return Posting(removed=rows[0][0], entries=rows[0][1])
    entries = read_entries([row[1] for row in rows], removed=gone)
    dropped = sum(len(row[1]) for row in rows) // ENTRY.itemsize - len(entries)
    return Posting(removed=sum(row[0] for row in rows) - dropped, entries=entries.tobytes())


def _store(connection: Connection, segment: Segment, *, tenant: str, scope: str | None) -> None:
    segment_id = _add_row(connection, added=segment.added, removed=segment.removed, tenant=tenant, scope=scope)
    _copy_postings(connection, segment_id, segment.postings.items())


def _add_row(connection: Connection, *, added: Members, removed: Members, tenant: str, scope: str | None) -> int:
    row = connection.execute(
        queries("segments")["add"],
        {
            "tenant": tenant, "scope": scope, "analyzer": ANALYZER_VERSION,
            "chunks": len(added), "terms": int(added["length"].sum(dtype=np.int64)),
            "removed_chunks": len(removed), "removed_terms": int(removed["length"].sum(dtype=np.int64)),
            "added": added.tobytes(), "removed": removed.tobytes(),
        },
    ).fetchone()  # fmt: skip
    assert row is not None
    return int(row[0])


def _copy_postings(connection: Connection, segment_id: int, postings: Iterable[tuple[str, Posting]]) -> None:
    with connection.cursor() as cursor, cursor.copy(queries("segments")["copy_postings"]) as copy:
        copy.set_types(_POSTING_TYPES)
        for term, posting in postings:
            if posting.chunks or posting.removed:
                copy.write_row((segment_id, term, posting.chunks, posting.removed, posting.entries))
