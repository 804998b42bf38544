"""Which days a refresh has to run, what it has done, and when the first embedding space answers questions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Protocol

from rag_pipeline.errors import StorageUnavailable
from rag_pipeline.forgotten import write_marks
from rag_pipeline.index.bookkeeping import SourceKey, failing_days
from rag_pipeline.index.database import Connection
from rag_pipeline.index.forgetting import marks
from rag_pipeline.index.freshness import covered, freshness, note_complete, note_position
from rag_pipeline.index.spaces import activate, active_space
from rag_pipeline.lake.store import Lake
from rag_pipeline.model import DayRange, EmbeddingSpace, Failure
from rag_pipeline.progress import Together, silent
from rag_pipeline.refresh.day_ranges import merge_ranges, single_days
from rag_pipeline.refresh.drops import drops_progress, waiting_drops
from rag_pipeline.refresh.git import GitProgress
from rag_pipeline.refresh.github import GitHubProgress
from rag_pipeline.refresh.kinds import KindProgress, kinds_progress
from rag_pipeline.refresh.readings import Readings, read_at_once
from rag_pipeline.remote.at_once import Outcome
from rag_pipeline.settings import Settings
from rag_pipeline.sources.git.stage import RawReport
from rag_pipeline.sources.github.stage import Access
from rag_pipeline.sources.kinds import Outside
from rag_pipeline.sources.places import git_places, github_places


class SourceProgress(Protocol):
    """How far one source is indexed."""

    key: SourceKey

    def pending(self, connection: Connection, space: EmbeddingSpace | None) -> list[date]:
        """The days that have to be run, by what is known of the source here."""

    def note(self, connection: Connection, space: EmbeddingSpace, lake: Lake, days: DayRange) -> bool:
        """After a run over these days: move the source's position as far as it is wholly in the index."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The days a refresh has to run: one range up to today, and before it what is still due of older days."""

    ranges: Sequence[DayRange]
    reasons: Sequence[str]
    """Why, a line each, for people."""
    github_unread: Sequence[Failure] = ()
    """The repositories on GitHub that could not be read; the runs, which need not ask again, put them on record."""
    git_read: Set[SourceKey] = frozenset()
    """The git repositories that were fetched: the first run need not do that again."""


def plan(
    settings: Settings, *, connection: Connection, space: EmbeddingSpace | None, access: Access | None,
    lake: Lake, now: datetime,
) -> Plan:  # fmt: skip
    """Read the sources and find the days that the index has not seen.

    Today is always among them: it costs little, and its partition shall not look missing. Nor shall any other of a new
    installation: its first refresh is over all days. Without `access`, GitHub is
    not asked: what its mirrors hold counts. A source that cannot be read stops no other: the runs put it on record.
    """
    today = now.date()
    write_marks(settings.home, marks(connection))
    due = {today}
    reasons = [
        f"{r.name} is forgotten and not read: take it out of rag_pipeline.toml" for r in settings.forgotten_repositories
    ]
    outside = Outside(base=settings.base, environ=access.environ) if access else None
    git = [GitProgress(settings, repository, now=now) for repository in settings.git_repositories]
    watch = access.progress if access else silent
    together = Together(watch)
    github = [
        GitHubProgress(settings, r, access=access and replace(access, progress=together.of(r.name)), now=now)
        for r in settings.github_repositories
    ]
    listed = kinds_progress(settings, now=now, outside=outside)
    read: list[Outcome[GitProgress, str] | Outcome[GitHubProgress, str] | Outcome[KindProgress, str]] = [
        *read_at_once(git, places=git_places(settings), connection=connection, now=now, progress=watch),
        *read_at_once(github, places=github_places(settings), connection=connection, now=now, progress=watch),
        # How much others bear is not known of them: one after the other.
        *read_at_once(listed, places=None, connection=connection, now=now),
    ]
    github_unread: list[Failure] = []
    git_read: set[SourceKey] = set()
    for outcome in read:
        source, remark = outcome.thing, outcome.result or ""
        if outcome.error is not None:
            # The run will put it on record; the others shall not wait for it.
            remark = str(outcome.error)
            if isinstance(source, GitHubProgress):
                github_unread.append(source.unread(remark))
        elif isinstance(source, GitProgress):
            git_read.add(source.key)
        if remark:
            reasons.append(f"{source.repository.name}: {remark}")
    readable: list[SourceProgress] = [*git, *github, *listed]
    sources: list[SourceProgress] = [*readable, *drops_progress(settings, lake, now=now)]
    for progress in sources:
        if days := pending_of(progress, connection, space):
            due.update(days)
            reasons.append(f"{progress.key.repository} ({progress.key.source}): {_spoken(days)}")
    retries = [day for day in failing_days(connection) if settings.first_day <= day <= today]
    reasons += [f"quarantined items of {day}" for day in retries if day not in due]
    try:
        if waiting := waiting_drops(settings, now=now):
            reasons.append(f"inbox: {waiting:,} drops wait")
    except StorageUnavailable as error:
        reasons.append(f"inbox: {error}")
    first = settings.first_day
    first_of_git = [day for s in sources if s.key.source == "git" for day in s.pending(connection, space)]
    run_on_from = min(first_of_git, default=today)
    if active_space(connection) is None:
        # The very first refresh: no partition of a new installation shall look missing.
        run_on_from = first
    ranges = _ranges({*due, *retries}, run_on_from=run_on_from, today=today)
    ranges = [DayRange(first=max(r.first, first), last=r.last) for r in ranges]
    return Plan(ranges=ranges, reasons=reasons, github_unread=github_unread, git_read=git_read)


def note_progress(
    settings: Settings, lake: Lake, days: DayRange, *, connection: Connection, space: EmbeddingSpace, now: datetime,
    git: RawReport | None, readings: Readings,
) -> list[str]:  # fmt: skip
    """After the last stage: move the position of each source that is wholly in the index; their repositories.

    `git` is what this run has read of the git repositories; None: it has read none. A source that was read on a day of
    this run, and has nothing left that the index lacks, is complete up to that reading; one that was read by another
    run which covered its day, up to that one's.
    """
    sources = _sources(settings, lake, now=now, git=git)
    # Before it is looked up what is left of them: what is read from here on is not part of it.
    seen = {row.key: row.position_seen for row in freshness(connection)}
    moved = [source.key.repository for source in sources if _is_moved(source, connection, space, lake, days)]
    # Looked up after the positions were moved: of runs that end at once, one sees what the other did.
    by_others = covered(connection)
    for source in sources:
        read_at = readings.of(source.key)
        until = read_at if read_at is not None and read_at.date() in days else by_others.get(source.key)
        if pending_of(source, connection, space) == []:
            if position := seen.get(source.key):
                note_position(connection, source.key, position=position)
            if until is not None:
                note_complete(connection, source.key, until=until, now=now)
    return moved


def activate_when_complete(
    settings: Settings, lake: Lake, *, connection: Connection, space: EmbeddingSpace, now: datetime
) -> None:
    """Let queries use the space that documents wait for: the very first one at once.

    One that takes the place of an active space which this code can no longer ask is used once nothing is missing from
    it. All others wait for somebody to promote them.
    """
    if space.status == "active":
        return
    sources = _sources(settings, lake, now=now)
    if active_space(connection) is None or all(pending_of(s, connection, space) == [] for s in sources):
        activate(connection, space)


def pending_of(source: SourceProgress, connection: Connection, space: EmbeddingSpace | None) -> list[date] | None:
    """The days that have to be run; None: what is kept of the source cannot be read.

    Whoever reads the source is told why; the others shall not wait for it.
    """
    try:
        return source.pending(connection, space)
    except StorageUnavailable:
        return None


def _is_moved(
    source: SourceProgress, connection: Connection, space: EmbeddingSpace, lake: Lake, days: DayRange
) -> bool:  # fmt: skip
    try:
        return source.note(connection, space, lake, days)
    except StorageUnavailable:
        return False


def _sources(
    settings: Settings, lake: Lake, *, now: datetime, git: RawReport | None = None
) -> list[SourceProgress]:  # fmt: skip
    read = {(r.repository.tenant, r.repository.name): r.position for r in git.repositories} if git else {}
    return [
        *(GitProgress(settings, r, now=now, read_to=read.get((r.tenant, r.name))) for r in settings.git_repositories),
        *(GitHubProgress(settings, r, now=now) for r in settings.github_repositories),
        *kinds_progress(settings, now=now),
        *drops_progress(settings, lake, now=now),
    ]


def _ranges(due: Iterable[date], *, run_on_from: date, today: date) -> list[DayRange]:
    """Days as few ranges, the last of them up to today; from `run_on_from` on all days are in one."""
    return merge_ranges([DayRange(first=min(run_on_from, today), last=today), *single_days(due)])


def _spoken(days: Sequence[date]) -> str:
    return f"new since {days[0]}" if len(days) == 1 else f"new on {len(days):,} days, from {min(days)} to {max(days)}"
