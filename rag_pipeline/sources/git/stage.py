"""The raw stage for git: repositories to `raw_docs` and `raw_code`, one Parquet file per repository and day."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import date, datetime

from rag_pipeline.errors import RagPipelineError
from rag_pipeline.lake.derive import combine
from rag_pipeline.lake.schemas import ITEMS, dump_metadata, to_batches
from rag_pipeline.lake.store import Lake, Part, PartWriter
from rag_pipeline.model import DayRange, Failure, SourceItem
from rag_pipeline.progress import Progress
from rag_pipeline.settings import GitLimits, Repository, Settings, fingerprint
from rag_pipeline.sources.git.changes import Change
from rag_pipeline.sources.git.file_kinds import FILE_KINDS_VERSION, kind_of
from rag_pipeline.sources.git.mirror import mirror_of
from rag_pipeline.sources.git.reader import GIT_SOURCE_VERSION, GitReader, GitReport
from rag_pipeline.sources.git.timeline import Position, Window, read_timeline

STAGES = {"docs": "raw_docs", "code": "raw_code"}


@dataclass(slots=True, kw_only=True)
class RepositoryReport:
    """What one repository gave."""

    repository: Repository
    git: GitReport = field(default_factory=GitReport)
    position: Position | None = None
    """Where the window ended; None when the repository is empty or has nothing up to its end."""
    commits: int = 0
    empty: bool = False


@dataclass(slots=True, kw_only=True)
class RawReport:
    """What the run's days hold, over all repositories."""

    repositories: list[RepositoryReport] = field(default_factory=list)
    fresh_parts: int = 0
    written_parts: int = 0
    removed_parts: int = 0
    bytes: int = 0
    rows_by_day: dict[str, Counter[str]] = field(default_factory=lambda: {kind: Counter() for kind in STAGES})
    failures: list[Failure] = field(default_factory=list)
    """Repositories that could not be read."""
    preview: dict[str, list[SourceItem]] = field(default_factory=lambda: {kind: [] for kind in STAGES})

    @property
    def rows(self) -> dict[str, int]:
        """Rows written, by kind."""
        return {kind: by_day.total() for kind, by_day in self.rows_by_day.items()}


def source_fingerprint(repository: Repository, limits: GitLimits) -> str:
    """Changes when the same commits could give other items."""
    chosen = {"include": repository.include, "exclude": repository.exclude, "web_url": repository.web_url}
    return combine(GIT_SOURCE_VERSION, FILE_KINDS_VERSION, fingerprint(chosen), fingerprint(limits), repository.source)


def window_inputs(settings: Settings, repository: Repository, window: Window) -> str:
    """Changes when reading this window could give other items; each raw part notes what it was read from."""
    steps = (f"{step.commit} {step.old} {step.at.timestamp():.0f}" for step in window.steps)
    return combine(source_fingerprint(repository, settings.git), str(window.base), str(window.first_day), *steps)


def is_first_fetch(settings: Settings) -> bool:
    """Whether a configured repository has no mirror yet, so that fetching it takes its time."""
    return any(not mirror_of(repository, home=settings.home).exists() for repository in settings.repositories)


def read_git(settings: Settings, lake: Lake, days: DayRange, *, now: datetime, progress: Progress) -> RawReport:
    """Fetch every configured repository and bring its raw parts of these days up to date.

    A repository that cannot be read does not stop the others; it is in the report's failures.

    Raises:
        RagPipelineError: no repository could be read; the error is that of the first.
    """
    report = RawReport()
    errors: list[RagPipelineError] = []
    total = len(settings.repositories)
    for done, repository in enumerate(settings.repositories, start=1):
        found = RepositoryReport(repository=repository)
        report.repositories.append(found)
        try:
            _read_repository(settings, lake, days, found=found, report=report, now=now)
        except RagPipelineError as error:
            errors.append(error)
            report.failures.append(_unreadable(repository, error, day=days.last, now=now))
        progress("raw_docs, raw_code", done=done, total=total, unit="repositories")
    if errors and len(errors) == total:
        raise errors[0]
    return report


def _unreadable(repository: Repository, error: RagPipelineError, *, day: date, now: datetime) -> Failure:
    return Failure(
        tenant=repository.tenant, source_type="repository", source_id=repository.name, stage="raw",
        repository=repository.name, day=day, source_updated_at=now, reason=str(error)[:500],
    )  # fmt: skip


def _read_repository(
    settings: Settings,
    lake: Lake,
    days: DayRange,
    *,
    found: RepositoryReport,
    report: RawReport,
    now: datetime,
) -> None:
    repository = found.repository
    mirror = mirror_of(repository, home=settings.home)
    found.empty = mirror.fetch(now=now) is None
    if found.empty:
        return
    timeline = read_timeline(mirror, now=now)
    first_day = settings.first_day_of(repository)
    window = timeline.window(first=days.first, last=days.last, first_day=first_day)
    seen: set[date] = set()
    if window is not None:
        found.commits = len(window.steps)
        found.position = window.reached
        inputs = window_inputs(settings, repository, window)
        with GitReader(mirror, window, repository=repository, limits=settings.git, report=found.git) as reader:
            for day, changes in _by_day(reader.changes(), window).items():
                seen.add(day)
                part = Part(tenant=repository.tenant, repository=repository.name, day=day)
                _write_day(lake, part, changes, reader, report=report, inputs=inputs, now=now)
    _remove_stale(lake, repository, days, seen, report)


def _by_day(changes: Iterable[Change], window: Window) -> dict[date, list[Change]]:
    days: dict[date, list[Change]] = {}
    for change in changes:
        days.setdefault(window.day_of(change.at), []).append(change)
    return days


def _write_day(
    lake: Lake, part: Part, changes: list[Change], reader: GitReader, *, report: RawReport, inputs: str, now: datetime
) -> None:
    kinds = {kind.source_type for kind in (kind_of(change.path) for change in changes) if kind}
    tags = {kind: lake.tags(STAGES[kind], part) for kind in STAGES}
    if all((tags[kind] or {}).get("inputs") == inputs for kind in kinds) and not any(
        tags[k] for k in set(STAGES) - kinds
    ):
        report.fresh_parts += len(kinds)
        return
    items = reader.items(changes, day=part.day, observed_at=now)
    _write_items(lake, part, items, report=report, inputs=inputs)


def _write_items(lake: Lake, part: Part, items: Iterator[SourceItem], *, report: RawReport, inputs: str) -> None:
    """Split a day's items over the stages' files, streamed."""
    digests = {kind: hashlib.blake2b(digest_size=16) for kind in STAGES}
    with ExitStack() as stack:
        writers = {k: stack.enter_context(lake.writer(stage, part, schema=ITEMS)) for k, stage in STAGES.items()}
        pending: dict[str, list[SourceItem]] = {kind: [] for kind in STAGES}
        held = 0
        for item in items:
            kind = item.source_type
            pending[kind].append(item)
            held += len(item.content)
            digests[kind].update(_digest(item))
            if len(report.preview[kind]) < 10:
                report.preview[kind].append(item)
            if held >= 8 << 20 or len(pending[kind]) >= 512:
                _flush(writers, pending)
                held = 0
        _flush(writers, pending)
        for kind, writer in writers.items():
            writer.fingerprint = digests[kind].hexdigest()
            writer.tags = {"inputs": inputs}
    for kind, writer in writers.items():
        report.bytes += writer.bytes
        report.written_parts += writer.rows > 0
        if writer.rows:
            report.rows_by_day[kind][part.day.isoformat()] += writer.rows


def _flush(writers: Mapping[str, PartWriter], pending: dict[str, list[SourceItem]]) -> None:
    for kind, items in pending.items():
        for batch in to_batches(items, ITEMS):
            writers[kind].add(batch)
        items.clear()


def _digest(item: SourceItem) -> bytes:
    """What of an item the later stages can see; when it was observed is not part of it."""
    shown = (
        item.source_id,
        item.source_updated_at.isoformat(),
        str(item.deleted),
        item.url or "",
        dump_metadata(item.metadata),
    )
    return "\x1f".join(shown).encode() + hashlib.blake2b(item.content, digest_size=16).digest()


def _remove_stale(lake: Lake, repository: Repository, days: DayRange, seen: set[date], report: RawReport) -> None:
    """Parts of days on which, seen over this window, nothing changed last."""
    for stage in STAGES.values():
        for day in lake.days(stage, tenant=repository.tenant, repository=repository.name):
            if day in days and day not in seen:
                part = Part(tenant=repository.tenant, repository=repository.name, day=day)
                report.removed_parts += lake.remove(stage, part)
