"""How far the files of git repositories are indexed: the mirror's time line against the lake and the index."""

from __future__ import annotations

from datetime import date, datetime

from rag_pipeline.index.bookkeeping import SourceKey, advance, position
from rag_pipeline.index.database import Connection
from rag_pipeline.lake.derive import combine
from rag_pipeline.lake.store import Lake
from rag_pipeline.model import DayRange, EmbeddingSpace
from rag_pipeline.refresh.parts import IndexedParts, pipeline_fingerprint
from rag_pipeline.settings import Repository, Settings
from rag_pipeline.sources.git.mirror import mirror_of
from rag_pipeline.sources.git.stage import STAGES, source_fingerprint, window_inputs
from rag_pipeline.sources.git.timeline import Position, Timeline, read_timeline


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

    def pending(self, connection: Connection, space: EmbeddingSpace | None) -> list[date]:
        """The first day that the index has not seen, for everything after it follows; none when it is up to date."""
        timeline = self._timeline()
        due = timeline.first_day_after(self._known(connection, space), first_day=self._first_day)
        return [] if due is None else [due]

    def note(self, connection: Connection, space: EmbeddingSpace, lake: Lake, days: DayRange) -> bool:
        """Move the position if these days follow it without a gap and are wholly in the index.

        Only as far as the run itself has read (`read_to`): the lake cannot tell commits that touch no file of ours from
        commits that nobody has read yet.
        """
        timeline = self._timeline()
        window = timeline.window(first=days.first, last=days.last, first_day=self._first_day)
        known = self._known(connection, space)
        if window is None or not timeline.joins(known, first=days.first, first_day=self._first_day):
            return False
        reached = window.reached
        if reached != self._read_to or (known is not None and known.at > reached.at):
            return False
        inputs = window_inputs(self._settings, self.repository, window)
        parts = IndexedParts(self._settings, lake, connection, space, days)
        wanted = parts.of(self.repository.tenant, self.repository.name, list(STAGES.values()))
        if not all(parts.is_read(part, STAGES.values(), inputs) and parts.is_indexed(part) for part in wanted):
            return False
        return advance(
            connection, self.key, space, fingerprint=self.fingerprint, to=reached.commit, at=reached.at, now=self._now
        )

    def _timeline(self) -> Timeline:
        mirror = mirror_of(self.repository, home=self._settings.home)
        return read_timeline(mirror, now=self._now) if mirror.exists() else Timeline(steps=())

    def _known(self, connection: Connection, space: EmbeddingSpace | None) -> Position | None:
        found = position(connection, self.key, space, fingerprint=self.fingerprint) if space else None
        return Position(commit=found[0], at=found[1]) if found else None
