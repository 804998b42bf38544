"""Chunks that are not what their documents say, or not all of it, are found."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from rag_pipeline.lake.derive import as_partial
from rag_pipeline.lake.store import Lake
from rag_pipeline.model import Chunk, chunk_id, text_hash
from rag_pipeline.quality.chunks import _gaps, chunks_suite
from rag_pipeline_tests.quality.lakes import check, chunks, documents, failed, item, settings, store

SUITE = chunks_suite(settings())
DOCUMENTS = documents()
CHUNKS = chunks(DOCUMENTS)


def lake_with(folder: Path, held: list[Chunk], *, fingerprint: str = "v1") -> Lake:
    return store(store(folder, "documents", DOCUMENTS), "chunks", held, fingerprint=fingerprint)


def named(chunk: Chunk, text: str, **more: object) -> Chunk:
    """A chunk with another text, under the ids that this text gives it."""
    return replace(chunk, text=text, text_hash=text_hash(text), chunk_id=chunk_id(chunk.document_id, text, 0), **more)


def test_chunks_as_the_chunker_makes_them_pass(tmp_path):
    checked = check(lake_with(tmp_path, CHUNKS), SUITE)
    assert checked.outcome.passed
    assert checked.outcome.rows == len(CHUNKS) > 5


FIRST, SECOND, *REST = CHUNKS


@pytest.mark.parametrize(
    ("findings", "bad", "shows"),
    [
        (["chunk_unique", "positions", "ids_follow_text"], [FIRST, FIRST, SECOND, *REST], "Paragraph 0"),
        (["ids_follow_text"], [replace(FIRST, text_hash=SECOND.text_hash), SECOND, *REST], "text_hash"),
        (["tenant"], [replace(FIRST, tenant="rival"), SECOND, *REST], "rival"),
        (["max_tokens"], [replace(FIRST, tokens=41), SECOND, *REST], "41"),
        (["positions"], [FIRST, replace(SECOND, position=7), *REST], "7"),
        (["covered", "positions"], [SECOND, *REST], "Paragraph 0"),
        (["spans"], [named(FIRST, "something else"), SECOND, *REST], "something else"),
        (["all_cut"], CHUNKS[:-1], "handbook:note.md"),
    ],
)  # fmt: skip
def test_chunks_that_are_not_their_documents_block(tmp_path, findings, bad, shows):
    lake = lake_with(tmp_path, bad)
    found = failed(lake, SUITE)
    assert sorted(found) == sorted(findings)
    assert all(finding.blocks for finding in found.values())
    assert shows in str([finding.sample for finding in found.values()])
    lake_with(tmp_path, CHUNKS)
    assert failed(lake, SUITE) == {}


def test_a_chunk_of_a_document_that_is_not_there_blocks(tmp_path):
    (stranger,) = chunks(documents("other.md"))
    found = failed(lake_with(tmp_path, [*CHUNKS, stranger]), SUITE)
    assert list(found) == ["no_orphan"]
    assert "Some words." in str(found["no_orphan"].sample)


def test_chunks_of_a_deleted_document_are_orphans(tmp_path):
    lake = lake_with(tmp_path, CHUNKS)
    store(lake, "documents", [*DOCUMENTS[:-1], replace(DOCUMENTS[-1], deleted=True, text="")])
    assert list(failed(lake, SUITE)) == ["no_orphan"]


def test_a_part_without_any_chunks_fails_when_its_documents_have_words(tmp_path):
    lake = store(tmp_path, "documents", DOCUMENTS)
    found = failed(lake, SUITE)
    assert list(found) == ["all_cut"]
    assert found["all_cut"].observed == "2 (1 of 1)"


def test_what_could_not_be_cut_and_is_on_record_is_no_finding(tmp_path):
    assert failed(lake_with(tmp_path, CHUNKS[:-1], fingerprint=as_partial("v1")), SUITE) == {}


def test_many_small_chunks_only_warn(tmp_path):
    many = [d for n in range(60) for d in documents(f"n{n}.md")]
    lake = store(store(tmp_path, "documents", many), "chunks", chunks(many))
    found = failed(lake, SUITE)
    assert list(found) == ["min_tokens"]
    assert not found["min_tokens"].blocks
    assert failed(lake, chunks_suite(settings(quality={"max_small_chunk_share": 1.0}))) == {}


def test_deleted_documents_need_no_chunks(tmp_path):
    from rag_pipeline.documents.clean import clean

    lake = store(tmp_path, "documents", [clean(item("gone.md", deleted=True, content=b""))])
    assert failed(lake, SUITE) == {}


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)).map(sorted), max_size=8))
@hypothesis_settings(max_examples=200, deadline=None)
def test_gaps_are_what_no_span_covers(spans):
    covered = {place for start, end in spans for place in range(start, end)}
    gaps = [place for start, end in _gaps([tuple(s) for s in spans], 30) for place in range(start, end)]
    assert gaps == [place for place in range(30) if place not in covered]
