"""All stages after the sources over a range of days, in this process: for whoever has changed what the sources hold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta

from rag_pipeline.chunking.stage import chunk_documents
from rag_pipeline.documents.stage import clean_items
from rag_pipeline.index.bookkeeping import record_failures
from rag_pipeline.index.database import Connection
from rag_pipeline.index.promotion import writing
from rag_pipeline.index.stage import index_documents
from rag_pipeline.index.writer import WriteReport
from rag_pipeline.lake.store import Lake
from rag_pipeline.model import DayRange, Failure
from rag_pipeline.progress import Progress
from rag_pipeline.refresh.accounts import Account
from rag_pipeline.refresh.github import GitHubProgress
from rag_pipeline.refresh.parts import RAW_STAGES, chunking_rules, pipeline_fingerprint
from rag_pipeline.refresh.spaces import Feed, Models, embed_space, feed_candidates, spaces_to_feed
from rag_pipeline.settings import Repository, Settings
from rag_pipeline.sources.github.stage import GitHubReport, RepositoryReport, write_days


@dataclass(slots=True, kw_only=True)
class IndexedReport:
    """What reached the index."""

    days: list[date] = field(default_factory=list)
    embedded: int = 0
    written: WriteReport = field(default_factory=WriteReport)
    problems: list[str] = field(default_factory=list)
    """What kept embedding spaces that are being built from being fed."""


def index_threads(
    settings: Settings, lake: Lake, repository: Repository, *, connection: Connection, models: Models,
    account: Account, now: datetime, progress: Progress,
) -> IndexedReport:  # fmt: skip
    """Bring a repository's pull requests and issues, as its mirror holds them, through all stages into the index."""
    report = IndexedReport()
    source = GitHubProgress(settings, repository, now=now)
    with writing(connection):
        feed = spaces_to_feed(connection, models)
        pending = [day for day in source.pending(connection, feed.space) if settings.first_day <= day]
        for days in _runs_of(pending):
            found, parts = RepositoryReport(repository=repository), GitHubReport()
            write_days(settings, lake, repository, days, report=parts, found=found, now=now)
            _run_stages(settings, lake, days, report, connection, feed, models, account, now, progress)
            report.days += [day for day in pending if day in days]
        source.note(connection, feed.space, lake, DayRange(first=settings.first_day, last=now.date()))
    report.problems = feed.problems
    return report


def _run_stages(
    settings: Settings, lake: Lake, days: DayRange, report: IndexedReport, connection: Connection, feed: Feed,
    models: Models, account: Account, now: datetime, progress: Progress,
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
    embedded = embed_space(
        lake, days, feed.space, models=models, connection=connection, account=account, now=now, progress=progress
    )
    feed_candidates(
        lake, days, feed, models=models, connection=connection, account=account, now=now, progress=progress
    )  # fmt: skip
    indexed = index_documents(
        lake, days, connection=connection, space=feed.space, fingerprint=pipeline_fingerprint(settings), now=now,
        progress=progress, pg_search=settings.retrieval.lexical == "pg_search",
        kept_from=settings.retention.kept_from(now),
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
