"""The chunks stage: documents of these days to chunks, in the order of their documents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from rag_pipeline.chunking.chunk import CHUNKING_VERSION, chunk_document
from rag_pipeline.chunking.tokens import TokenCounter
from rag_pipeline.lake.copying import MADE_BY, OBSERVED, RowWork, follow_changes, row_digests
from rag_pipeline.lake.derive import DeriveReport, TooMany, combine, derive
from rag_pipeline.lake.schemas import CHUNKS, MADE_FROM, documents_of
from rag_pipeline.lake.spread import pool_of, spread
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
    """Picklable: most documents are cut in other processes."""
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


@dataclass(frozen=True, slots=True)
class _Cutting:
    """The chunks of one document, for `spread`."""

    rules: Rules
    schema: ClassVar[pa.Schema] = CHUNKS
    sized_by: ClassVar[str] = "text"
    worth: ClassVar[int] = 2_000_000  # are a second's work, where a process takes half of one to start

    def read(self, batch: pa.RecordBatch, /) -> Iterator[Document]:
        return documents_of(batch)

    def check(self, size: int, /) -> None:
        """None is too long: cleaning has seen to that."""

    def made(self, document: Document, /) -> list[Chunk]:
        return self.rules.chunks_of(document)

    def failure(self, document: Document, error: Exception, /) -> Failure:
        return failure_of(document, stage=STAGE, reason=f"{type(error).__name__}: {error}")


def chunk_documents(
    lake: Lake, days: DayRange, *, rules: Rules, limits: Documents, progress: Progress, processes: int | None = None,
    too_many: TooMany = lambda failures, items: False,
) -> DeriveReport:  # fmt: skip
    """Bring the `chunks` parts of these days up to date with `documents`.

    Large parts are cut by several processes, `processes` at most (None: as many as there are cores to use). A source
    with `too_many` failures keeps its former parts, see `derive`.
    """
    report = DeriveReport()
    with pool_of(processes, limits) as pool:

        def transform(part: Part, failures: list[Failure], advance: Advance) -> Iterator[pa.RecordBatch]:
            def make(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
                return spread(batches, _Cutting(rules), pool=pool, failures=failures, advance=advance)

            work = RowWork(
                read=lambda: lake.read("documents", part),
                digests=lambda batch: row_digests(batch, without=[OBSERVED, MADE_FROM.name]),
                documents=lambda batch: batch.column("document_id").to_pylist(),
                make=make,
                schema=CHUNKS,
                made_by=rules.fingerprint,
            )
            return follow_changes(lake, STAGE, part, work, advance=advance, copied=report.count_copied)

        return derive(
            lake, days, stage=STAGE, inputs=["documents"], schema=CHUNKS.append(MADE_FROM),
            stage_fingerprint=rules.fingerprint, transform=transform, progress=progress, report=report,
            too_many=too_many, tags_of=lambda _: {MADE_BY: rules.fingerprint},
        )  # fmt: skip
