"""The chunks stage: documents of these days to chunks, in the order of their documents."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from rag_pipeline.chunking.chunk import CHUNKING_VERSION, chunk_document
from rag_pipeline.chunking.tokens import TokenCounter
from rag_pipeline.lake.derive import DeriveReport, combine, derive
from rag_pipeline.lake.schemas import CHUNKS, documents_of, to_batches
from rag_pipeline.lake.store import Lake, Part
from rag_pipeline.model import Chunk, DayRange, Failure, failure_of
from rag_pipeline.progress import Progress
from rag_pipeline.settings import Chunking
from rag_pipeline.settings import fingerprint as settings_fingerprint

STAGE = "chunks"


def fingerprint(settings: Chunking, *, counting: str) -> str:
    """Changes when the same documents could give other chunks; `counting` names the tokenizer."""
    return combine("chunks", CHUNKING_VERSION, settings_fingerprint(settings), counting)


def chunk_documents(
    lake: Lake, days: DayRange, *, settings: Chunking, count_tokens: TokenCounter, counting: str, progress: Progress
) -> DeriveReport:
    """Bring the `chunks` parts of these days up to date with `documents`."""

    def transform(part: Part, failures: list[Failure]) -> Iterator[pa.RecordBatch]:
        chunks = _chunks(lake, part, failures, settings=settings, count_tokens=count_tokens)
        return to_batches(chunks, CHUNKS, size=lambda chunk: len(chunk.text))

    return derive(
        lake, days, stage=STAGE, inputs=["documents"], schema=CHUNKS,
        stage_fingerprint=fingerprint(settings, counting=counting), transform=transform, progress=progress,
    )  # fmt: skip


def _chunks(
    lake: Lake, part: Part, failures: list[Failure], *, settings: Chunking, count_tokens: TokenCounter
) -> Iterator[Chunk]:
    for batch in lake.read("documents", part):
        for document in documents_of(batch):
            if document.deleted:
                continue
            try:
                chunks = chunk_document(document, settings=settings, count_tokens=count_tokens)
            except Exception as error:
                # Whatever one document does to a splitter must not stop the others.
                failures.append(failure_of(document, stage=STAGE, reason=f"{type(error).__name__}: {error}"))
            else:
                yield from chunks
