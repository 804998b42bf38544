"""All stages after the sources over a range of days, in this process: for whoever has changed what the sources hold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta

from rag_pipeline.chunking.stage import chunk_documents
from rag_pipeline.documents.stage import clean_items
from rag_pipeline.embedding import Embedder
from rag_pipeline.embedding.stage import embed_chunks
from rag_pipeline.index.bookkeeping import record_failures, record_part, stored_parts
from rag_pipeline.index.database import Connection
from rag_pipeline.index.spaces import SpaceVectors
from rag_pipeline.index.stage import index_documents
from rag_pipeline.index.writer import WriteReport
from rag_pipeline.lake.store import Lake, Part
from rag_pipeline.model import DayRange, EmbeddingSpace, Failure
from rag_pipeline.progress import Progress
from rag_pipeline.refresh.github import GitHubProgress
from rag_pipeline.refresh.parts import RAW_STAGES, chunking_rules, pipeline_fingerprint
from rag_pipeline.settings import Repository, Settings
from rag_pipeline.sources.github.stage import GitHubReport, RepositoryReport, write_days


class StoredVectors:
    """Which parts' vectors the database holds; reads the list once."""

    def __init__(self, connection: Connection, space: EmbeddingSpace, days: DayRange, *, now: datetime) -> None:
        self._connection = connection
        self._space = space
        self._now = now
        self._known = stored_parts(connection, space, days, stage="embeddings")

    def fingerprint(self, part: Part) -> str | None:
        """Of what is stored of a part."""
        return self._known.get(part)

    def record(self, part: Part, fingerprint: str) -> None:
        """Note that all of a part is stored."""
        record_part(self._connection, self._space, part, stage="embeddings", fingerprint=fingerprint, now=self._now)


@dataclass(slots=True, kw_only=True)
class IndexedReport:
    """What reached the index."""

    days: list[date] = field(default_factory=list)
    embedded: int = 0
    written: WriteReport = field(default_factory=WriteReport)


def index_threads(
    settings: Settings, lake: Lake, repository: Repository, *, connection: Connection, space: EmbeddingSpace,
    embedder: Embedder, now: datetime, progress: Progress,
) -> IndexedReport:  # fmt: skip
    """Bring a repository's pull requests and issues, as its mirror holds them, through all stages into the index."""
    report = IndexedReport()
    source = GitHubProgress(settings, repository, now=now)
    pending = [day for day in source.pending(connection, space) if settings.first_day <= day]
    for days in _runs_of(pending):
        found, parts = RepositoryReport(repository=repository), GitHubReport()
        write_days(settings, lake, repository, days, report=parts, found=found, now=now)
        _run_stages(settings, lake, days, report, connection, space, embedder, now, progress)
        report.days += [day for day in pending if day in days]
    source.note(connection, space, lake, DayRange(first=settings.first_day, last=now.date()))
    return report


def _run_stages(
    settings: Settings, lake: Lake, days: DayRange, report: IndexedReport, connection: Connection,
    space: EmbeddingSpace, embedder: Embedder, now: datetime, progress: Progress,
) -> None:  # fmt: skip
    def settle(failures: list[Failure], stage: str) -> None:
        record_failures(connection, failures, stage=stage, days=days, now=now)

    cleaned = clean_items(
        lake,
        days,
        inputs=RAW_STAGES,
        threads=settings.threads,
        redaction=settings.redaction,
        limits=settings.documents,
        progress=progress,
    )
    settle(cleaned.failures, "documents")
    chunked = chunk_documents(
        lake, days, rules=chunking_rules(settings), limits=settings.documents, progress=progress,
    )  # fmt: skip
    settle(chunked.failures, "chunks")
    embedded = embed_chunks(
        lake, days, space=space, embedder=embedder,
        vectors_of=lambda tenant: SpaceVectors(connection, space, tenant=tenant),
        stored=StoredVectors(connection, space, days, now=now), progress=progress,
    )  # fmt: skip
    indexed = index_documents(
        lake, days, connection=connection, space=space, fingerprint=pipeline_fingerprint(settings), now=now,
        progress=progress,
    )  # fmt: skip
    settle(indexed.failures, "knowledge_index")
    report.embedded += embedded.embedded
    report.written.add(indexed.written)


def _runs_of(days: list[date]) -> Iterator[DayRange]:
    """Days that follow each other, as ranges."""
    first = last = None
    for day in days:
        if last is not None and first is not None and day - last > timedelta(days=1):
            yield DayRange(first=first, last=last)
            first = None
        first, last = first or day, day
    if first is not None and last is not None:
        yield DayRange(first=first, last=last)
