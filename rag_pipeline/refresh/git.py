"""How far the files of git repositories are indexed: the mirror's time line against the lake and the index."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from datetime import date, datetime

from rag_pipeline.index.bookkeeping import (
    ReadWindow,
    SourceKey,
    advance,
    drop_windows,
    note_window,
    position,
    windows_read,
)  # fmt: skip
from rag_pipeline.index.database import Connection
from rag_pipeline.lake.derive import combine
from rag_pipeline.lake.store import Lake
from rag_pipeline.model import DayRange, EmbeddingSpace
from rag_pipeline.refresh.parts import IndexedParts, pipeline_fingerprint
from rag_pipeline.settings import Repository, Settings
from rag_pipeline.sources.git.mirror import mirror_of
from rag_pipeline.sources.git.stage import STAGES, RawReport, source_fingerprint, window_inputs
from rag_pipeline.sources.git.timeline import Position, Timeline, Window, read_timeline


class GitProgress:
    """Progress of one repository's files."""

    def __init__(
        self, settings: Settings, repository: Repository, *, now: datetime, read_to: Position | None = None
    ) -> None:
        self._settings = settings
        self._now = now
        self._read_to = read_to
        self.repository = repository
        self.key = SourceKey(tenant=repository.tenant, repository=repository.name, source="git")
        self._first_day = settings.first_day_of(repository)

    @property
    def fingerprint(self) -> str:
        """Changes when the same commits could give other chunks."""
        source = source_fingerprint(self.repository, self._settings.git)
        return combine(pipeline_fingerprint(self._settings), source, str(self._first_day))

    def read(self) -> str:
        """Fetch the mirror; what there is to say of it, empty when there is nothing.

        Raises:
            RagPipelineError: it cannot be fetched.
        """
        mirror = mirror_of(self.repository, home=self._settings.home)
        return "" if mirror.fetch(now=self._now) is not None else "has no commit yet"

    def is_read(self) -> bool:
        """Whether it was ever read."""
        return mirror_of(self.repository, home=self._settings.home).exists()

    def incomplete(self) -> str:
        """A fetch brings all or nothing."""
        return ""

    def newest(self) -> datetime | None:
        """When the branch came to where it stands; None: it has no commit."""
        head = self._timeline().head
        return head.at if head else None

    def seen(self) -> str:
        """The commit at which the branch stands; empty: it has none."""
        head = self._timeline().head
        return head.commit if head else ""

    def pending(self, connection: Connection, space: EmbeddingSpace | None) -> list[date]:
        """The first day that the index has not seen, for everything after it follows; none when it is up to date."""
        timeline = self._timeline()
        due = timeline.first_day_after(self._known(connection, space), first_day=self._first_day)
        return [] if due is None else [due]

    def note(self, connection: Connection, space: EmbeddingSpace, lake: Lake, days: DayRange) -> bool:
        """Move the position over what follows it without a gap and is wholly in the index.

        That is these days, as far as the run itself has read (`read_to`): the lake cannot tell commits that touch no
        file of ours from commits that nobody has read yet. And then what other runs have read: those of a backfill end
        in any order, and one that died is finished by another.
        """
        moved = self._note_own(connection, space, lake, days)
        if self.pending(connection, space):
            moved = self._note_others(connection, space, lake) or moved
        if moved and (known := self._known(connection, space)):
            drop_windows(connection, self.key, fingerprint=self.fingerprint, until=known.at)
        return moved

    def note_read(self, connection: Connection, days: DayRange, reached: Position) -> None:
        """After a run has read these days to their end: keep that, for whoever finishes it or what is before it."""
        window = ReadWindow(days=days, position=reached.commit, at=reached.at)
        note_window(connection, self.key, window, fingerprint=self.fingerprint)

    def _note_own(self, connection: Connection, space: EmbeddingSpace, lake: Lake, days: DayRange) -> bool:
        timeline = self._timeline()
        window = timeline.window(first=days.first, last=days.last, first_day=self._first_day)
        known = self._known(connection, space)
        if window is None or not timeline.joins(known, first=days.first, first_day=self._first_day):
            return False
        reached = window.reached
        if reached != self._read_to or (known is not None and known.at > reached.at):
            return False
        if not self._are_indexed(days, {self._inputs(window)}, connection, space, lake):
            return False
        return self._advance(connection, space, reached)

    def _note_others(self, connection: Connection, space: EmbeddingSpace, lake: Lake) -> bool:
        timeline = self._timeline()
        read = {
            kept.days: window
            for kept in windows_read(connection, self.key, fingerprint=self.fingerprint)
            if (window := timeline.window(first=kept.days.first, last=kept.days.last, first_day=self._first_day))
            # A day that got another commit since was not read wholly.
            and window.reached == Position(commit=kept.position, at=kept.at)
        }
        # Where runs overlapped, a day's part is from one of them, and what changed again later in that one lies there.
        inputs = {self._inputs(window) for window in read.values()}
        indexed: dict[DayRange, bool] = {}

        def is_indexed(days: DayRange) -> bool:
            if days not in indexed:
                indexed[days] = self._are_indexed(days, inputs, connection, space, lake)
            return indexed[days]

        moved = False
        while reached := self._next(timeline, read, self._known(connection, space), is_indexed):
            moved = self._advance(connection, space, reached) or moved
        return moved

    def _next(
        self, timeline: Timeline, read: Mapping[DayRange, Window], known: Position | None,
        is_indexed: Callable[[DayRange], bool],
    ) -> Position | None:  # fmt: skip
        """The end of days that join `known`, and that are in the index with whatever was read of some of them."""
        for days, window in read.items():
            if known is not None and window.reached.at <= known.at:
                continue
            if timeline.joins(known, first=days.first, first_day=self._first_day) and all(
                is_indexed(other) for other in read if other.first <= days.last and days.first <= other.last
            ):
                return window.reached
        return None

    def _are_indexed(
        self, days: DayRange, inputs: Set[str], connection: Connection, space: EmbeddingSpace, lake: Lake
    ) -> bool:
        parts = IndexedParts(self._settings, lake, connection, space, days)
        wanted = parts.of(self.repository.tenant, self.repository.name, list(STAGES.values()))
        return all(parts.is_read(part, STAGES.values(), inputs) and parts.is_indexed(part) for part in wanted)

    def _advance(self, connection: Connection, space: EmbeddingSpace, reached: Position) -> bool:
        return advance(
            connection, self.key, space, fingerprint=self.fingerprint, to=reached.commit, at=reached.at, now=self._now
        )

    def _inputs(self, window: Window) -> str:
        return window_inputs(self._settings, self.repository, window)

    def _timeline(self) -> Timeline:
        mirror = mirror_of(self.repository, home=self._settings.home)
        return read_timeline(mirror, now=self._now) if mirror.exists() else Timeline(steps=())

    def _known(self, connection: Connection, space: EmbeddingSpace | None) -> Position | None:
        found = position(connection, self.key, space, fingerprint=self.fingerprint) if space else None
        return Position(commit=found[0], at=found[1]) if found else None


def note_windows(
    settings: Settings, connection: Connection, days: DayRange, report: RawReport, *, now: datetime
) -> None:
    """After the raw stage: keep which repositories were read over these days, and how far."""
    for found in report.repositories:
        if found.position is not None:
            GitProgress(settings, found.repository, now=now).note_read(connection, days, found.position)
