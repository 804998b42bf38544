"""The documents stage: source items of these days to cleaned documents, tombstones passed through."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime
from typing import ClassVar, Final, TypeAlias

import pyarrow as pa

from rag_pipeline.documents.clean import CLEANING_VERSION, DEFAULT_REDACTION, DEFAULT_THREADS, ENCODING, GUESSED, clean
from rag_pipeline.documents.markdown import BROKEN_FRONT_MATTER
from rag_pipeline.documents.redaction import REDACTION_VERSION, engine_version, redact
from rag_pipeline.documents.redaction.document import BY_KIND, redactions_in
from rag_pipeline.errors import ItemError
from rag_pipeline.lake.copying import MADE_BY, OBSERVED, RowWork, follow_changes, row_digests
from rag_pipeline.lake.derive import DeriveReport, TooMany, derive
from rag_pipeline.lake.schemas import DOCUMENTS, MADE_FROM, items_of, metadata_naming, rows_naming
from rag_pipeline.lake.spread import pool_of, spread
from rag_pipeline.lake.store import Lake, Part
from rag_pipeline.model import DayRange, Document, Failure, SourceItem, age_of, document_id, failure_of
from rag_pipeline.progress import Advance, Progress
from rag_pipeline.settings import Documents, Redaction, Threads
from rag_pipeline.settings import fingerprint as settings_fingerprint

STAGE = "documents"
DEFAULT_LIMITS: Final = Documents()

_KEY = ("source_type", "source_id")
_AGE = ("source_updated_at", "observed_at", "as_of")


@dataclass(slots=True, kw_only=True)
class DocumentsReport(DeriveReport):
    """What cleaning did with the parts of a run."""

    redactions: Counter[str] = field(default_factory=Counter)
    """Redacted values by kind, in the documents that were cleaned anew."""
    guessed_encodings: int = 0
    """Documents among them whose encoding had to be guessed, with little to go by."""
    broken_front_matter: list[tuple[str, str]] = field(default_factory=list)
    """(path, problem) of the documents that were cleaned anew without their front matter, as it cannot be read."""


def fingerprint(threads: Threads = DEFAULT_THREADS, redaction: Redaction = DEFAULT_REDACTION) -> str:
    """Changes when the same items could give other documents; other defaults of the settings are another version.

    The detector of secrets is part of it: a better one cleans again.
    """
    made = f"{STAGE}/{CLEANING_VERSION}/redaction-{REDACTION_VERSION}-{engine_version()}"
    if threads != DEFAULT_THREADS:
        made += f"/{settings_fingerprint(threads)}"
    return made if redaction == DEFAULT_REDACTION else f"{made}/redaction-{settings_fingerprint(redaction)}"


@dataclass(frozen=True, slots=True)
class _Cleaning:
    """The document of one item, for `spread`."""

    threads: Threads
    redaction: Redaction
    max_bytes: int
    schema: ClassVar[pa.Schema] = DOCUMENTS
    sized_by: ClassVar[str] = "content"
    worth: ClassVar[int] = 8_000_000  # bytes are more than half a second's work, which a process takes to start

    def read(self, batch: pa.RecordBatch, /) -> Iterator[SourceItem]:
        return items_of(batch)

    def check(self, size: int, /) -> None:
        if size > self.max_bytes:
            raise ItemError(
                f"its {size:,} bytes are more than documents.max_bytes ({self.max_bytes:,}): "
                "leave it out, or raise that"
            )

    def made(self, item: SourceItem, /) -> list[Document]:
        self.check(len(item.content))
        document = clean(item, threads=self.threads, redaction=self.redaction)
        self.check(len(document.text))  # a marker is longer than a short secret
        return [document]

    def failure(self, item: SourceItem, error: Exception, /) -> Failure:
        return failure_of(item, stage=STAGE, reason=redact(f"{type(error).__name__}: {error}").text)


def clean_items(
    lake: Lake, days: DayRange, *, inputs: Sequence[str], threads: Threads, redaction: Redaction = DEFAULT_REDACTION,
    limits: Documents = DEFAULT_LIMITS, progress: Progress, processes: int | None = None,
    too_many: TooMany = lambda failures, items: False,
) -> DocumentsReport:  # fmt: skip
    """Bring the `documents` parts of these days up to date with the raw stages named in `inputs`.

    Of several states of one item, as a poll and a webhook bring them, the newest counts, and of equally new ones that
    of the last input. Large parts are cleaned by several processes, `processes` at most (None: as many as there are
    cores to use). A source with `too_many` failures keeps its former parts, see `derive`.
    """
    report = DocumentsReport()
    made_by = fingerprint(threads, redaction)
    cleaning = _Cleaning(threads, redaction, limits.max_bytes)
    with pool_of(processes, limits) as pool:

        def transform(part: Part, failures: list[Failure], advance: Advance) -> Iterator[pa.RecordBatch]:
            superseded = _superseded(lake, part, inputs)
            advance(len(superseded))

            def make(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
                made = spread(batches, cleaning, pool=pool, failures=failures, advance=advance)
                return _counted(made, report)

            work = RowWork(
                read=lambda: _newest(lake, part, inputs, superseded),
                digests=lambda batch: row_digests(batch, without=[OBSERVED]),
                documents=_document_ids,
                make=make,
                schema=DOCUMENTS,
                made_by=made_by,
            )
            return follow_changes(lake, STAGE, part, work, advance=advance, copied=report.count_copied)

        return derive(
            lake, days, stage=STAGE, inputs=inputs, schema=DOCUMENTS.append(MADE_FROM), transform=transform,
            progress=progress, stage_fingerprint=made_by, report=report, too_many=too_many,
            tags_of=lambda _: {MADE_BY: made_by},
        )  # fmt: skip


def _document_ids(batch: pa.RecordBatch) -> list[bytes]:
    """The ids of the documents of these items."""
    identities = zip(*(batch.column(name).to_pylist() for name in ("tenant", *_KEY)), strict=True)
    return [document_id(tenant=t, source_type=kind, source_id=name).bytes for t, kind, name in identities]


def _counted(batches: Iterator[pa.RecordBatch], report: DocumentsReport) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for metadata in metadata_naming(batch, BY_KIND):
            report.redactions.update(redactions_in(metadata))
        report.guessed_encodings += sum(each[ENCODING] == GUESSED for each in metadata_naming(batch, ENCODING))
        for row, metadata in rows_naming(batch, BROKEN_FRONT_MATTER):
            columns = [batch.column(name)[row].as_py() for name in ("path", "source_id")]
            report.broken_front_matter.append((columns[0] or columns[1], str(metadata[BROKEN_FRONT_MATTER])))
        yield batch


def _newest(lake: Lake, part: Part, inputs: Sequence[str], superseded: Set[_Place]) -> Iterator[pa.RecordBatch]:
    """All items of a part, input after input, without those that another one replaces."""
    for number, stage in enumerate(inputs):
        before = 0
        for batch in lake.read(stage, part):
            places = range(before, before + batch.num_rows)
            kept = [row for row, place in enumerate(places) if (number, place) not in superseded]
            before += batch.num_rows
            if kept:
                yield batch if len(kept) == batch.num_rows else batch.take(pa.array(kept))


_Place: TypeAlias = tuple[int, int]
"""Which input, and which row of it."""


def _superseded(lake: Lake, part: Part, inputs: Sequence[str]) -> set[_Place]:
    """Where a state stands that another one in this part replaces; reads no contents."""
    superseded: set[_Place] = set()
    newest: dict[tuple[str, str], tuple[tuple[datetime, datetime], _Place]] = {}
    for place, item in _items(lake, part, inputs, columns=[*_KEY, *_AGE]):
        key, found = (item.source_type, item.source_id), (age_of(item), place)
        known = newest.setdefault(key, found)
        if known != found:
            newest[key] = max(known, found)
            superseded.add(min(known, found)[1])
    return superseded


def _items(
    lake: Lake, part: Part, inputs: Sequence[str], *, columns: Sequence[str] | None = None
) -> Iterator[tuple[_Place, SourceItem]]:
    """All items of a part, input after input; with `columns`, only these of their fields are set."""
    for number, stage in enumerate(inputs):
        items = (item for batch in lake.read(stage, part, columns=columns) for item in items_of(batch))
        yield from (((number, row), item) for row, item in enumerate(items))
