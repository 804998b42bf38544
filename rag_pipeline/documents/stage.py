"""The documents stage: source items of these days to cleaned documents, tombstones passed through."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from rag_pipeline.documents.clean import CLEANING_VERSION, clean
from rag_pipeline.lake.derive import DeriveReport, derive
from rag_pipeline.lake.schemas import DOCUMENTS, items_of, to_batches
from rag_pipeline.lake.store import Lake, Part
from rag_pipeline.model import DayRange, Document, Failure, failure_of
from rag_pipeline.progress import Progress

STAGE = "documents"


def fingerprint() -> str:
    """Changes when the same items could give other documents."""
    return f"documents/{CLEANING_VERSION}"


def clean_items(lake: Lake, days: DayRange, *, inputs: Sequence[str], progress: Progress) -> DeriveReport:
    """Bring the `documents` parts of these days up to date with the raw stages named in `inputs`."""

    def transform(part: Part, failures: list[Failure]) -> Iterator[pa.RecordBatch]:
        documents = _documents(lake, part, inputs, failures)
        return to_batches(documents, DOCUMENTS, size=lambda document: len(document.text))

    return derive(
        lake, days, stage=STAGE, inputs=inputs, schema=DOCUMENTS, stage_fingerprint=fingerprint(),
        transform=transform, progress=progress,
    )  # fmt: skip


def _documents(lake: Lake, part: Part, inputs: Sequence[str], failures: list[Failure]) -> Iterator[Document]:
    for stage in inputs:
        for batch in lake.read(stage, part):
            for item in items_of(batch):
                try:
                    yield clean(item)
                except Exception as error:
                    # Whatever one file does to a parser must not stop the others.
                    failures.append(failure_of(item, stage=STAGE, reason=f"{type(error).__name__}: {error}"))
