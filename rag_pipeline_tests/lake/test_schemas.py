"""The nouns survive Arrow and Parquet unchanged, in batches that stay small."""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Iterator
from datetime import UTC, date, datetime

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_pipeline.lake.schemas import (
    CHUNKS,
    DOCUMENTS,
    ITEMS,
    chunks_of,
    documents_of,
    dump_metadata,
    embeddings_schema,
    ids_of,
    items_of,
    to_batches,
)
from rag_pipeline.model import Chunk, Document, SourceItem
from rag_pipeline_tests.knowledge import entry

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
moments = st.datetimes(datetime(1970, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
days = st.dates(date(1970, 1, 1), date(2200, 1, 1))
numbers = st.integers(0, 2**31 - 1)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=6,
)
origin = {
    "tenant": text, "source_type": text, "source_id": text, "repository": text, "day": days,
    "source_updated_at": moments, "observed_at": moments, "deleted": st.booleans(), "title": st.none() | text,
    "path": st.none() | text, "language": st.none() | text, "url": st.none() | text, "anchor": st.none() | text,
    "metadata": st.dictionaries(text, json_values, max_size=4),
}  # fmt: skip
items = st.builds(SourceItem, content=st.binary(max_size=50), **origin)
documents = st.builds(
    Document, document_id=st.uuids(), text=text, source_lines=st.none() | st.lists(numbers, max_size=4), **origin
)
chunks = st.builds(
    Chunk, tenant=text, document_id=st.uuids(), chunk_id=st.uuids(), position=numbers, text=text, text_hash=st.uuids(),
    heading_path=st.lists(text, max_size=3), start_char=numbers, end_char=numbers, start_line=numbers,
    end_line=numbers, tokens=numbers,
)  # fmt: skip


def through_parquet(batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    sink = io.BytesIO()
    with pq.ParquetWriter(sink, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return pq.ParquetFile(sink).iter_batches()


@pytest.mark.parametrize(
    ("nouns", "schema", "read"),
    [(items, ITEMS, items_of), (documents, DOCUMENTS, documents_of), (chunks, CHUNKS, chunks_of)],
    ids=["items", "documents", "chunks"],
)
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_nouns_come_back_as_they_went(nouns, schema, read, data):
    given_nouns = data.draw(st.lists(nouns, max_size=5))
    batches = through_parquet(to_batches(given_nouns, schema), schema)
    assert [noun for batch in batches for noun in read(batch)] == given_nouns


@pytest.mark.parametrize(
    ("schema", "noun"),
    [(ITEMS, SourceItem), (DOCUMENTS, Document), (CHUNKS, Chunk)],
    ids=["items", "documents", "chunks"],
)
def test_a_schema_has_the_fields_of_its_noun(schema, noun):
    assert set(schema.names) == {field.name for field in dataclasses.fields(noun)}


def test_batches_hold_at_most_512_rows_and_about_8_megabytes():
    document = entry("a.md", "x").document
    pulled = 0

    def stream(count: int) -> Iterator[Document]:
        nonlocal pulled
        for _ in range(count):
            pulled += 1
            yield document

    batches = to_batches(stream(2000), DOCUMENTS)
    assert next(batches).num_rows == pulled == 512
    assert [batch.num_rows for batch in batches] == [512, 512, 464]

    pulled = 0
    large = to_batches(stream(20), DOCUMENTS, size=lambda _: 3 << 20)
    assert next(large).num_rows == pulled == 3
    assert sum(batch.num_rows for batch in large) == 17
    assert list(to_batches([], DOCUMENTS)) == []


@given(metadata=st.dictionaries(text, json_values, max_size=4))
def test_equal_metadata_give_equal_bytes(metadata):
    assert dump_metadata(metadata) == dump_metadata(dict(reversed(metadata.items())))


def test_vectors_keep_half_precision():
    given_vectors = np.random.default_rng(1).normal(size=(3, 4)).astype(np.float16)
    schema = embeddings_schema(4)
    column = pa.FixedSizeListArray.from_arrays(pa.array(given_vectors.ravel()), 4).cast(schema.field("embedding").type)
    hashes = pa.array([bytes([n] * 16) for n in range(3)], pa.binary(16))
    (batch,) = through_parquet(iter([pa.RecordBatch.from_arrays([hashes, column], schema=schema)]), schema)
    np.testing.assert_array_equal(np.array(batch.column("embedding").to_pylist(), np.float16), given_vectors)
    assert [value.bytes for value in ids_of(batch.column("text_hash"))] == hashes.to_pylist()
