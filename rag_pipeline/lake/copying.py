"""Work follows the change inside a part: rows whose input is the same are copied from the part as it was.

Each row of a derived part carries a digest of what it was made from (`made_from`), and the part says by which code and
settings (`made_by`). A row of the input with a known digest needs no work; the others are made. The rows come in the
order of their inputs, as if all had been made.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final

import pyarrow as pa

from rag_pipeline.lake.schemas import MADE_FROM, rebatched
from rag_pipeline.lake.store import Lake, Part
from rag_pipeline.progress import Advance

MADE_BY: Final = "made_by"
"""The tag that says by which code and settings a part's rows were made."""
OBSERVED: Final = "observed_at"
"""When a row's input was read: it changes nothing that is made of it, and is taken from the input."""
_LONG: Final = 200
"""Longer texts are hashed as they are: to spell them takes longer."""

Batches = Iterable[pa.RecordBatch]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowWork:
    """How a stage makes the rows of one part."""

    read: Callable[[], Batches]
    """The input rows, in order; called once, or twice where rows can be copied."""
    digests: Callable[[pa.RecordBatch], Sequence[bytes]]
    """Of each input row what decides what is made of it; no two rows of a part have the same."""
    documents: Callable[[pa.RecordBatch], Sequence[bytes]]
    """The `document_id` that the rows made of each input row have."""
    make: Callable[[Batches], Iterator[pa.RecordBatch]]
    """What is made of input rows, in their order."""
    schema: pa.Schema
    """Of what is made, `made_from` not included."""
    made_by: str


@dataclass(slots=True, kw_only=True)
class _Run:
    """Input rows that follow each other and are all copied, or all made."""

    copied: bool
    first: int
    digests: list[bytes] = field(default_factory=list)
    old: list[int] = field(default_factory=list)
    """Where they stand among the part's former inputs."""


def follow_changes(
    lake: Lake, stage: str, part: Part, work: RowWork, *, advance: Advance, copied: Callable[[int], None]
) -> Iterator[pa.RecordBatch]:
    """The rows of a part: copied from its former state where their input is the same, made where it is not.

    Tells `copied` how many rows were taken over.

    Raises:
        DamagedPart: the part's former state cannot be read; what was given by then is not whole.
    """
    former = _former(lake, stage, part, work)
    known: dict[bytes, bytes] = {}
    if not former:
        yield from _made(work, work.read(), known)
        return
    digests: list[bytes] = []
    observed: list[pa.Array] = []
    for batch in work.read():
        digests += work.digests(batch)
        if OBSERVED in work.schema.names:
            observed.append(batch.column(OBSERVED))
    runs = _runs(digests, former)
    moments = pa.concat_arrays(observed) if observed else None
    kept = {run.first + row for run in runs if run.copied for row in range(len(run.digests))}
    advance(len(kept))
    made = _Rows(_made(work, _others(work, kept), known))
    old = _Rows(lake.read(stage, part))

    def rows() -> Iterator[pa.RecordBatch]:
        for run in runs:
            if not run.copied:
                yield from made.of(set(run.digests))
                continue
            done = run.first
            for first, last in _ranges(run.old):
                for batch in old.between(former[first].start, former[last].end):
                    copied(batch.num_rows)
                    yield batch if moments is None else _observed(batch, moments.slice(done, batch.num_rows))
                    done += batch.num_rows

    yield from rebatched(rows(), sized_by="text")


def row_digests(batch: pa.RecordBatch, *, without: Collection[str] = ()) -> list[bytes]:
    """A digest of each row, over all columns but these."""
    columns = [
        column.view(pa.int64()) if pa.types.is_timestamp(column.type) else column
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
        if name not in without
    ]
    return [_digest(values) for values in zip(*(column.to_pylist() for column in columns), strict=True)]


def _digest(values: Sequence[object]) -> bytes:
    hashed = hashlib.blake2b(digest_size=16)
    plain: list[object] = []
    for value in values:
        if isinstance(value, str) and len(value) > _LONG:
            value = value.encode("utf-8", "surrogatepass")
        if isinstance(value, bytes):
            hashed.update(value)
            plain.append(len(value))
        else:
            plain.append(value)
    hashed.update(repr(plain).encode("utf-8", "surrogatepass"))
    return hashed.digest()


@dataclass(frozen=True, slots=True)
class _Former:
    """The rows of a part that were made of one input row."""

    digest: bytes
    start: int
    end: int


def _former(lake: Lake, stage: str, part: Part, work: RowWork) -> list[_Former]:
    """What the part as it is was made of; nothing where other code made it, or code that did not note it."""
    if (lake.tags(stage, part) or {}).get(MADE_BY) != work.made_by:
        return []
    if lake.schema(stage, part) != work.schema.append(MADE_FROM):
        return []
    found: list[_Former] = []
    row = 0
    digests = (d for b in lake.read(stage, part, columns=[MADE_FROM.name]) for d in b.column(0).to_pylist())
    for digest, group in groupby(digests):
        start, row = row, row + sum(1 for _ in group)
        found.append(_Former(digest, start, row))
    return found


def _runs(digests: Sequence[bytes], former: Sequence[_Former]) -> list[_Run]:
    """All input rows in runs; as many are copied as keep their order."""
    place = {one.digest: number for number, one in enumerate(former)}
    places = [place.get(digest) for digest in digests]
    in_order = _longest_ascending(places)
    runs: list[_Run] = []
    for row, digest in enumerate(digests):
        is_copied = row in in_order
        if not runs or runs[-1].copied != is_copied:
            runs.append(_Run(copied=is_copied, first=row))
        runs[-1].digests.append(digest)
        if is_copied:
            runs[-1].old.append(places[row] or 0)
    return runs


def _longest_ascending(values: Sequence[int | None]) -> set[int]:
    """Where the members of the longest ascending subsequence stand; what is None is left out."""
    tails: list[int] = []
    ends: list[int] = []
    before: dict[int, int] = {}
    for row, value in enumerate(values):
        if value is None:
            continue
        length = bisect_left(tails, value)
        if length:
            before[row] = ends[length - 1]
        if length == len(tails):
            tails.append(value)
            ends.append(row)
        else:
            tails[length], ends[length] = value, row
    found = set[int]()
    at = ends[-1] if ends else None
    while at is not None:
        found.add(at)
        at = before.get(at)
    return found


def _ranges(places: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Places that follow each other, as first and last."""
    first = last = places[0]
    for place in places[1:]:
        if place != last + 1:
            yield first, last
            first = place
        last = place
    yield first, last


def _others(work: RowWork, kept: Collection[int]) -> Iterator[pa.RecordBatch]:
    before = 0
    for batch in work.read():
        rows = [row for row in range(batch.num_rows) if before + row not in kept]
        before += batch.num_rows
        if rows:
            yield batch if len(rows) == batch.num_rows else batch.take(pa.array(rows))


def _made(work: RowWork, batches: Batches, known: dict[bytes, bytes]) -> Iterator[pa.RecordBatch]:
    """What is made of the batches, each row with the digest of its input."""

    def noted() -> Iterator[pa.RecordBatch]:
        for batch in batches:
            known.update(zip(work.documents(batch), work.digests(batch), strict=True))
            yield batch

    for batch in work.make(noted()):
        digests = [known[document] for document in batch.column("document_id").to_pylist()]
        columns = [*batch.columns, pa.array(digests, MADE_FROM.type)]
        yield pa.RecordBatch.from_arrays(columns, schema=batch.schema.append(MADE_FROM))


def _observed(batch: pa.RecordBatch, moments: pa.Array) -> pa.RecordBatch:
    at = batch.schema.get_field_index(OBSERVED)
    return batch.set_column(at, batch.schema.field(at), moments)


class _Rows:
    """A stream of rows of which some are taken, in order."""

    def __init__(self, batches: Batches) -> None:
        self._batches = iter(batches)
        self._rest: pa.RecordBatch | None = None
        self._at = 0
        """How many rows are behind."""

    def between(self, start: int, end: int) -> Iterator[pa.RecordBatch]:
        """Rows `start` to `end`, the latter not included; those before are passed over."""
        while self._at < end and (batch := self._next()) is not None:
            skipped = min(max(0, start - self._at), batch.num_rows)
            taken = min(batch.num_rows, end - self._at) - skipped
            if taken > 0:
                yield batch.slice(skipped, taken)
            self._leave(batch, skipped + max(taken, 0))

    def of(self, digests: Collection[bytes]) -> Iterator[pa.RecordBatch]:
        """The next rows that were made from one of these."""
        while (batch := self._next()) is not None:
            found = batch.column(MADE_FROM.name).to_pylist()
            taken = next((row for row, digest in enumerate(found) if digest not in digests), batch.num_rows)
            if taken:
                yield batch.slice(0, taken)
            self._leave(batch, taken)
            if taken < batch.num_rows:
                return

    def _next(self) -> pa.RecordBatch | None:
        if self._rest is None:
            return next(self._batches, None)
        batch, self._rest = self._rest, None
        return batch

    def _leave(self, batch: pa.RecordBatch, taken: int) -> None:
        self._at += taken
        self._rest = batch.slice(taken) if taken < batch.num_rows else None
