"""Reading repositories as a run does, and keeping what was read as the index does: newer wins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from rag_pipeline.model import SourceItem
from rag_pipeline.settings import GitLimits, Repository
from rag_pipeline.sources.git.mirror import Mirror, mirror_of
from rag_pipeline.sources.git.reader import GitReader, GitReport
from rag_pipeline.sources.git.timeline import Position, Timeline, Window, read_timeline

FIRST_DAY = date(2024, 1, 1)
NOW = datetime(2024, 3, 1, 12, tzinfo=UTC)


def day(text: str) -> date:
    """`01-05` is a day of 2024."""
    return date.fromisoformat(f"2024-{text}")


@dataclass(kw_only=True)
class Source:
    """A repository under observation."""

    path: Path
    home: Path
    options: Mapping[str, object] = field(default_factory=dict)
    limits: GitLimits = field(default_factory=GitLimits)
    now: datetime = NOW
    report: GitReport = field(default_factory=GitReport)
    first_day: date = FIRST_DAY

    @property
    def repository(self) -> Repository:
        values = {"source": str(self.path), "name": "project", "tenant": "acme", **self.options}
        return Repository.model_validate(values)

    @property
    def mirror(self) -> Mirror:
        return mirror_of(self.repository, home=self.home)

    def fetch(self) -> str | None:
        return self.mirror.fetch(now=self.now)

    def timeline(self) -> Timeline:
        return read_timeline(self.mirror, now=self.now)

    def window(self, first: date | None = None, last: date | None = None) -> Window | None:
        last = last or self.now.date()
        return self.timeline().window(first=first or self.first_day, last=last, first_day=self.first_day)

    def read(self, first: date | None = None, last: date | None = None) -> list[SourceItem]:
        """The items of the days `first` to `last` of what was fetched, newest first; by default all."""
        window = self.window(first, last)
        self.report = GitReport()
        return self.items(window) if window else []

    def items(self, window: Window) -> list[SourceItem]:
        with GitReader(
            self.mirror, window, repository=self.repository, limits=self.limits, report=self.report
        ) as reader:
            days: dict[date, list] = {}
            for change in reader.changes():
                days.setdefault(window.day_of(change.at), []).append(change)
            return [
                item for day, changes in days.items() for item in reader.items(changes, day=day, observed_at=self.now)
            ]

    def fetch_and_read(self, first: date | None = None, last: date | None = None) -> dict[str, SourceItem]:
        self.fetch()
        return by_path(self.read(first, last))


def by_path(items: list[SourceItem]) -> dict[str, SourceItem]:
    """Items by path; a path may occur once only."""
    found = {str(item.path): item for item in items}
    assert len(found) == len(items), "a path was emitted twice in one window"
    return found


@dataclass(kw_only=True)
class Index:
    """What an index keeps of the items it is given: of two states of one path the newer."""

    source: Source
    held: dict[str, SourceItem] = field(default_factory=dict)
    position: Position | None = None

    def run(self, first: date, last: date) -> None:
        """One run over the days, as often and in whatever order."""
        self.source.now += timedelta(seconds=1)
        window = self.source.window(first, last)
        items = by_path(self.source.items(window)) if window else {}
        for path, item in items.items():
            assert max(first, self.source.first_day) <= item.day <= last
            known = self.held.get(path)
            if known is None or _age(item) >= _age(known):
                self.held[path] = item

    def refresh(self) -> None:
        """What is new since the last refresh, up to today."""
        timeline = self.source.timeline()
        due = timeline.first_day_after(self.position, first_day=self.source.first_day)
        if due is not None:
            self.run(due, self.source.now.date())
            self.position = timeline.head

    def live(self) -> dict[str, bytes]:
        return {path: item.content for path, item in self.held.items() if not item.deleted}


def _age(item: SourceItem) -> tuple[datetime, datetime]:
    return item.source_updated_at, item.observed_at
