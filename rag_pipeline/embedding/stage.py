"""The embeddings stage: every text of these days' chunks gets a vector, most of them one it already has.

A text that the model cannot read gets a row without a vector: it is settled, too.

First the missing vectors are made and stored, pooled over all parts (long batches, each stored before the next), then
each part's vectors are written to the lake, so that an index can be made again from the lake without a model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import compress, groupby
from typing import Protocol
from uuid import UUID

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rag_pipeline.embedding.embedder import Embedder
from rag_pipeline.embedding.reuse import EmbeddingProgress, EmbeddingReport, KnownVectors, Text, embed_missing
from rag_pipeline.embedding.spending import Spending
from rag_pipeline.errors import BudgetExceeded, PartError
from rag_pipeline.lake.derive import Damage, as_partial, combine, leave_aside, parts_in
from rag_pipeline.lake.schemas import embeddings_schema, id_bytes, ids_of
from rag_pipeline.lake.store import Lake, Part, whole_batches
from rag_pipeline.model import DayRange, EmbeddingSpace
from rag_pipeline.progress import Advance, Progress

STAGE = "embeddings"


class StoredVectors(KnownVectors, Protocol):
    """Known vectors that can be read back."""

    def fetch(self, hashes: Sequence[UUID]) -> Mapping[UUID, NDArray[np.float16] | None]:
        """The vectors of these texts, as far as they are known; None: the model cannot read the text."""


class StoredParts(Protocol):
    """Which parts' vectors the store holds completely."""

    def fingerprint(self, part: Part) -> str | None:
        """The fingerprint with which a part was recorded."""

    def record(self, part: Part, fingerprint: str) -> None:
        """Note that all vectors of a part are stored."""


@dataclass(slots=True, kw_only=True)
class EmbeddingsReport(Damage):
    """What the stage did: distinct texts are counted once per buffer of the stream."""

    parts: int = 0
    fresh: int = 0
    known_parts: int = 0
    """Of those that were not fresh, parts that had all their vectors before they changed."""
    chunks: int = 0
    """Chunks of the parts that were not fresh."""
    skipped: int = 0
    """Of these, chunks whose texts were not wanted."""
    held: int = 0
    """Chunks whose texts had a vector in the part as it was."""
    embedded: int = 0
    reused: int = 0
    unreadable: int = 0
    """Texts of whose words the model knows too few: they have no vector, and are found by their words."""
    restored: int = 0
    """Vectors the store had lost and the lake still held."""
    tokens: int = 0
    bytes: int = 0
    seconds: float = 0.0
    model_seconds: float = 0.0
    over_budget: list[BudgetExceeded] = field(default_factory=list)
    """Of each tenant whose budget does not hold its next text; its parts are left aside."""
    refused: list[tuple[UUID, str]] = field(default_factory=list)
    """Texts that the model refuses for good, with the reason."""
    rows_by_day: Counter[str] = field(default_factory=Counter)
    fingerprints: dict[Part, str] = field(default_factory=dict)
    """What each part holds now, changed or not."""


def lake_stage(space: EmbeddingSpace) -> str:
    """Where the lake keeps a space's vectors."""
    return f"{STAGE}/{space.provider}-{combine(space.model, str(space.dimensions), space.recipe)[:12]}"


def embed_chunks(
    lake: Lake,
    days: DayRange,
    *,
    space: EmbeddingSpace,
    embedder: Embedder,
    vectors_of: Callable[[str], StoredVectors],
    stored: StoredParts,
    progress: Progress,
    only: Callable[[str, Sequence[UUID]], set[UUID]] | None = None,
    spending_of: Callable[[str], Spending] | None = None,
) -> EmbeddingsReport:
    """Bring the vectors of these days' chunks up to date, in the store (`vectors_of(tenant)`) and in the lake.

    What that costs goes on the account of the tenant (`spending_of(tenant)`) and of the repository that first brought
    a text.

    `only(tenant, hashes)` says which of these texts are wanted; a part of which others lack a vector stays partial.

    The parts of a tenant whose budget is spent are left aside; what is embedded by then is stored.

    Raises:
        RagPipelineError: everything that `Embedder.embed` raises.
    """
    report = EmbeddingsReport()
    stage = lake_stage(space)
    stale = dict(_stale(lake, days, stage, stored, report))
    for tenant, group in groupby(stale, key=lambda part: part.tenant):
        parts = list(group)
        vectors = vectors_of(tenant)
        wanted = partial(only, tenant) if only else None
        restored = Advance(progress, f"{STAGE}: looking into the lake", total=None, unit="known vectors")
        settled = {part for part in parts if stored.fingerprint(part) is not None}
        texts = _texts(lake, parts, stage, vectors, report, settled=settled, wanted=wanted, advance=restored)
        total = sum(int((lake.tags("chunks", part) or {}).get("rows", "0")) for part in parts)
        try:
            done = embed_missing(
                texts, embedder=embedder, vectors=vectors, on_progress=_tell(progress, total, report),
                spending=spending_of(tenant) if spending_of else None,
            )  # fmt: skip
        except BudgetExceeded as error:
            # A budget is one tenant's: the others go on.
            report.over_budget.append(error)
            report.left_aside.update(dict.fromkeys(parts, str(error)))
            continue
        _count(report, done)
        written = Advance(progress, f"{STAGE}: writing the lake", total=total, unit="vectors")
        for part in (part for part in parts if part not in report.left_aside):
            try:
                complete = _write_part(
                    lake, part, stage, space, vectors, fingerprint=stale[part], report=report, advance=written
                )
            except PartError as error:
                leave_aside(lake, part, error, report)
                continue
            if complete:
                stored.record(part, stale[part])
    for part in parts_in(lake, [stage], days):
        if part not in report.left_aside and lake.fingerprint("chunks", part) is None:
            lake.remove(stage, part)
    return report


def _stale(
    lake: Lake, days: DayRange, stage: str, stored: StoredParts, report: EmbeddingsReport
) -> Iterator[tuple[Part, str]]:
    for part in parts_in(lake, ["chunks"], days):
        report.parts += 1
        try:
            held = (lake.tags("chunks", part, owned=False) or {}).get("fingerprint")
        except PartError as error:
            leave_aside(lake, part, error, report)
            continue
        expected = combine(stage, str(held))
        if stored.fingerprint(part) == expected == lake.fingerprint(stage, part):
            report.fresh += 1
            report.fingerprints[part] = expected
        else:
            report.known_parts += stored.fingerprint(part) is not None
            yield part, expected


def _texts(
    lake: Lake, parts: Sequence[Part], stage: str, vectors: StoredVectors, report: EmbeddingsReport,
    *, settled: Container[Part], wanted: Callable[[Sequence[UUID]], set[UUID]] | None, advance: Advance,
) -> Iterator[Text]:  # fmt: skip
    for part in parts:
        held = _restore(lake, part, stage, vectors, report, advance)
        # Each text is looked at where the store knows nothing of the part, or another share of words must be known.
        stored = held if part in settled else set[UUID]()
        for batch in _readable(lake, part, ["text_hash", "context", "text"], report):
            report.chunks += batch.num_rows
            every = ids_of(batch.column("text_hash"))
            report.reused += len(stored.intersection(every))
            new = [row for row, text_hash in enumerate(every) if text_hash not in stored]
            report.held += len(every) - len(new)
            if len(new) < len(every):
                batch = batch.take(pa.array(new, pa.int64()))
            above, texts = (batch.column(name).to_pylist() for name in ("context", "text"))
            inputs = [f"{context}{text}" for context, text in zip(above, texts, strict=True)]
            hashes = [every[row] for row in new]
            chosen = set(hashes) if wanted is None else wanted(hashes)
            report.skipped += sum(text_hash not in chosen for text_hash in hashes)
            yield from (
                Text(text_hash, text, part.repository)
                for text_hash, text in zip(hashes, inputs, strict=True)
                if text_hash in chosen
            )


def _restore(
    lake: Lake, part: Part, stage: str, vectors: StoredVectors, report: EmbeddingsReport, advance: Advance
) -> set[UUID]:  # fmt: skip
    """Give the store the part's vectors that it lost: a new database needs no model. Returns what it holds then.

    The file is this stage's own: damaged, it is made again, and what it held is embedded if nobody else has it.
    """
    held: set[UUID] = set()
    if lake.fingerprint(stage, part) is None:
        return held
    for whole in whole_batches(lake.read(stage, part)):
        # Which texts the model cannot read is measured again.
        batch = whole.filter(whole.column("embedding").is_valid())
        hashes = ids_of(batch.column("text_hash"))
        missing = set(hashes) - vectors.known(hashes)
        rows = [row for row, text_hash in enumerate(hashes) if text_hash in missing]
        if rows:
            matrix = _matrix(batch.column("embedding"))[rows]
            report.restored += vectors.store([hashes[row] for row in rows], matrix)
        held.update(hashes)
        advance(len(hashes))
    return held


def _readable(
    lake: Lake, part: Part, columns: Sequence[str], report: EmbeddingsReport
) -> Iterator[pa.RecordBatch]:  # fmt: skip
    """A part's chunks; one that turns out to be damaged is left aside from there on."""
    try:
        yield from lake.read("chunks", part, columns=columns)
    except PartError as error:
        leave_aside(lake, part, error, report)


def _matrix(column: pa.FixedSizeListArray) -> NDArray[np.float32]:
    values = column.flatten().to_numpy(zero_copy_only=False)
    return np.asarray(values.reshape(len(column), -1), dtype=np.float32)


def _write_part(
    lake: Lake,
    part: Part,
    stage: str,
    space: EmbeddingSpace,
    vectors: StoredVectors,
    *,
    fingerprint: str,
    report: EmbeddingsReport,
    advance: Advance,
) -> bool:
    """Write the part's vectors to the lake; False when a text has none."""
    schema = embeddings_schema(space.dimensions)
    complete, row = True, 0
    is_first = _first_rows(lake, part)
    with lake.writer(stage, part, schema=schema) as writer:
        for batch in lake.read("chunks", part, columns=["text_hash"]):
            hashes = list(compress(ids_of(batch.column("text_hash")), is_first[row : row + batch.num_rows]))
            row += batch.num_rows
            found = vectors.fetch(hashes)
            complete = complete and len(found) == len(hashes)
            writer.add(_to_batch([h for h in hashes if h in found], found, schema))
            advance(batch.num_rows)
        writer.fingerprint = fingerprint if complete else as_partial(fingerprint)
    report.fingerprints[part] = writer.fingerprint
    report.bytes += writer.bytes
    report.rows_by_day[part.day.isoformat()] += writer.rows
    return complete


def _first_rows(lake: Lake, part: Part) -> NDArray[np.bool_]:
    """Of each row of a part's chunks, whether its text comes for the first time.

    Sorted as numbers: a set of all hashes would take ten times the memory, and a day may hold hundreds of thousands.
    """
    batches = lake.read("chunks", part, columns=["text_hash"])
    packed = b"".join([id_bytes(batch.column("text_hash")).tobytes() for batch in batches])
    halves = np.frombuffer(packed, dtype=np.uint64).reshape(-1, 2)
    # Stable: of equal texts the first stays the first.
    order = np.lexsort((halves[:, 1], halves[:, 0]))
    differs = np.zeros(len(halves), dtype=np.bool_)
    differs[:1] = True
    for half in halves.T:
        ordered = half[order]
        differs[1:] |= ordered[1:] != ordered[:-1]
    first = np.zeros(len(halves), dtype=np.bool_)
    first[order[differs]] = True
    return first


def _to_batch(
    hashes: Sequence[UUID], found: Mapping[UUID, NDArray[np.float16] | None], schema: pa.Schema
) -> pa.RecordBatch:
    dimensions = schema.field("embedding").type.list_size
    vectors = [found[h] for h in hashes]
    nothing = np.zeros(dimensions, dtype=np.float16)
    filled = [nothing if vector is None else vector for vector in vectors]
    values = np.concatenate(filled) if filled else np.empty(0, dtype=np.float16)
    missing = pa.array([vector is None for vector in vectors], pa.bool_())
    lists = pa.FixedSizeListArray.from_arrays(pa.array(values, pa.float16()), dimensions, mask=missing)
    return pa.RecordBatch.from_arrays([pa.array([h.bytes for h in hashes], pa.binary(16)), lists], schema=schema)


def _tell(progress: Progress, total: int, report: EmbeddingsReport) -> Callable[[EmbeddingProgress], None]:
    before = report.skipped + report.held

    def tell(now: EmbeddingProgress) -> None:
        skipped = report.skipped + report.held - before
        done = now.embedded + now.reused + now.unreadable + now.failed + skipped
        progress(STAGE, done=done, total=total, unit="texts")

    return tell


def _count(report: EmbeddingsReport, done: EmbeddingReport) -> None:
    report.embedded += done.embedded
    report.reused += done.reused
    report.unreadable += done.unreadable
    report.tokens += done.tokens
    report.seconds += done.seconds
    report.model_seconds += done.model_seconds
    report.refused += done.failures
