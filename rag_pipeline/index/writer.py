"""Writes documents, their chunks and links: newer wins, the same again writes nothing, all three change together.

Identity: documents by `document_id`, chunks by `chunk_id`. A batch is one transaction: COPY (binary) into temporary
tables, then one set-based statement per table. Documents that the index does not know yet go straight into their tables
(`new_documents`), in a transaction of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

import psycopg

from rag_pipeline.index.database import Connection
from rag_pipeline.index.growth import Growth, growth_of
from rag_pipeline.index.new_documents import insert_new
from rag_pipeline.index.rows import (
    CHUNK_TYPES,
    DOCUMENT_TYPES,
    LINK_TYPES,
    Row,
    chunk_row,
    document_row,
    link_rows,
    state_of,
)
from rag_pipeline.index.segments import Worded, add_segments
from rag_pipeline.index.sql_files import queries
from rag_pipeline.lexical.postings import Vocabulary
from rag_pipeline.model import Chunk, Document, age_of

_BATCH_DOCUMENTS = 500
_BATCH_CHARS = 4_000_000
_SHOWN = 20  # changed documents that a report names
_MANY = 100
"""So many new documents among others are worth a transaction, and a segment, of their own."""


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
    growth: Growth = field(default_factory=Growth)
    """By how much the index has grown, or shrunk."""

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
        self.growth.add(other.growth)

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
        self._vocabulary = Vocabulary()

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
        changed, new = self._changed(batch, states, report)
        if new and (len(new) == len(changed) or len(new) >= _MANY) and self._write_new(new, states, report):
            known = {id(entry) for entry in new}
            changed = [entry for entry in changed if id(entry) not in known]
        if changed:
            self._write_changed(changed, states, report)

    def _write_new(self, new: Sequence[Entry], states: dict[UUID, UUID], report: WriteReport) -> bool:
        """Write documents that the index did not know when it was asked; False when it knows one of them by now."""
        try:
            with self._connection.transaction():
                written = insert_new(
                    self._connection, new,
                    [self._document_row(e.document, states[e.document.document_id]) for e in new],
                    vocabulary=self._vocabulary,
                )  # fmt: skip
        except psycopg.errors.UniqueViolation:
            # Another writer was faster: the other way looks at each row, under its lock.
            return False
        report.chunks += written.chunks
        report.links += written.links
        nothing = [(entry.document.document_id, 0, 0) for entry in new]
        growth = growth_of(((e.document, e.chunks) for e in new), before=(), held=nothing)
        self._count(new, report, growth, documents=len(new))
        return True

    def _write_changed(self, changed: Sequence[Entry], states: dict[UUID, UUID], report: WriteReport) -> None:
        if not self._staged:
            self._connection.execute(self._sql["create_staging"])
            self._staged = True
        with self._connection.transaction(), self._connection.cursor() as cursor:
            self._copy(changed, states)
            ids = {"ids": [entry.document.document_id for entry in changed]}
            before = cursor.execute(self._sql["lock_present"], ids).fetchall()
            cursor.execute(self._sql["upsert_documents"])
            written = cursor.rowcount
            report.superseded += len(changed) - cursor.rowcount
            held = cursor.execute(self._sql["held"]).fetchall()
            growth = growth_of(((e.document, e.chunks) for e in changed), before=before, held=held)
            cursor.execute(self._sql["find_reworded"])
            unworded = cursor.execute(self._sql["unworded"]).fetchall()
            cursor.execute(self._sql["delete_chunks"])
            report.chunks_removed += cursor.rowcount
            cursor.execute(self._sql["upsert_chunks"])
            report.chunks += cursor.rowcount
            reworded = cursor.execute(self._sql["reworded"]).fetchall()
            add_segments(
                self._connection, added=map(Worded._make, reworded), removed=map(Worded._make, unworded),
                vocabulary=self._vocabulary,
            )  # fmt: skip
            cursor.execute(self._sql["delete_links"])
            report.links_removed += cursor.rowcount
            cursor.execute(self._sql["upsert_links"])
            report.links += cursor.rowcount
        self._count(changed, report, growth, documents=written)

    def _count(self, changed: Sequence[Entry], report: WriteReport, growth: Growth, *, documents: int) -> None:
        report.documents += documents
        report.growth.add(growth)
        report.tombstones += sum(entry.document.deleted for entry in changed)
        room = max(0, _SHOWN - len(report.documents_changed))
        report.documents_changed += [entry.document.source_id for entry in changed[:room]]

    def _changed(
        self, batch: Sequence[Entry], states: dict[UUID, UUID], report: WriteReport
    ) -> tuple[list[Entry], list[Entry]]:
        """The entries worth a transaction, and which of them are new. Who writes decides again, under its locks."""
        rows = self._connection.execute(self._sql["existing"], {"ids": list(states)})
        present = {row[0]: row[1:] for row in rows}
        changed, new = [], []
        for entry in batch:
            document = entry.document
            known = present.get(document.document_id)
            if known is None:
                changed.append(entry)
                new.append(entry)
            elif known[2] == states[document.document_id] and age_of(document)[0] <= known[0]:
                report.unchanged += 1
            elif age_of(document) < (known[0], known[1]):
                report.superseded += 1
            else:
                changed.append(entry)
        return changed, new

    def _copy(self, entries: Sequence[Entry], states: dict[UUID, UUID]) -> None:
        with self._connection.cursor() as cursor:
            with cursor.copy(self._sql["copy_documents"]) as copy:
                copy.set_types(DOCUMENT_TYPES)
                for entry in entries:
                    copy.write_row(self._document_row(entry.document, states[entry.document.document_id]))
            with cursor.copy(self._sql["copy_chunks"]) as copy:
                copy.set_types(CHUNK_TYPES)
                for entry in entries:
                    for chunk in entry.chunks:
                        copy.write_row(chunk_row(chunk, entry.document))
            with cursor.copy(self._sql["copy_links"]) as copy:
                copy.set_types(LINK_TYPES)
                for entry in entries:
                    for row in link_rows(entry.document):
                        copy.write_row(row)

    def _document_row(self, document: Document, state: UUID) -> Row:
        return document_row(document, fingerprint=self._fingerprint, state=state, now=self._now)


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
