"""The chunks stage: documents of these days to chunks, in the order of their documents."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from rag_pipeline.chunking.chunk import CHUNKING_VERSION, chunk_document
from rag_pipeline.chunking.tokens import TokenCounter
from rag_pipeline.isolation import SMALL_CHARS, Isolated
from rag_pipeline.lake.derive import DeriveReport, combine, derive
from rag_pipeline.lake.schemas import CHUNKS, documents_of, to_batches
from rag_pipeline.lake.store import Lake, Part
from rag_pipeline.model import Chunk, DayRange, Document, Failure, failure_of
from rag_pipeline.progress import Advance, Progress
from rag_pipeline.settings import Chunking, Context, Documents
from rag_pipeline.settings import fingerprint as settings_fingerprint

STAGE = "chunks"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """All that decides how a document is cut."""

    settings: Chunking
    count_tokens: TokenCounter
    """Picklable: long documents are cut in a process of their own."""
    counting: str
    """Names what `count_tokens` counts."""
    context: Context = "none"

    @property
    def fingerprint(self) -> str:
        """Changes when the same documents could give other chunks."""
        made = ("chunks", CHUNKING_VERSION, settings_fingerprint(self.settings), self.counting)
        return combine(*made) if self.context == "none" else combine(*made, self.context)

    def chunks_of(self, document: Document) -> list[Chunk]:
        """The document's chunks."""
        return chunk_document(document, settings=self.settings, count_tokens=self.count_tokens, context=self.context)


def chunk_documents(lake: Lake, days: DayRange, *, rules: Rules, limits: Documents, progress: Progress) -> DeriveReport:
    """Bring the `chunks` parts of these days up to date with `documents`."""
    with Isolated(timeout_s=limits.timeout_s, memory_bytes=limits.memory_bytes) as isolated:

        def transform(part: Part, failures: list[Failure], advance: Advance) -> Iterator[pa.RecordBatch]:
            chunks = _chunks(lake, part, failures, rules=rules, isolated=isolated, advance=advance)
            return to_batches(chunks, CHUNKS, size=lambda chunk: len(chunk.text))

        return derive(
            lake, days, stage=STAGE, inputs=["documents"], schema=CHUNKS, stage_fingerprint=rules.fingerprint,
            transform=transform, progress=progress, report=DeriveReport(),
        )  # fmt: skip


def _chunks(
    lake: Lake, part: Part, failures: list[Failure], *, rules: Rules, isolated: Isolated, advance: Advance
) -> Iterator[Chunk]:
    for batch in lake.read("documents", part):
        for document in documents_of(batch):
            advance()
            if document.deleted:
                continue
            try:
                if len(document.text) <= SMALL_CHARS:
                    chunks = rules.chunks_of(document)
                else:
                    chunks = isolated.call(Rules.chunks_of, rules, document)
            except Exception as error:
                # Whatever one document does to a splitter must not stop the others.
                failures.append(failure_of(document, stage=STAGE, reason=f"{type(error).__name__}: {error}"))
            else:
                yield from chunks
