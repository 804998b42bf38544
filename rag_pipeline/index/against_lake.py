"""Whether the index holds what the lake holds: every document of these days in this or a newer state, with its chunks.

Only the lake's parts that the index is said to hold are compared. An item may stand in the parts of several days, in
another state each: the index must hold the newest, so of all others it is only asked that something newer is there.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, TypeAlias
from uuid import UUID

import numpy as np
import pyarrow as pa

from rag_pipeline.errors import PartError
from rag_pipeline.forgotten import Forgotten
from rag_pipeline.index.bookkeeping import stored_parts
from rag_pipeline.index.database import Connection
from rag_pipeline.index.forgetting import marks
from rag_pipeline.index.inspection import SHOWN, Offences
from rag_pipeline.index.rows import state_of
from rag_pipeline.index.sql_files import queries
from rag_pipeline.index.stage import STAGE, part_fingerprint
from rag_pipeline.lake.derive import Damage, leave_aside, parts_in
from rag_pipeline.lake.schemas import documents_of
from rag_pipeline.lake.store import Lake, Part
from rag_pipeline.model import DayRange, Document, EmbeddingSpace, age_of

_SHOWN_STATE: Final = (
    "tenant", "source_type", "source_id", "repository", "day", "source_updated_at", "observed_at", "deleted", "title",
    "path", "language", "url", "anchor", "metadata", "as_of", "scope", "document_id", "text", "sections",
)  # fmt: skip
_ID_BYTES: Final = 16
_CHUNK_BYTES: Final = 2 * _ID_BYTES
_BATCH_DOCUMENTS: Final = 2_000
_BATCH_CHARS: Final = 16_000_000

_Item: TypeAlias = tuple[str, str, str]
"""Tenant, source type, source id."""


class _Found:
    """Offences, counted by part; only the first of each part are kept."""

    def __init__(self) -> None:
        self._counts: Counter[Part] = Counter()
        self._rows: defaultdict[Part, list[dict[str, object]]] = defaultdict(list)

    def add(self, part: Part, **row: object) -> None:
        """One more."""
        self._counts[part] += 1
        if len(self._rows[part]) < SHOWN:
            self._rows[part].append({"tenant": part.tenant, "repository": part.repository, "day": part.day} | row)

    @property
    def parts(self) -> set[Part]:
        """Parts with offences."""
        return set(self._counts)

    def forgive(self, part: Part) -> None:
        """Nothing was wrong with this part."""
        self._counts.pop(part, None)
        self._rows.pop(part, None)

    @property
    def offences(self) -> Offences:
        """What was found."""
        rows = [row for part in self._counts for row in self._rows[part]]
        return Offences(count=self._counts.total(), sample=rows[:SHOWN])


@dataclass(slots=True, kw_only=True)
class Comparison(Damage):
    """What the lake holds of some days, and what the index lacks of it."""

    parts: int = 0
    """That were compared."""
    documents: int = 0
    """In them, tombstones not counted; one that stands in several parts counts as often."""
    tombstones: int = 0
    chunks: int = 0
    superseded: int = 0
    """Documents of which the index holds a newer state."""
    quarantined: int = 0
    """Documents that were left out, because a failure of theirs is on record."""
    waiting: _Found = field(default_factory=_Found)
    """Parts that no run has brought into the index yet, and of which nothing is quarantined."""
    missing: _Found = field(default_factory=_Found)
    stale: _Found = field(default_factory=_Found)
    other_chunks: _Found = field(default_factory=_Found)


@dataclass(frozen=True, slots=True)
class _InLake:
    part: Part
    document: Document
    chunks: bytes
    """One after the other, id and text hash, 32 bytes each."""


def compare_with_lake(
    connection: Connection, lake: Lake, days: DayRange, space: EmbeddingSpace, *,
    kept_from: Mapping[str, datetime] | None = None,
) -> Comparison:  # fmt: skip
    """Compare the index with the lake's documents of these days, as far as they are said to be in the index.

    What is forgotten is not expected there, whatever the lake holds, nor what of a source type changed last before
    `kept_from`.

    A part that cannot be read is left aside.
    """
    found = Comparison()
    rows = connection.execute(queries("inspection")["quarantined"]).fetchall()
    quarantined = {(row[0], row[1], row[2]) for row in rows}
    troubled = {(row[0], row[3], row[4]) for row in rows}
    stored = stored_parts(connection, space, days, stage=STAGE)
    parts = []
    for part in parts_in(lake, ["documents"], days):
        if stored.get(part) == part_fingerprint(lake, part):
            parts.append(part)
        elif (part.tenant, part.repository, part.day) not in troubled:
            found.waiting.add(part)
    found.parts = len(parts)
    forgotten = Forgotten(marks=marks(connection), kept_from=kept_from or {})
    for batch in _batches(item for part in parts for item in _readable(lake, part, forgotten, found)):
        _compare(connection, batch, quarantined, found)
    wrong = (found.missing, found.stale, found.other_chunks)
    for part in set[Part]().union(*(one.parts for one in wrong)):
        # Another run may have made it again meanwhile: what was read is then not what the index is said to hold.
        if part_fingerprint(lake, part) != stored[part]:
            for one in wrong:
                one.forgive(part)
    return found


def _readable(lake: Lake, part: Part, forgotten: Forgotten, found: Comparison) -> Iterator[_InLake]:
    try:
        yield from _in_lake(lake, part, forgotten)
    except PartError as error:
        leave_aside(lake, part, error, found)


def _in_lake(lake: Lake, part: Part, forgotten: Forgotten) -> Iterator[_InLake]:
    """Both files are in the same order of documents, so one pass joins them."""
    groups = _chunks(lake, part)
    group = next(groups, None)
    for batch in lake.read("documents", part, columns=_SHOWN_STATE):
        for document in documents_of(batch):
            chunks = b""
            if group is not None and group[0] == document.document_id.bytes:
                chunks = group[1]
                group = next(groups, None)
            if not forgotten.covers(document):
                yield _InLake(part, document, chunks)


def _chunks(lake: Lake, part: Part) -> Iterator[tuple[bytes, bytes]]:
    """Documents with the ids of their chunks and of what these are embedded as, in the order of the file."""
    owner, held = b"", b""
    columns = ("document_id", "chunk_id", "text_hash")
    for batch in lake.read("chunks", part, columns=columns):
        owners, *named = (_bytes_of(batch.column(name)) for name in columns)
        numbers, *pairs = (np.frombuffer(ids, dtype=(np.uint64, 2)) for ids in (owners, *named))
        both = np.hstack(pairs).tobytes()
        starts = [0, *(np.flatnonzero((numbers[1:] != numbers[:-1]).any(axis=1)) + 1).tolist()]
        for start, end in zip(starts, [*starts[1:], len(numbers)], strict=True):
            found = owners[_ID_BYTES * start : _ID_BYTES * (start + 1)]
            if found != owner:
                if held:
                    yield owner, held
                owner, held = found, b""
            held += both[_CHUNK_BYTES * start : _CHUNK_BYTES * end]
    if held:
        yield owner, held


def _bytes_of(column: pa.FixedSizeBinaryArray) -> bytes:
    start = _ID_BYTES * column.offset
    every: bytes = column.buffers()[1].to_pybytes()
    return every[start : start + _ID_BYTES * len(column)]


def _split(chunks: bytes) -> set[bytes]:
    return {chunks[place : place + _CHUNK_BYTES] for place in range(0, len(chunks), _CHUNK_BYTES)}


def _compare(connection: Connection, batch: Sequence[_InLake], quarantined: set[_Item], found: Comparison) -> None:
    ids = {"ids": [one.document.document_id for one in batch]}
    states = {row[0]: row[1:] for row in connection.execute(queries("inspection")["states"], ids)}
    with connection.cursor(binary=True) as cursor:
        chunks: dict[UUID, bytes] = dict(cursor.execute(queries("inspection")["chunks_held"], ids))
    for one in batch:
        document = one.document
        found.chunks += len(one.chunks) // _CHUNK_BYTES
        found.tombstones += document.deleted
        found.documents += not document.deleted
        if (document.tenant, document.source_type, document.source_id) in quarantined:
            found.quarantined += 1
        else:
            _judge(one, states.get(document.document_id), chunks.get(document.document_id, b""), found)


def _judge(one: _InLake, row: Sequence[Any] | None, chunks: bytes, found: Comparison) -> None:
    document = one.document
    if row is None:
        # A tombstone goes when its time is over.
        if not document.deleted:
            found.missing.add(one.part, source_id=document.source_id)
        return
    as_of, observed_at, state_hash, fingerprint, deleted = row
    newest, seen = age_of(document)
    if as_of > newest or (as_of == newest and observed_at > seen):
        found.superseded += 1
    elif as_of < newest:
        found.stale.add(one.part, source_id=document.source_id, in_lake=newest, in_index=as_of)
    elif state_hash != state_of(document, fingerprint=fingerprint):
        # Under its own fingerprint: what the settings are by now is another question.
        why = "deleted" if deleted else "another state"
        found.stale.add(one.part, source_id=document.source_id, in_lake=newest, in_index=f"{why} of the same time")
    elif (has := _split(chunks)) != (wanted := _split(one.chunks)):
        found.other_chunks.add(
            one.part, source_id=document.source_id, lacks=len(wanted - has), has_too_many=len(has - wanted)
        )  # fmt: skip


def _batches(items: Iterable[_InLake]) -> Iterator[list[_InLake]]:
    batch: list[_InLake] = []
    held = 0
    for item in items:
        batch.append(item)
        held += len(item.document.text)
        if len(batch) >= _BATCH_DOCUMENTS or held >= _BATCH_CHARS:
            yield batch
            batch, held = [], 0
    if batch:
        yield batch
