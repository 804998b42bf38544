"""The knowledge_index stage: documents and chunks of these days into PostgreSQL.

The vectors are there already (the embeddings stage stores each finished batch); a document one of whose chunks has none
is withheld, keeps its former state in the index, and is quarantined. A chunk that the model cannot read needs none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import overload
from uuid import UUID

import numpy as np
import pyarrow as pa

from rag_pipeline.errors import ConfigError, PartError
from rag_pipeline.forgotten import Forgotten
from rag_pipeline.index.bookkeeping import record_part, stored_parts
from rag_pipeline.index.changes import compact_changes, note_changes
from rag_pipeline.index.database import Connection
from rag_pipeline.index.forgetting import marks
from rag_pipeline.index.graph import analyze, ensure_graph
from rag_pipeline.index.graph_beside import Connect, graph_beside
from rag_pipeline.index.pg_search import ensure_pg_search, sync_pg_search
from rag_pipeline.index.segments import merge_segments, rebuild_if_outdated
from rag_pipeline.index.spaces import SpaceVectors, vector_table
from rag_pipeline.index.writer import Entry, IndexWriter, WriteReport
from rag_pipeline.lake.derive import Damage, Source, combine, is_partial, leave_aside, parts_in
from rag_pipeline.lake.schemas import chunks_of, documents_of, id_bytes, ids_of
from rag_pipeline.lake.store import Lake, Part
from rag_pipeline.model import Chunk, DayRange, Document, EmbeddingSpace, Failure, failure_of
from rag_pipeline.progress import Advance, Progress

STAGE = "knowledge_index"
_BATCH = 500


@dataclass(slots=True, kw_only=True)
class IndexReport(Damage):
    """What reached the index."""

    parts: int = 0
    fresh: int = 0
    written: WriteReport = field(default_factory=WriteReport)
    documents_by_day: Counter[str] = field(default_factory=Counter)
    fingerprints: dict[Part, str] = field(default_factory=dict)
    """What of each part is in the index now, changed or not."""
    changed: set[tuple[str, str]] = field(default_factory=set)
    """(tenant, repository) of which something was written."""
    graph_built: bool = False
    postings_rebuilt: bool = False
    """All of them: another analyzer had made them, or none."""
    segments_merged: int = 0
    pg_search_rows: int = 0
    """Written and removed in ParadeDB's index."""
    unreadable: int = 0
    """Chunks of the parts that were looked at that the model cannot read: they are found by their words alone."""
    failures: list[Failure] = field(default_factory=list)
    items: Counter[Source] = field(default_factory=Counter)
    """How many documents of each source were looked at."""


def part_fingerprint(lake: Lake, part: Part) -> str:
    """Of what the lake holds for a part: documents and their chunks."""
    return combine(str(lake.fingerprint("documents", part)), str(lake.fingerprint("chunks", part)))


def index_documents(
    lake: Lake,
    days: DayRange,
    *,
    connection: Connection,
    space: EmbeddingSpace,
    fingerprint: str,
    now: datetime,
    progress: Progress,
    pg_search: bool = False,
    kept_from: Mapping[str, datetime] | None = None,
    connect: Connect | None = None,
    left_aside: Collection[Part] = (),
) -> IndexReport:
    """Bring the index to the state that the lake holds for these days; `fingerprint` is of cleaning and chunking.

    What is forgotten is refused, whatever the lake holds, and what of a source type changed last before `kept_from`.
    `pg_search`: ParadeDB's index is kept up, too. `connect`: a first graph is built on a connection of its own, while
    the documents are written. `left_aside`: parts that stay as they are, because the run could not embed their texts.

    Raises:
        ConfigError: the server does not carry pg_search.
    """
    if pg_search and not ensure_pg_search(connection):
        raise ConfigError(
            'retrieval.lexical is "pg_search", but this PostgreSQL server does not carry the extension: install it '
            'there, or set retrieval.lexical to "postings"'
        )
    report = IndexReport(postings_rebuilt=rebuild_if_outdated(connection))
    forgotten = Forgotten(marks=marks(connection), kept_from=kept_from or {})
    parts = parts_in(lake, ["documents"], days)
    stored = stored_parts(connection, space, days, stage=STAGE)
    writer = IndexWriter(connection, fingerprint=fingerprint, now=now)
    stale: dict[Part, str] = {}
    for done, part in enumerate(parts, start=1):
        report.fingerprints[part] = part_fingerprint(lake, part)
        if stored.get(part) != report.fingerprints[part] and part not in left_aside:
            stale[part] = report.fingerprints[part]
        progress(STAGE, done=done, total=len(parts), unit="parts")
    report.parts, report.fresh = len(parts), len(parts) - len(stale)
    total = sum(int((lake.tags("documents", part) or {}).get("rows", "0")) for part in stale)
    advance = Advance(progress, STAGE, total=total, unit="documents")
    with graph_beside(connection, space, connect=connect if stale else None) as graph_is_built:
        for part, expected in stale.items():
            try:
                _index_part(
                    lake, part, report, connection=connection, space=space, writer=writer, forgotten=forgotten,
                    advance=advance,
                )  # fmt: skip
            except PartError as error:
                leave_aside(lake, part, error, report)
                continue
            failed = {(failure.tenant, failure.repository, failure.day) for failure in report.failures}
            if (part.tenant, part.repository, part.day) not in failed:
                record_part(connection, space, part, stage=STAGE, fingerprint=expected, now=now)
        if stale:
            # Vectors may have come to texts that were here before; and each row noted costs every search a look.
            note_changes(connection, {part.tenant for part in stale})
            compact_changes(connection)
        # What follows is each one long statement: who watches shall know at what we are.
        progress(f"{STAGE}: segments and graph", done=0, total=None, unit="steps")
        if pg_search:
            for tenant in sorted({part.tenant for part in parts}):
                report.pg_search_rows += sync_pg_search(connection, tenant=tenant)
        report.segments_merged = merge_segments(connection)
        built = graph_is_built()
    report.graph_built = ensure_graph(connection, space) or built
    if built:
        analyze(connection, vector_table(space))
    return report


def _index_part(
    lake: Lake, part: Part, report: IndexReport, *, connection: Connection, space: EmbeddingSpace,
    writer: IndexWriter, forgotten: Forgotten, advance: Advance,
) -> None:  # fmt: skip
    vectors = SpaceVectors(connection, space, tenant=part.tenant)
    lake.tags("documents", part, owned=False)
    held = lake.tags("chunks", part, owned=False)
    partial = is_partial((held or {}).get("fingerprint"))
    entries = (entry for entry in _entries(lake, part) if not forgotten.covers(entry.document))
    while batch := list(islice(entries, _BATCH)):
        hashes = list({text_hash for entry in batch for text_hash in _hashes(entry)})
        known = vectors.known(hashes)
        missing = [text_hash for text_hash in hashes if text_hash not in known]
        unreadable = vectors.unreadable(missing) if missing else set()
        if held is None:
            # Documents without text have no chunks, nor a file of them; of the others it was lost.
            report.failures += [_unchunked(entry) for entry in batch if _lacks_chunks(entry)]
        chunked = [entry for entry in batch if not ((partial or held is None) and _lacks_chunks(entry))]
        complete = [entry for entry in chunked if _is_complete(entry, known | unreadable, report.failures)]
        report.unreadable += sum(text_hash in unreadable for entry in complete for text_hash in _hashes(entry))
        written = writer.write(complete)
        report.written.add(written)
        if written.rows:
            report.changed.add((part.tenant, part.repository))
        if written.documents:
            report.documents_by_day[part.day.isoformat()] += written.documents
        report.items[part.tenant, part.repository] += len(batch)
        advance(len(batch))


class _ChunksOf(Sequence[Chunk]):
    """The chunks of one document, made only where they are looked at: those of an unchanged document never are."""

    def __init__(self, rows: Sequence[pa.RecordBatch] = ()) -> None:
        self._rows = rows
        self._made: list[Chunk] | None = None
        self.hashes = [text_hash for batch in rows for text_hash in ids_of(batch.column("text_hash"))]

    @property
    def _chunks(self) -> list[Chunk]:
        if self._made is None:
            self._made = [chunk for batch in self._rows for chunk in chunks_of(batch)]
        return self._made

    def __len__(self) -> int:
        return len(self.hashes)

    @overload
    def __getitem__(self, index: int) -> Chunk: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Chunk]: ...

    def __getitem__(self, index: int | slice) -> Chunk | Sequence[Chunk]:
        return self._chunks[index]


def _entries(lake: Lake, part: Part) -> Iterator[Entry]:
    """Documents with their chunks: both files are in the same order of documents, so one pass joins them."""
    groups = _grouped(lake.read("chunks", part))
    group = next(groups, None)
    for document in _documents(lake, part):
        chunks = _ChunksOf()
        if group is not None and group[0] == document.document_id.bytes:
            chunks = _ChunksOf(group[1])
            group = next(groups, None)
        yield Entry(document=document, chunks=chunks)


def _grouped(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[bytes, list[pa.RecordBatch]]]:
    """Ids of documents with the rows of their chunks, in the order of the file."""
    owner, rows = b"", list[pa.RecordBatch]()
    for batch in batches:
        ids = id_bytes(batch.column("document_id"))
        starts = [0, *(np.flatnonzero(ids[1:] != ids[:-1]) + 1).tolist()]
        for start, end in zip(starts, [*starts[1:], len(ids)], strict=True):
            found = batch.column("document_id")[start].as_py()
            if found != owner:
                if rows:
                    yield owner, rows
                owner, rows = found, []
            rows.append(batch.slice(start, end - start))
    if rows:
        yield owner, rows


def _documents(lake: Lake, part: Part) -> Iterable[Document]:
    for batch in lake.read("documents", part):
        yield from documents_of(batch)


def _lacks_chunks(entry: Entry) -> bool:
    """Whether the chunks stage failed on it and has put that on record, or its file is lost: its former state stays."""
    return not entry.chunks and not entry.document.deleted and bool(entry.document.text.strip())


def _unchunked(entry: Entry) -> Failure:
    reason = "the lake holds no chunks of its day: materialize chunks for this day again"
    return failure_of(entry.document, stage=STAGE, reason=reason)


def _hashes(entry: Entry) -> Sequence[UUID]:
    assert isinstance(entry.chunks, _ChunksOf)
    return entry.chunks.hashes


def _is_complete(entry: Entry, known: set[UUID], failures: list[Failure]) -> bool:
    if known.issuperset(_hashes(entry)):
        return True
    missing = next(chunk for chunk in entry.chunks if chunk.text_hash not in known)
    lines = f"lines {missing.start_line} to {missing.end_line}"
    reason = f"{lines} have no vector: materialize embeddings for this day again"
    failures.append(failure_of(entry.document, stage=STAGE, reason=reason))
    return False
