"""The raw stage for git: repositories to `raw_docs` and `raw_code`, one Parquet file per repository and day."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from itertools import chain

from rag_pipeline.errors import PermanentError, RagPipelineError
from rag_pipeline.forgotten import Forgotten
from rag_pipeline.lake.derive import combine
from rag_pipeline.lake.schemas import items_of
from rag_pipeline.lake.store import Lake, Part
from rag_pipeline.model import DayRange, Failure, SourceItem
from rag_pipeline.progress import Advance, Progress, Together
from rag_pipeline.remote.at_once import at_once, failures_of
from rag_pipeline.settings import FileType, GitLimits, Repository, Settings, fingerprint
from rag_pipeline.sources.git.changes import Change
from rag_pipeline.sources.git.file_kinds import FILE_KINDS_VERSION, kind_of
from rag_pipeline.sources.git.mirror import mirror_of
from rag_pipeline.sources.git.reader import GIT_SOURCE_VERSION, GitReader, GitReport
from rag_pipeline.sources.git.timeline import Position, Window, read_timeline
from rag_pipeline.sources.places import git_places, stoppable
from rag_pipeline.sources.raw_parts import PartsReport, is_current, remove_stale, write_part

STAGES = {"docs": "raw_docs", "code": "raw_code"}
_FORMER_COLUMNS = (
    "tenant", "source_type", "source_id", "repository", "day", "source_updated_at", "observed_at", "path", "language",
    "url", "anchor",
)  # fmt: skip
_SPOKEN = ", ".join(STAGES.values())


@dataclass(slots=True, kw_only=True)
class RepositoryReport:
    """What one repository gave."""

    repository: Repository
    git: GitReport = field(default_factory=GitReport)
    position: Position | None = None
    """Where the window ended; None: the repository is empty, has nothing up to its end, or was not read to it."""
    commits: int = 0
    empty: bool = False


@dataclass(slots=True, kw_only=True)
class RawReport(PartsReport):
    """What the run's days hold, over all repositories; unreadable ones are failures."""

    repositories: list[RepositoryReport] = field(default_factory=list)

    def add(self, other: PartsReport) -> None:
        """As `PartsReport.add`; with its repositories."""
        PartsReport.add(self, other)
        if isinstance(other, RawReport):
            self.repositories += other.repositories


def source_fingerprint(repository: Repository, limits: GitLimits) -> str:
    """Changes when the same commits could give other items."""
    chosen = {"include": repository.include, "exclude": repository.exclude, "web_url": repository.web_url}
    return combine(GIT_SOURCE_VERSION, FILE_KINDS_VERSION, fingerprint(chosen), fingerprint(limits), repository.source)


def window_inputs(settings: Settings, repository: Repository, window: Window) -> str:
    """Changes when reading this window could give other items; each raw part notes what it was read from."""
    steps = (f"{step.commit} {step.old} {step.at.timestamp():.0f}" for step in window.steps)
    return combine(source_fingerprint(repository, settings.git), str(window.base), str(window.first_day), *steps)


def is_first_fetch(settings: Settings) -> bool:
    """Whether none of the configured repositories has a mirror yet, so that fetching them takes its time.

    Of one that cannot be cloned there never is one.
    """
    repositories = settings.git_repositories
    return bool(repositories) and not any(mirror_of(one, home=settings.home).exists() for one in repositories)


def read_git(
    settings: Settings, lake: Lake, days: DayRange, *, now: datetime, progress: Progress,
    fetched: Set[tuple[str, str]] = frozenset(),
) -> RawReport:  # fmt: skip
    """Fetch every configured repository and bring its raw parts of these days up to date, `pools.git` at once.

    Those that were `fetched` just now, (tenant, name) each, are read as they are.
    A repository that cannot be read does not stop the others; it is in the report's failures.
    """
    together = Together(progress)
    repositories = settings.git_repositories
    reports = {
        number: RawReport(repositories=[RepositoryReport(repository=repository)])
        for number, repository in enumerate(repositories)
    }

    def read(number: int) -> None:
        (found,) = reports[number].repositories
        name = found.repository.name
        tell = stoppable(together.of(name))
        if not (is_fetched := (found.repository.tenant, name) in fetched):
            tell(f"{_SPOKEN}: fetching {name}", done=0, total=None, unit="repositories")
        _read_repository(
            settings, lake, days, found=found, report=reports[number], now=now, progress=tell, is_fetched=is_fetched
        )

    def told(done: int) -> None:
        together(_SPOKEN, done=done, total=len(repositories), unit="repositories")

    report = RawReport()
    outcomes = at_once(list(reports), read, places=git_places(settings), told=told)
    for outcome in outcomes:
        report.add(reports[outcome.thing])
    for number, error in failures_of(outcomes):
        report.unread.append(error)
        report.failures.append(_unreadable(repositories[number], error, day=days.last, now=now))
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
    progress: Progress,
    is_fetched: bool,
) -> None:
    repository = found.repository
    mirror = mirror_of(repository, home=settings.home)
    found.empty = (mirror.head() if is_fetched else mirror.fetch(now=now)) is None
    if found.empty:
        return
    timeline = read_timeline(mirror, now=now)
    first_day = settings.first_day_of(repository)
    window = timeline.window(first=days.first, last=days.last, first_day=first_day)
    seen: set[date] = set()
    if window is not None:
        found.commits = len(window.steps)
        inputs = window_inputs(settings, repository, window)
        with GitReader(mirror, window, repository=repository, limits=settings.git, report=found.git) as reader:
            walked = Advance(progress, f"{_SPOKEN}: history of {repository.name}", total=None, unit="changed paths")
            by_day = _by_day(reader.changes(), window, walked)
            total = sum(map(len, by_day.values()))
            forgotten = settings.forgotten(now)
            advance = Advance(progress, f"{_SPOKEN}: files of {repository.name}", total=total, unit="files")
            for day, changes in by_day.items():
                seen.add(day)
                part = Part(tenant=repository.tenant, repository=repository.name, day=day)
                _write_day(
                    lake, part, changes, reader, report=report, inputs=inputs, now=now,
                    forgotten=forgotten, advance=advance, types=settings.git.file_types,
                )  # fmt: skip
    seen |= _write_removals(settings, lake, days, seen, found=found, report=report, now=now)
    remove_stale(
        lake, days, tenant=repository.tenant, repository=repository.name,
        kept=dict.fromkeys(STAGES.values(), seen), report=report,
    )  # fmt: skip
    # Not before: a repository that could be read in part must not count as read to there.
    found.position = window.reached if window else None


def _write_removals(
    settings: Settings, lake: Lake, days: DayRange, seen: Set[date], *, found: RepositoryReport, report: RawReport,
    now: datetime,
) -> set[date]:  # fmt: skip
    """Days on which no file changed last any more, but which hold files of what is another type now."""
    tenant, repository = found.repository.tenant, found.repository.name
    held = {day for stage in STAGES.values() for day in lake.days(stage, tenant=tenant, repository=repository)}
    written = set()
    for day in sorted(held - seen):
        part = Part(tenant=tenant, repository=repository, day=day)
        if day in days and (removals := _removals(lake, part, settings.git.file_types, now=now)):
            write_part(lake, part, removals, stages=STAGES, inputs="", report=report)
            written.add(day)
    return written


def _by_day(changes: Iterable[Change], window: Window, advance: Advance) -> dict[date, list[Change]]:
    days: dict[date, list[Change]] = {}
    for change in changes:
        advance()
        days.setdefault(window.day_of(change.at), []).append(change)
    return days


def _write_day(
    lake: Lake, part: Part, changes: list[Change], reader: GitReader, *, report: RawReport, inputs: str, now: datetime,
    forgotten: Forgotten, advance: Advance, types: Mapping[str, FileType],
) -> None:  # fmt: skip
    kinds = {kind.source_type for kind in (kind_of(change.path, types) for change in changes) if kind}
    # Of another kind a part written from the same inputs holds only what became of files that are no longer of it.
    kinds |= {kind for kind, stage in STAGES.items() if (lake.tags(stage, part) or {}).get("inputs") == inputs}
    if is_current(lake, part, stages=STAGES, kinds=kinds, inputs=inputs, report=report):
        advance(len(changes))
        return
    items = reader.items(changes, day=part.day, observed_at=now, advance=advance)
    items = chain(items, _removals(lake, part, types, now=now))
    write_part(lake, part, items, stages=STAGES, inputs=inputs, report=report, forgotten=forgotten)


def _removals(lake: Lake, part: Part, types: Mapping[str, FileType], *, now: datetime) -> list[SourceItem]:
    """A tombstone for each item of the lake's part whose file has another type now: the settings have changed."""
    removals = []
    for source_type, stage in STAGES.items():
        if lake.fingerprint(stage, part) is None:
            continue  # there is none, or something else than a part of ours, which is made again now
        try:
            batches = lake.read(stage, part, columns=_FORMER_COLUMNS)
            items = [item for batch in batches for item in items_of(batch)]
        except PermanentError:
            continue  # it is damaged, and made again now
        for item in items:
            kind = kind_of(item.path or "", types)
            if kind is None or kind.source_type != source_type:
                metadata = {"tombstone_reason": "of another type now"}
                removals.append(replace(item, deleted=True, content=b"", observed_at=now, metadata=metadata))
    return removals
