"""How far the blocks of further kinds of sources are indexed: what their listings showed against lake and index."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any

from rag_pipeline.index.bookkeeping import SourceKey, advance, position
from rag_pipeline.index.database import Connection
from rag_pipeline.lake.derive import as_partial, combine
from rag_pipeline.lake.store import Lake, Part
from rag_pipeline.model import DayRange, EmbeddingSpace
from rag_pipeline.refresh.parts import IndexedParts, pipeline_fingerprint
from rag_pipeline.settings import Settings
from rag_pipeline.sources.kinds.memory import Known, Memory, memory_of, memory_path
from rag_pipeline.sources.kinds.protocol import Outside, SourceBlock, SourceKind
from rag_pipeline.sources.kinds.registry import blocks_of, kinds, stage_of
from rag_pipeline.sources.kinds.stage import (
    day_inputs,
    days_of_items,
    first_day_of,
    observe,
    source_fingerprint,
    withheld_removal,
)  # fmt: skip


class KindProgress:
    """Progress of one block."""

    def __init__(
        self, settings: Settings, kind: SourceKind[Any], block: SourceBlock, *, now: datetime,
        outside: Outside | None = None,
    ) -> None:  # fmt: skip
        self._settings = settings
        self._kind = kind
        self._now = now
        self._outside = outside
        self._first_day = first_day_of(block, settings)
        self._withheld = ""
        self.repository = block
        self.key = SourceKey(tenant=block.tenant, repository=block.name, source=kind.name)

    def read(self) -> str:
        """List the block (which needs `outside`); what there is to say of it. Raises as `observe` does."""
        if self._outside is None:
            return ""
        seen = observe(self._kind, self.repository, self._settings, outside=self._outside, now=self._now)
        self._withheld = withheld_removal(self.repository, seen) if seen.withheld else ""
        return self._withheld

    def is_read(self) -> bool:
        """Whether it was ever listed."""
        return self._path.exists()

    def incomplete(self) -> str:
        """Why the last listing was not believed in all; empty: it was."""
        return self._withheld

    def newest(self) -> datetime | None:
        """When the newest change happened that a listing showed; None: there is none."""
        if not self.is_read():
            return None
        with memory_of(self._settings, self._kind.name, self.repository) as memory:
            return max((item.changed_at for item in memory.items()), default=None)

    def seen(self) -> str:
        """The memory's count of changes, and which memory it is."""
        if not self.is_read():
            return ""
        with memory_of(self._settings, self._kind.name, self.repository) as memory:
            return f"{memory.birth} {max((item.seq for item in memory.items()), default=0)}"

    def pending(self, connection: Connection, space: EmbeddingSpace | None) -> list[date]:
        """The days of everything that changed since the position."""
        if not self._path.exists():
            return []
        with memory_of(self._settings, self._kind.name, self.repository) as memory:
            changed = memory.items(after=self._known(memory, connection, space))
        return sorted(self._by_day(changed))

    def note(self, connection: Connection, space: EmbeddingSpace, lake: Lake, days: DayRange) -> bool:
        """Move the position if every day with a change since then is wholly in the index, by whatever run."""
        if not self._path.exists():
            return False
        with memory_of(self._settings, self._kind.name, self.repository) as memory:
            items = memory.items()
            known = self._known(memory, connection, space)
            fingerprint = self._fingerprint(memory)
        pending = sorted(self._by_day([item for item in items if item.seq > known]))
        if not pending or not self._are_indexed(self._by_day(items), pending, connection, space, lake):
            return False
        reached = max(item.seq for item in items)
        return advance(
            connection, self.key, space, fingerprint=fingerprint, to=str(reached), at=self._now, now=self._now
        )

    def _are_indexed(
        self, by_day: dict[date, list[Known]], pending: list[date], connection: Connection, space: EmbeddingSpace,
        lake: Lake,
    ) -> bool:  # fmt: skip
        span = DayRange(first=pending[0], last=pending[-1])
        parts = IndexedParts(self._settings, lake, connection, space, span)
        # From the last day on: what a run left out is there more often than not.
        for day in reversed(pending):
            part = Part(tenant=self.repository.tenant, repository=self.repository.name, day=day)
            if not self._is_read(lake, part, by_day[day]) or not parts.is_indexed(part):
                return False
        return True

    def _is_read(self, lake: Lake, part: Part, items: Sequence[Known]) -> bool:
        """Whether the part holds these items, save those that are quarantined."""
        inputs = day_inputs(self._kind, self.repository, items)
        tags = lake.tags(stage_of(self._kind), part)
        if tags is None:
            return all(item.failed for item in items)
        return tags.get("inputs") in (inputs, as_partial(inputs))

    @property
    def _path(self) -> Path:
        return memory_path(self._settings, self._kind.name, self.repository)

    def _by_day(self, items: Sequence[Known]) -> dict[date, list[Known]]:
        return days_of_items(items, first_day=self._first_day, today=self._now.date())

    def _known(self, memory: Memory, connection: Connection, space: EmbeddingSpace | None) -> int:
        found = position(connection, self.key, space, fingerprint=self._fingerprint(memory)) if space else None
        return int(found[0]) if found else 0

    def _fingerprint(self, memory: Memory) -> str:
        """Changes when the same items could give other chunks, and when the memory counts its changes anew."""
        source = source_fingerprint(self._kind, self.repository)
        return combine(pipeline_fingerprint(self._settings), source, memory.birth, str(self._first_day))


def kinds_progress(settings: Settings, *, now: datetime, outside: Outside | None = None) -> list[KindProgress]:
    """One for each block of each kind; with `outside` they can be listed."""
    return [
        KindProgress(settings, kind, block, now=now, outside=outside)
        for kind in kinds()
        for block in blocks_of(kind, settings)
    ]
