"""The documents stage: source items of these days to cleaned documents, tombstones passed through."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, TypeAlias

import pyarrow as pa

from rag_pipeline.documents.clean import CLEANING_VERSION, DEFAULT_REDACTION, DEFAULT_THREADS, clean
from rag_pipeline.documents.redaction import REDACTION_VERSION, engine_version, redact
from rag_pipeline.documents.redaction.document import redactions_of
from rag_pipeline.errors import ItemError
from rag_pipeline.isolation import SMALL_CHARS, Isolated
from rag_pipeline.lake.derive import DeriveReport, derive
from rag_pipeline.lake.schemas import DOCUMENTS, items_of, to_batches
from rag_pipeline.lake.store import Lake, Part
from rag_pipeline.model import DayRange, Document, Failure, SourceItem, age_of, failure_of
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


def fingerprint(threads: Threads = DEFAULT_THREADS, redaction: Redaction = DEFAULT_REDACTION) -> str:
    """Changes when the same items could give other documents; other defaults of the settings are another version.

    The detector of secrets is part of it: a better one cleans again.
    """
    made = f"{STAGE}/{CLEANING_VERSION}/redaction-{REDACTION_VERSION}-{engine_version()}"
    if threads != DEFAULT_THREADS:
        made += f"/{settings_fingerprint(threads)}"
    return made if redaction == DEFAULT_REDACTION else f"{made}/redaction-{settings_fingerprint(redaction)}"


def clean_items(
    lake: Lake, days: DayRange, *, inputs: Sequence[str], threads: Threads, redaction: Redaction = DEFAULT_REDACTION,
    limits: Documents = DEFAULT_LIMITS, progress: Progress,
) -> DocumentsReport:  # fmt: skip
    """Bring the `documents` parts of these days up to date with the raw stages named in `inputs`.

    Of several states of one item, as a poll and a webhook bring them, the newest counts, and of equally new ones that
    of the last input.
    """
    report = DocumentsReport()
    with Isolated(timeout_s=limits.timeout_s, memory_bytes=limits.memory_bytes) as isolated:

        def cleaned(item: SourceItem) -> Document:
            if len(item.content) > limits.max_bytes:
                raise ItemError(
                    f"its {len(item.content):,} bytes are more than documents.max_bytes ({limits.max_bytes:,}): "
                    "leave it out, or raise that"
                )
            if len(item.content) <= SMALL_CHARS:
                return clean(item, threads=threads, redaction=redaction)
            return isolated.call(clean, item, threads=threads, redaction=redaction)

        def transform(part: Part, failures: list[Failure], advance: Advance) -> Iterator[pa.RecordBatch]:
            documents = _documents(lake, part, failures, inputs=inputs, cleaned=cleaned, advance=advance)
            counted = _counted(documents, report.redactions)
            return to_batches(counted, DOCUMENTS, size=lambda document: len(document.text))

        return derive(
            lake, days, stage=STAGE, inputs=inputs, schema=DOCUMENTS, transform=transform, progress=progress,
            stage_fingerprint=fingerprint(threads, redaction), report=report,
        )  # fmt: skip


def _counted(documents: Iterator[Document], redactions: Counter[str]) -> Iterator[Document]:
    for document in documents:
        redactions.update(redactions_of(document))
        yield document


def _documents(
    lake: Lake, part: Part, failures: list[Failure], *, inputs: Sequence[str],
    cleaned: Callable[[SourceItem], Document], advance: Advance,
) -> Iterator[Document]:  # fmt: skip
    superseded = _superseded(lake, part, inputs)
    for place, item in _items(lake, part, inputs):
        advance()
        if place in superseded:
            continue
        try:
            yield cleaned(item)
        except Exception as error:
            # Whatever one file does to a parser must not stop the others.
            reason = redact(f"{type(error).__name__}: {error}").text
            failures.append(failure_of(item, stage=STAGE, reason=reason))


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
