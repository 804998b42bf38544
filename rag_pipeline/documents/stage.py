"""The documents stage: source items of these days to cleaned documents, tombstones passed through."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TypeAlias

import pyarrow as pa

from rag_pipeline.documents.clean import CLEANING_VERSION, DEFAULT_THREADS, clean
from rag_pipeline.lake.derive import DeriveReport, derive
from rag_pipeline.lake.schemas import DOCUMENTS, items_of, to_batches
from rag_pipeline.lake.store import Lake, Part
from rag_pipeline.model import DayRange, Document, Failure, SourceItem, age_of, failure_of
from rag_pipeline.progress import Progress
from rag_pipeline.settings import Threads
from rag_pipeline.settings import fingerprint as settings_fingerprint

STAGE = "documents"

_KEY = ("source_type", "source_id")
_AGE = ("source_updated_at", "observed_at", "as_of")


def fingerprint(threads: Threads = DEFAULT_THREADS) -> str:
    """Changes when the same items could give other documents; other defaults of `Threads` are another version."""
    made = f"{STAGE}/{CLEANING_VERSION}"
    return made if threads == DEFAULT_THREADS else f"{made}/{settings_fingerprint(threads)}"


def clean_items(
    lake: Lake, days: DayRange, *, inputs: Sequence[str], threads: Threads, progress: Progress
) -> DeriveReport:
    """Bring the `documents` parts of these days up to date with the raw stages named in `inputs`.

    Of several states of one item, as a poll and a webhook bring them, the newest counts, and of equally new ones that
    of the last input.
    """

    def transform(part: Part, failures: list[Failure]) -> Iterator[pa.RecordBatch]:
        documents = _documents(lake, part, failures, inputs=inputs, threads=threads)
        return to_batches(documents, DOCUMENTS, size=lambda document: len(document.text))

    return derive(
        lake, days, stage=STAGE, inputs=inputs, schema=DOCUMENTS, stage_fingerprint=fingerprint(threads),
        transform=transform, progress=progress,
    )  # fmt: skip


def _documents(
    lake: Lake, part: Part, failures: list[Failure], *, inputs: Sequence[str], threads: Threads
) -> Iterator[Document]:
    superseded = _superseded(lake, part, inputs)
    for place, item in _items(lake, part, inputs):
        if place in superseded:
            continue
        try:
            yield clean(item, threads=threads)
        except Exception as error:
            # Whatever one file does to a parser must not stop the others.
            failures.append(failure_of(item, stage=STAGE, reason=f"{type(error).__name__}: {error}"))


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
