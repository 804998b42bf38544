"""How far drops are indexed: the parts that the inbox gave against the index."""

from __future__ import annotations

from datetime import date, datetime, timedelta

from rag_pipeline.index.bookkeeping import SourceKey, advance, position
from rag_pipeline.index.database import Connection
from rag_pipeline.lake.store import Lake, Part
from rag_pipeline.model import DayRange, EmbeddingSpace
from rag_pipeline.refresh.parts import IndexedParts, pipeline_fingerprint
from rag_pipeline.settings import Settings
from rag_pipeline.sources.drops.stage import STAGE, inbox_of

# A run that was killed is followed by another within this time; only then older days need no look any more.
_LOOKED_BACK = timedelta(days=30)


class DropsProgress:
    """Progress of what one tenant's drops gave for one repository."""

    def __init__(self, settings: Settings, lake: Lake, *, tenant: str, repository: str, now: datetime) -> None:
        self._settings = settings
        self._lake = lake
        self._now = now
        self.key = SourceKey(tenant=tenant, repository=repository, source="drops")

    @property
    def fingerprint(self) -> str:
        """Changes when the same drops could give other chunks."""
        return pipeline_fingerprint(self._settings)

    def pending(self, connection: Connection, space: EmbeddingSpace | None) -> list[date]:
        """Days whose drops are not in the index."""
        days = self._days()
        if space is None or position(connection, self.key, space, fingerprint=self.fingerprint) is None:
            return days
        days = [day for day in days if day >= self._now.date() - _LOOKED_BACK]
        if not days:
            return []
        span = DayRange(first=days[0], last=days[-1])
        parts = IndexedParts(self._settings, self._lake, connection, space, span)
        return [day for day in days if not parts.is_indexed(self._part(day))]

    def note(self, connection: Connection, space: EmbeddingSpace, lake: Lake, days: DayRange) -> bool:
        """Note that all drops there are have been indexed under these settings, so that only new ones need a look."""
        known = self._days()
        if not known or position(connection, self.key, space, fingerprint=self.fingerprint) is not None:
            return False
        parts = IndexedParts(self._settings, lake, connection, space, DayRange(first=known[0], last=known[-1]))
        if not all(parts.is_indexed(self._part(day)) for day in reversed(known)):
            return False
        return advance(connection, self.key, space, fingerprint=self.fingerprint, to="all", at=self._now, now=self._now)

    def _days(self) -> list[date]:
        """The partitions that hold drops."""
        days = self._lake.days(STAGE, tenant=self.key.tenant, repository=self.key.repository)
        return [day for day in days if self._settings.first_day <= day <= self._now.date()]

    def _part(self, day: date) -> Part:
        return Part(tenant=self.key.tenant, repository=self.key.repository, day=day)


def drops_progress(settings: Settings, lake: Lake, *, now: datetime) -> list[DropsProgress]:
    """One for each tenant and repository that drops were taken in for."""
    return [
        DropsProgress(settings, lake, tenant=tenant, repository=repository, now=now)
        for tenant, repository in lake.repositories(STAGE)
    ]


def waiting_drops(settings: Settings, *, now: datetime) -> int:
    """Drops that wait in the inbox, those whose names cannot be taken included."""
    inbox, settle_s = inbox_of(settings), settings.drops.settle_s
    return len(inbox.waiting(now=now, settle_s=settle_s)) + len(inbox.unusable(now=now, settle_s=settle_s))
