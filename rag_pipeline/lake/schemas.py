"""The nouns as Arrow: one schema per stage, and the conversions both ways."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final, TypeVar
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rag_pipeline.model import Chunk, Document, Json, Section, SourceItem

_ID = pa.binary(16)
_TIME = pa.timestamp("us", tz="UTC")
_DAY = pa.date32()
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_DAY: Final = _EPOCH.toordinal()
_LINES = pa.list_(pa.int32())
_CANONICAL: Final = json.JSONEncoder(sort_keys=True, ensure_ascii=False, separators=(",", ":"))

_ORIGIN = [
    ("tenant", pa.string()),
    ("source_type", pa.string()),
    ("source_id", pa.string()),
    ("repository", pa.string()),
    ("day", _DAY),
    ("source_updated_at", _TIME),
    ("observed_at", _TIME),
    ("deleted", pa.bool_()),
    ("title", pa.string()),
    ("path", pa.string()),
    ("language", pa.string()),
    ("url", pa.string()),
    ("anchor", pa.string()),
    ("metadata", pa.string()),
    ("as_of", _TIME),
    ("scope", pa.string()),
]
_SECTIONS = pa.list_(pa.struct([("start_char", pa.int32()), ("anchor", pa.string()), ("name", pa.string())]))
ITEMS = pa.schema([*_ORIGIN, ("content", pa.large_binary())])
DOCUMENTS = pa.schema(
    [
        *_ORIGIN,
        ("document_id", _ID),
        ("text", pa.large_string()),
        ("markup", pa.string()),
        ("source_lines", _LINES),
        ("sections", _SECTIONS),
    ]
)
CHUNKS = pa.schema(
    [
        ("tenant", pa.string()),
        ("document_id", _ID),
        ("chunk_id", _ID),
        ("position", pa.int32()),
        ("text", pa.large_string()),
        ("text_hash", _ID),
        ("heading_path", pa.list_(pa.string())),
        ("start_char", pa.int32()),
        ("end_char", pa.int32()),
        ("start_line", pa.int32()),
        ("end_line", pa.int32()),
        ("tokens", pa.int32()),
        ("anchor", pa.string()),
        ("context", pa.string()),
    ]
)
MADE_FROM = pa.field("made_from", _ID)
"""In files of documents and chunks: a digest of what each row was made from."""


def embeddings_schema(dimensions: int) -> pa.Schema:
    """Vectors at half precision, as the index keeps them."""
    return pa.schema([("text_hash", _ID), ("embedding", pa.list_(pa.float16(), dimensions))])


Noun = TypeVar("Noun", SourceItem, Document, Chunk)

_BATCH_ROWS = 512
_BATCH_BYTES = 8 << 20


def to_batches(
    nouns: Iterable[Noun], schema: pa.Schema, *, size: Callable[[Noun], int] = lambda _: 0
) -> Iterator[pa.RecordBatch]:
    """Record batches of at most 512 rows and about 8 MB of `size`, so that memory stays bounded."""
    pending: list[Noun] = []
    held = 0
    for noun in nouns:
        pending.append(noun)
        held += size(noun)
        if len(pending) >= _BATCH_ROWS or held >= _BATCH_BYTES:
            yield _to_batch(pending, schema)
            pending, held = [], 0
    if pending:
        yield _to_batch(pending, schema)


def rebatched(batches: Iterable[pa.RecordBatch], *, sized_by: str) -> Iterator[pa.RecordBatch]:
    """The same rows in the batches that `to_batches` makes of their nouns, sized by the characters of that column."""
    pending: list[pa.RecordBatch] = []
    rows = held = 0
    for batch in batches:
        lengths = pc.utf8_length(batch.column(sized_by))
        size = pc.sum(lengths).as_py() or 0
        if rows + batch.num_rows < _BATCH_ROWS and held + size < _BATCH_BYTES:
            pending.append(batch)
            rows, held = rows + batch.num_rows, held + size
            continue
        start = 0
        for end, length in enumerate(lengths.to_pylist(), start=1):
            rows, held = rows + 1, held + length
            if rows >= _BATCH_ROWS or held >= _BATCH_BYTES:
                yield pa.concat_batches([*pending, batch.slice(start, end - start)])
                pending, start, rows, held = [], end, 0, 0
        if start < batch.num_rows:
            pending.append(batch.slice(start))
    if rows:
        yield pa.concat_batches(pending)


def items_of(batch: pa.RecordBatch) -> Iterator[SourceItem]:
    """The source items of a batch."""
    return _nouns(batch, SourceItem)


def documents_of(batch: pa.RecordBatch) -> Iterator[Document]:
    """The documents of a batch."""
    return _nouns(batch, Document)


def chunks_of(batch: pa.RecordBatch) -> Iterator[Chunk]:
    """The chunks of a batch."""
    return _nouns(batch, Chunk)


def metadata_naming(batch: pa.RecordBatch, key: str) -> Iterator[Mapping[str, Json]]:
    """The metadata of those rows that have such a key, in their order; the others are not read."""
    return (metadata for _, metadata in rows_naming(batch, key))


def rows_naming(batch: pa.RecordBatch, key: str) -> Iterator[tuple[int, Mapping[str, Json]]]:
    """(row, metadata) of those rows whose metadata have such a key."""
    column = batch.column("metadata")
    rows = pc.indices_nonzero(pc.match_substring(column, dump_metadata({key: 0})[1:-2])).to_pylist()
    return ((row, found) for row in rows if key in (found := json.loads(column[row].as_py())))


def ids_of(column: pa.Array) -> list[UUID]:
    """A column of 16-byte ids as UUIDs."""
    return [UUID(bytes=value) for value in column.to_pylist()]


def id_bytes(column: pa.FixedSizeBinaryArray) -> NDArray[np.bytes_]:
    """The same ids as an array of 16 bytes each, shape (rows,), which looks at the column's own memory."""
    every = np.frombuffer(column.buffers()[1], dtype="S16")
    return every[column.offset : column.offset + len(column)]


def _to_batch(nouns: Sequence[Noun], schema: pa.Schema) -> pa.RecordBatch:
    columns = []
    for field in schema:
        values: list[Any] = [getattr(noun, field.name) for noun in nouns]
        if field.type == _ID:
            values = [value.bytes for value in values]
        elif field.name == "metadata":
            values = [dump_metadata(value) for value in values]
        elif field.name == "heading_path":
            values = [list(value) for value in values]
        elif field.name == "sections":
            values = [value and [dataclasses.asdict(section) for section in value] for value in values]
        columns.append(pa.array(values, field.type))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def dump_metadata(value: Mapping[str, object]) -> str:
    """Metadata as canonical JSON: equal metadata give equal bytes."""
    return _CANONICAL.encode(value)


def _nouns(batch: pa.RecordBatch, noun: type[Noun]) -> Iterator[Noun]:
    names = [field.name for field in dataclasses.fields(noun)]
    columns = [_column(batch, name) for name in names]
    for values in zip(*columns, strict=True):
        yield noun(**dict(zip(names, values, strict=True)))


def _numbers(array: pa.Array) -> list[int | None]:
    """As what times and days are stored: to make their values takes Arrow ten times as long, and it loads pandas."""
    return array.view(pa.int64() if array.type == _TIME else pa.int32()).to_pylist()  # type: ignore[no-any-return]


def _column(batch: pa.RecordBatch, name: str) -> list[Any]:
    if name not in batch.schema.names:
        # Written by a version that did not know this column yet.
        return [None] * batch.num_rows
    array = batch.column(name)
    if array.type == _TIME:
        # Not by pyarrow's own way to a moment, which takes four times as long and loads pandas first.
        return [n if n is None else _EPOCH + timedelta(microseconds=n) for n in _numbers(array)]
    if array.type == _DAY:
        return [n if n is None else date.fromordinal(_EPOCH_DAY + n) for n in _numbers(array)]
    values = array.to_pylist()
    if array.type == _ID:
        return [UUID(bytes=value) for value in values]
    if name == "metadata":
        return [json.loads(value) for value in values]
    if name == "sections":
        return [value and [Section(**section) for section in value] for value in values]
    return values  # type: ignore[no-any-return]
