"""Writes documents, their chunks and links: newer wins, the same again writes nothing, all three change together.

Identity: documents by `document_id`, chunks by `chunk_id`. A batch is one transaction: COPY (binary) into temporary
tables, then one set-based statement per table.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from psycopg.types.json import Jsonb

from rag_pipeline.index.database import Connection
from rag_pipeline.index.links import links_of
from rag_pipeline.index.segments import Worded, add_segments
from rag_pipeline.index.sql_files import queries
from rag_pipeline.lake.schemas import dump_metadata
from rag_pipeline.model import Chunk, Document, age_of, stable_id, text_hash

_BATCH_DOCUMENTS = 500
_BATCH_CHARS = 4_000_000
_SHOWN = 20  # changed documents that a report names
_UNSTORABLE = re.compile(r"[\x00\ud800-\udfff]")

_DOCUMENT_TYPES = (
    "uuid", "text", "text", "text", "text", "text", "text", "text", "text", "text", "text", "jsonb",
    "uuid", "text", "uuid", "timestamptz", "timestamptz", "bool", "timestamptz", "timestamptz",
)  # fmt: skip
_CHUNK_TYPES = (
    "uuid", "uuid", "text", "text", "int4", "text", "uuid", "text[]", "int4", "int4", "int4", "int4", "int4",
    "text", "text",
)  # fmt: skip
_LINK_TYPES = ("uuid", "text", "text", "text", "text")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A document with its chunks, as they shall stand in the index."""

    document: Document
    chunks: Sequence[Chunk]


@dataclass(slots=True, kw_only=True)
class WriteReport:
    """Rows that really changed, and documents that did not."""

    documents: int = 0
    """Documents inserted or updated, tombstones included."""
    tombstones: int = 0
    """Of these, newly deleted or known to be deleted."""
    unchanged: int = 0
    superseded: int = 0
    """Documents of which the index already holds a newer state."""
    chunks: int = 0
    """Chunks inserted or updated."""
    chunks_removed: int = 0
    links: int = 0
    """Links inserted or updated."""
    links_removed: int = 0
    documents_changed: list[str] = field(default_factory=list)
    """Source ids of the first changed documents, for a preview."""

    def add(self, other: WriteReport) -> None:
        """Count what another write did too."""
        self.documents += other.documents
        self.tombstones += other.tombstones
        self.unchanged += other.unchanged
        self.superseded += other.superseded
        self.chunks += other.chunks
        self.chunks_removed += other.chunks_removed
        self.links += other.links
        self.links_removed += other.links_removed
        self.documents_changed = (self.documents_changed + other.documents_changed)[:_SHOWN]

    @property
    def rows(self) -> int:
        """All rows written or removed."""
        return self.documents + self.chunks + self.chunks_removed + self.links + self.links_removed


class IndexWriter:
    """Writes entries over one connection."""

    def __init__(self, connection: Connection, *, fingerprint: str, now: datetime) -> None:
        self._connection = connection
        self._fingerprint = fingerprint
        self._now = now
        self._sql = queries("writer")
        self._staged = False

    def write(self, entries: Iterable[Entry]) -> WriteReport:
        """Bring the index to these states, in batches; each batch is there wholly or not at all."""
        report = WriteReport()
        for batch in _batches(entries):
            self._write_batch(batch, report)
        return report

    def _write_batch(self, batch: Sequence[Entry], report: WriteReport) -> None:
        batch = _newest(batch, report)
        states = {
            entry.document.document_id: state_of(entry.document, fingerprint=self._fingerprint) for entry in batch
        }
        changed = self._changed(batch, states, report)
        if not changed:
            return
        if not self._staged:
            self._connection.execute(self._sql["create_staging"])
            self._staged = True
        with self._connection.transaction(), self._connection.cursor() as cursor:
            self._copy(changed, states)
            cursor.execute(self._sql["upsert_documents"])
            report.documents += cursor.rowcount
            report.superseded += len(changed) - cursor.rowcount
            cursor.execute(self._sql["find_reworded"])
            unworded = cursor.execute(self._sql["unworded"]).fetchall()
            cursor.execute(self._sql["delete_chunks"])
            report.chunks_removed += cursor.rowcount
            cursor.execute(self._sql["upsert_chunks"])
            report.chunks += cursor.rowcount
            reworded = cursor.execute(self._sql["reworded"]).fetchall()
            add_segments(self._connection, added=map(Worded._make, reworded), removed=map(Worded._make, unworded))
            cursor.execute(self._sql["delete_links"])
            report.links_removed += cursor.rowcount
            cursor.execute(self._sql["upsert_links"])
            report.links += cursor.rowcount
        report.tombstones += sum(entry.document.deleted for entry in changed)
        room = max(0, _SHOWN - len(report.documents_changed))
        report.documents_changed += [entry.document.source_id for entry in changed[:room]]

    def _changed(self, batch: Sequence[Entry], states: dict[UUID, UUID], report: WriteReport) -> list[Entry]:
        """The entries worth a transaction. The statement that writes decides again, under its row locks."""
        rows = self._connection.execute(self._sql["existing"], {"ids": list(states)})
        present = {row[0]: row[1:] for row in rows}
        changed = []
        for entry in batch:
            document = entry.document
            known = present.get(document.document_id)
            if known is None:
                changed.append(entry)
            elif known[2] == states[document.document_id] and age_of(document)[0] <= known[0]:
                report.unchanged += 1
            elif age_of(document) < (known[0], known[1]):
                report.superseded += 1
            else:
                changed.append(entry)
        return changed

    def _copy(self, entries: Sequence[Entry], states: dict[UUID, UUID]) -> None:
        with self._connection.cursor() as cursor:
            with cursor.copy(self._sql["copy_documents"]) as copy:
                copy.set_types(_DOCUMENT_TYPES)
                for entry in entries:
                    copy.write_row(self._document_row(entry.document, states[entry.document.document_id]))
            with cursor.copy(self._sql["copy_chunks"]) as copy:
                copy.set_types(_CHUNK_TYPES)
                for entry in entries:
                    for chunk in entry.chunks:
                        copy.write_row(_chunk_row(chunk, entry.document))
            with cursor.copy(self._sql["copy_links"]) as copy:
                copy.set_types(_LINK_TYPES)
                for d in (entry.document for entry in entries):
                    for kind, target in links_of(d):
                        copy.write_row((d.document_id, kind, target, d.tenant, d.scope))

    def _document_row(self, document: Document, state: UUID) -> tuple[object, ...]:
        d = document
        return (
            d.document_id, d.tenant, d.source_type, d.source_id, d.repository, d.scope, storable(d.path), d.language,
            storable(d.title), storable(d.url), storable(d.anchor), Jsonb(storable(d.metadata)), text_hash(d.text),
            self._fingerprint, state, d.source_updated_at, d.observed_at, d.deleted, self._now, age_of(d)[0],
        )  # fmt: skip


def state_of(document: Document, *, fingerprint: str) -> UUID:
    """Everything the index shows of a document; when and how often it was observed is not part of it."""
    d = document
    shown = (d.repository, d.path, d.language, d.title, d.url, d.anchor)
    return stable_id(
        "state",
        *(value or "" for value in shown),
        dump_metadata(d.metadata),
        d.source_updated_at.isoformat(),
        str(d.deleted),
        fingerprint,
        d.text,
        *((d.scope,) if d.scope is not None else ()),
        *(f"{s.start_char} {s.anchor} {s.name}" for s in d.sections or ()),
    )


def _chunk_row(chunk: Chunk, document: Document) -> tuple[object, ...]:
    c = chunk
    return (
        c.chunk_id, c.document_id, c.tenant, document.scope, c.position, storable(c.text), c.text_hash,
        storable(c.heading_path), c.start_char, c.end_char, c.start_line, c.end_line, c.tokens, storable(c.anchor),
        storable(lead_of(document.title, document.path, c.heading_path)),
    )  # fmt: skip


def lead_of(title: str | None, path: str | None, heading_path: Sequence[str]) -> str:
    """What the lexical leg sees of a chunk before its text: where it stands.

    Title and headings stand there twice, which BM25 takes for twice as much weight (docs/retrieval.md has the figures).
    """
    headings = list(dict.fromkeys(part for part in (title, *heading_path) if part))
    return "\n".join([*([path] if path else ()), *headings, *headings])


def storable(value: object) -> object:
    """The value without what PostgreSQL's text and jsonb refuse: NUL, lone surrogates, NaN. Lengths stay the same."""
    if isinstance(value, str):
        return _UNSTORABLE.sub("\ufffd", value)
    if isinstance(value, Mapping):
        return {storable(key): storable(item) for key, item in value.items()}
    if isinstance(value, Sequence):
        return [storable(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _newest(batch: Sequence[Entry], report: WriteReport) -> list[Entry]:
    """One entry per document: its newest state, of equally new ones the last."""
    newest: dict[UUID, Entry] = {}
    for entry in batch:
        other = newest.get(entry.document.document_id)
        if other is None or age_of(other.document) <= age_of(entry.document):
            newest[entry.document.document_id] = entry
    report.superseded += len(batch) - len(newest)
    return list(newest.values())


def _batches(entries: Iterable[Entry]) -> Iterator[list[Entry]]:
    batch: list[Entry] = []
    held = 0
    for entry in entries:
        batch.append(entry)
        held += len(entry.document.text)
        if len(batch) >= _BATCH_DOCUMENTS or held >= _BATCH_CHARS:
            yield batch
            batch, held = [], 0
    if batch:
        yield batch
