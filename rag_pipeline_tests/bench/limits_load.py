"""Bulk load: documents, chunks and vectors into the index, beside COPY of the same rows without an index."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count, islice
from typing import Final

import numpy as np

from rag_pipeline.index import new_documents, writer
from rag_pipeline.index.database import Connection, connected
from rag_pipeline.index.graph import ensure_graph
from rag_pipeline.index.migrations import migrate
from rag_pipeline.index.rows import CHUNK_TYPES, DOCUMENT_TYPES, Row, chunk_row, document_row, state_of
from rag_pipeline.index.spaces import SpaceVectors, create_space
from rag_pipeline.index.sql_files import queries
from rag_pipeline.index.vector_rows import vector_rows
from rag_pipeline.index.writer import Entry, IndexWriter
from rag_pipeline.model import EmbeddingSpace, text_hash
from rag_pipeline_tests.bench.report import Report
from rag_pipeline_tests.bench.search import server
from rag_pipeline_tests.bench.search_corpus import TENANT, Batch, Corpus

_SECTION: Final = "limits: bulk load"
_CHUNKS: Final = 40_000
_DIMENSIONS: Final = 384
_BATCH: Final = 500
"""Documents, as the stage has them."""
_NOW: Final = datetime(2024, 1, 1, tzinfo=UTC)
_TABLES: Final = """
DROP TABLE IF EXISTS copied_documents, copied_chunks, copied_vectors;
CREATE TABLE copied_documents (LIKE rag.documents {including});
CREATE TABLE copied_chunks (LIKE rag.chunks {including});
CREATE TABLE copied_vectors (LIKE rag.vectors_{space} {including});
ALTER TABLE copied_vectors ALTER COLUMN embedding SET STORAGE PLAIN;
"""


@dataclass(slots=True)
class _Clock:
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def of(self, name: str) -> Iterator[None]:
        started = time.perf_counter()
        yield
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - started


def bench_load(texts: Sequence[str], report: Report) -> None:
    """Recombine the texts to as many chunks as make the times mean something, and load them in each way."""
    random = np.random.default_rng(5)
    vectors = random.normal(size=(4_000, _DIMENSIONS)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    corpus = Corpus(texts=texts, vectors=vectors, questions=(), question_vectors=vectors[:1])
    batches = list(corpus.batches(_CHUNKS))
    with server() as running:
        url = running.url()
        migrate(url)
        with connected(url) as connection:
            space = create_space(connection, provider="bench", model="load", recipe="v1", dimensions=_DIMENSIONS)
            # What comes first finds colder caches: COPY comes before and after, and its better time counts.
            plain = _copied(connection, batches, space, including="")
            indexed = _copied(connection, batches, space, including="INCLUDING INDEXES")
            ours = _loaded(connection, batches, space)
            plain = min(plain, _copied(connection, batches, space, including=""), key=lambda found: sum(found.values()))
    _tell(report, plain, indexed, ours)


def _tell(report: Report, plain: dict[str, float], indexed: dict[str, float], ours: dict[str, float]) -> None:
    for names in (("documents", "chunks"), ("vectors",), ("documents", "chunks", "vectors")):
        said = "all" if len(names) == 3 else " and ".join(names)
        alone, with_trees, our = (sum(found.get(name, 0.0) for name in names) for found in (plain, indexed, ours))
        report.figure(_SECTION, said, _CHUNKS / our, "chunks/s", note=f"{_CHUNKS:,} chunks")
        report.figure(_SECTION, f"{said}: COPY", _CHUNKS / alone, "chunks/s", note="binary, of the same rows, no index")
        report.figure(
            _SECTION, f"{said}: COPY with B-trees", _CHUNKS / with_trees, "chunks/s", note="no keys, triggers"
        )
        report.figure(
            _SECTION, f"{said}: of COPY", 100 * alone / our, "%", note="our B-trees, keys and triggers included"
        )
        less = our - max(0.0, with_trees - alone)
        report.figure(_SECTION, f"{said}: of COPY, B-trees apart", 100 * alone / less, "%")
    for apart in ("postings", "graph"):
        report.figure(_SECTION, apart, ours[apart], "s", note="counted apart")
    report.show(_SECTION)


def _loaded(connection: Connection, batches: Sequence[Batch], space: EmbeddingSpace) -> dict[str, float]:
    """Seconds by what was written; documents with their chunks and links."""
    clock = _Clock()
    index, add = IndexWriter(connection, fingerprint="bench", now=_NOW), writer.add_segments

    def timed(*arguments: object, **named: object) -> int:
        with clock.of("postings"):
            return add(*arguments, **named)  # type: ignore[arg-type] # passed on as they are

    stored = SpaceVectors(connection, space, tenant=TENANT)
    writer.add_segments = new_documents.add_segments = timed  # type: ignore[attr-defined]
    try:
        for entries, vectors in batches:
            hashes, matrix = [text_hash(text) for text in vectors], np.stack(list(vectors.values()))
            with clock.of("vectors"):
                # As the embeddings stage hands them over: what the model finished.
                for start in range(0, len(hashes), _BATCH):
                    stored.store(hashes[start : start + _BATCH], matrix[start : start + _BATCH])
            with clock.of("chunks"):
                for some in _parts(entries):
                    index.write(some)
    finally:
        writer.add_segments = new_documents.add_segments = add  # type: ignore[attr-defined]
    clock.seconds["chunks"] -= clock.seconds["postings"]
    with clock.of("graph"):
        ensure_graph(connection, space)
    return clock.seconds


def _copied(
    connection: Connection, batches: Sequence[Batch], space: EmbeddingSpace, *, including: str
) -> dict[str, float]:
    """Seconds for COPY into tables of the same columns; making the rows counts, as it does in ours."""
    clock, sql, numbers = _Clock(), queries("writer"), count(1)
    connection.execute(_TABLES.format(including=including, space=space.space_id).encode())
    for entries, vectors in batches:
        for some in _parts(entries):
            with clock.of("documents"):
                rows = [
                    document_row(e.document, fingerprint="bench", now=_NOW, state=state_of(e.document, fingerprint="b"))
                    for e in some
                ]
                _copy(connection, sql["insert_documents"].replace("rag.", "copied_"), DOCUMENT_TYPES, rows)
            with clock.of("chunks"):
                found = ((*chunk_row(chunk, e.document), next(numbers)) for e in some for chunk in e.chunks)
                _copy(connection, sql["insert_chunks"].replace("rag.", "copied_"), (*CHUNK_TYPES, "int8"), found)
        with clock.of("vectors"):
            hashes, matrix = [text_hash(text) for text in vectors], np.stack(list(vectors.values()))
            statement = b"COPY copied_vectors FROM STDIN (FORMAT binary)"
            for start in range(0, len(hashes), _BATCH):
                some_rows = vector_rows(hashes[start : start + _BATCH], TENANT.encode(), matrix[start : start + _BATCH])
                with connection.cursor() as cursor, cursor.copy(statement) as copy:
                    copy.write(some_rows)
    return clock.seconds


def _copy(connection: Connection, statement: str, types: Sequence[str], rows: Iterable[Row]) -> None:
    with connection.cursor() as cursor, cursor.copy(statement.encode()) as copy:
        copy.set_types(types)
        for row in rows:
            copy.write_row(row)


def _parts(entries: Sequence[Entry]) -> Iterator[list[Entry]]:
    waiting = iter(entries)
    while some := list(islice(waiting, _BATCH)):
        yield some
