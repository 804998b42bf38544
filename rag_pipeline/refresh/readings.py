"""What was read of the sources, and when: noted by whoever reads them, and believed by those who say what is fresh."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol, TypeAlias, TypeVar

from rag_pipeline.documents.redaction import redact
from rag_pipeline.errors import RagPipelineError
from rag_pipeline.index.bookkeeping import SourceKey
from rag_pipeline.index.database import Connection
from rag_pipeline.index.freshness import freshness, note_asked, note_unreadable
from rag_pipeline.model import DayRange, Failure
from rag_pipeline.progress import Progress, silent
from rag_pipeline.refresh.git import GitProgress
from rag_pipeline.refresh.github import GitHubProgress
from rag_pipeline.refresh.kinds import kinds_progress
from rag_pipeline.remote.at_once import Outcome, Places, at_once
from rag_pipeline.settings import Settings


class Readable(Protocol):
    """A source that can be read again."""

    key: SourceKey

    def read(self) -> str:
        """Read what is new; what there is to say of it. Raises RagPipelineError: it cannot be read."""

    def incomplete(self) -> str:
        """Why the last reading did not come to the end; empty: it did."""

    def newest(self) -> datetime | None:
        """When the newest change happened that was read; None: there is none."""

    def seen(self) -> str:
        """Where the source stands, by what was read of it: another one whenever there is something new."""


R = TypeVar("R", bound=Readable)


Asked: TypeAlias = Callable[[SourceKey], bool]
"""Whether a run reads a source itself."""


def by_the_run(_: SourceKey) -> bool:
    """Nobody has read it just before: it does."""
    return True


@dataclass(slots=True, kw_only=True)
class Readings:
    """Since when a run has known each source as it is."""

    at: dict[SourceKey, datetime] = field(default_factory=dict)
    """When the run began to read it, for each source that it read to the end."""
    inbox_at: datetime | None = None
    """When it emptied the inbox; None: something was left, or it did not look."""

    def of(self, key: SourceKey) -> datetime | None:
        """When a source was read; None: it was not, or not to the end."""
        return self.inbox_at if key.source == "drops" else self.at.get(key)


def read_and_note(source: Readable, *, connection: Connection, now: datetime) -> str:
    """Read a source and note what it showed, or why it could not be read; what there is to say of it.

    Raises:
        RagPipelineError: it cannot be read.
    """
    try:
        remark = source.read()
    except RagPipelineError as error:
        _note_unreadable(source, error, connection=connection, now=now)
        raise
    _note(source, connection=connection, at=now)
    return remark


def read_at_once(
    sources: Sequence[R], *, places: Places | None, connection: Connection, now: datetime, progress: Progress = silent
) -> list[Outcome[R, str]]:
    """`read_and_note` of several, as many at once as there are places; what there is to say of each, or its error."""

    def told(done: int) -> None:
        progress("reading sources", done=done, total=len(sources), unit="sources")

    # One connection serves one thread: what they showed is noted when all are read.
    outcomes = at_once(sources, lambda source: source.read(), places=places, told=told)
    for outcome in outcomes:
        if outcome.error is not None:
            _note_unreadable(outcome.thing, outcome.error, connection=connection, now=now)
        else:
            _note(outcome.thing, connection=connection, at=now)
    return outcomes


def note_readings(
    settings: Settings, *, kind: str, connection: Connection, days: DayRange, at: datetime,
    failures: Iterable[Failure], asked: Asked = by_the_run,
) -> dict[SourceKey, datetime]:  # fmt: skip
    """After a run over `days` has read all sources of a kind (`git`, …) from `at` on: which to the end, and when.

    Those that are not `asked` were read just before, by whoever planned the run, who has noted when.
    """
    sources: list[Readable] = [
        *(GitProgress(settings, repository, now=at) for repository in settings.git_repositories),
        *(GitHubProgress(settings, repository, now=at) for repository in settings.github_repositories),
        *kinds_progress(settings, now=at),
    ]
    problems: Mapping[tuple[str, str], str] = {
        (failure.tenant, failure.repository): failure.reason
        for failure in failures
        if failure.source_type == "repository"
    }
    chosen = [source for source in sources if source.key.source == kind]
    noted: Mapping[SourceKey, datetime | None] = {}
    if not all(asked(source.key) for source in chosen):
        noted = {row.key: row.asked_at for row in freshness(connection)}
    read: dict[SourceKey, datetime] = {}
    for source in chosen:
        since = at if asked(source.key) else noted.get(source.key)
        if problem := problems.get((source.key.tenant, source.key.repository)):
            note_unreadable(connection, source.key, reason=redact(problem).text, now=at)
        elif since is not None and _note(source, connection=connection, at=since, days=days):
            read[source.key] = since
    return read


def _note_unreadable(source: Readable, error: RagPipelineError, *, connection: Connection, now: datetime) -> None:
    note_unreadable(connection, source.key, reason=redact(str(error)).text, now=now)


def _note(source: Readable, *, connection: Connection, at: datetime, days: DayRange | None = None) -> bool:
    """Whether it was read to the end."""
    if reason := source.incomplete():
        note_unreadable(connection, source.key, reason=redact(reason).text, now=at)
        return False
    covered = days is not None and at.date() in days
    note_asked(
        connection, source.key, at=at, newest=source.newest(), covered=covered, position=source.seen() or None
    )  # fmt: skip
    return True
