"""The knowledge_index stage: from the lake's documents and chunks to rows, withholding what has no vector yet."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rag_pipeline.index.changes import index_state
from rag_pipeline.index.database import Connection
from rag_pipeline.index.stage import IndexReport, index_documents
from rag_pipeline.index.writer import Entry
from rag_pipeline.lake.schemas import CHUNKS, DOCUMENTS, to_batches
from rag_pipeline.lake.store import Lake, Part
from rag_pipeline.model import DayRange, EmbeddingSpace
from rag_pipeline.progress import silent
from rag_pipeline_tests.knowledge import DAY, NOW, entry, space_of, store_vectors

PART = Part(tenant="acme", repository="handbook", day=DAY)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(str(tmp_path))


def put(lake: Lake, *entries: Entry, fingerprint: str = "f1") -> None:
    """What the documents and chunks stages would leave."""
    for stage, schema, nouns in (
        ("documents", DOCUMENTS, [e.document for e in entries]),
        ("chunks", CHUNKS, [chunk for e in entries for chunk in e.chunks]),
    ):
        with lake.writer(stage, PART, schema=schema) as writer:
            for batch in to_batches(nouns, schema):
                writer.add(batch)
            writer.fingerprint = fingerprint


def run(lake: Lake, connection: Connection, space: EmbeddingSpace) -> IndexReport:
    return index_documents(
        lake, DayRange(first=DAY, last=DAY), connection=connection, space=space, fingerprint="v1", now=NOW,
        progress=silent,
    )  # fmt: skip


def embedded(connection: Connection, space: EmbeddingSpace, *texts: str) -> None:
    store_vectors(connection, space, {text: np.eye(8)[n % 8] for n, text in enumerate(texts)})


def test_documents_and_chunks_reach_the_index_and_a_second_run_looks_at_nothing(lake, connection):
    space = space_of(connection)
    embedded(connection, space, "one", "two", "three")
    put(lake, entry("a.md", "one", "two"), entry("empty.md"), entry("gone.md", deleted=True), entry("z.md", "three"))
    report = run(lake, connection, space)
    assert (report.parts, report.fresh, report.failures) == (1, 0, [])
    assert (report.written.documents, report.written.tombstones, report.written.chunks) == (4, 1, 3)
    assert report.documents_by_day == {"2024-05-01": 4}
    assert report.graph_built
    again = run(lake, connection, space)
    assert (again.parts, again.fresh, again.written.rows, again.graph_built) == (1, 1, 0, False)


def test_a_document_without_all_its_vectors_is_withheld_and_tried_again(lake, connection):
    space = space_of(connection)
    embedded(connection, space, "one", "old")
    put(lake, entry("a.md", "old"), fingerprint="f0")
    run(lake, connection, space)
    put(lake, entry("a.md", "one", "new", at=2), entry("b.md", "one", at=2))

    report = run(lake, connection, space)
    assert [f.source_id for f in report.failures] == ["handbook:a.md"]
    assert "lines 3 to 3 have no vector: materialize embeddings for this day again" in report.failures[0].reason
    # What is withheld keeps its former state.
    assert {row[0] for row in connection.execute("SELECT text FROM rag.chunks")} == {"old", "one"}

    embedded(connection, space, "new")
    report = run(lake, connection, space)
    assert (report.failures, report.fresh, report.written.documents) == ([], 0, 1)
    assert run(lake, connection, space).fresh == 1


def test_a_text_that_another_tenant_has_embedded_needs_no_vector_of_its_own(lake, connection):
    space = space_of(connection)
    store_vectors(connection, space, {"one": np.eye(8)[0]}, tenant="globex")
    put(lake, entry("a.md", "one"))
    assert run(lake, connection, space).failures == []
    rows = connection.execute("SELECT tenant_id FROM rag.vectors_1 ORDER BY 1").fetchall()
    assert rows == [("acme",), ("globex",)]


def test_the_same_part_is_stored_for_each_space(lake, connection):
    first, second = space_of(connection, model="a"), space_of(connection, model="b")
    put(lake, entry("a.md", "one"))
    for space in (first, second):
        embedded(connection, space, "one")
        assert run(lake, connection, space).fresh == 0
    assert run(lake, connection, first).fresh == 1


def test_vectors_that_come_to_texts_of_before_change_what_is_found_and_a_run_without_news_does_not(lake, connection):
    first, second = space_of(connection, model="a"), space_of(connection, model="b")
    put(lake, entry("a.md", "one"))
    embedded(connection, first, "one")
    run(lake, connection, first)
    before = index_state(connection, "acme")
    assert before.changes == 1
    run(lake, connection, first)
    assert index_state(connection, "acme") == before
    # As after a promotion that was forced: no document changes, but each is found by its vector from now on.
    embedded(connection, second, "one")
    assert run(lake, connection, second).written.rows == 0
    assert index_state(connection, "acme") != before
    assert index_state(connection, "acme").changes == 1
