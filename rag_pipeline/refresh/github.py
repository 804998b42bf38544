"""How far pull requests and issues are indexed: the mirror's count of changes against the lake and the index."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import date, datetime
from typing import TypeAlias
from uuid import uuid4

from rag_pipeline.errors import PermanentError
from rag_pipeline.index.bookkeeping import SourceKey, advance, position
from rag_pipeline.index.database import Connection
from rag_pipeline.lake.derive import combine
from rag_pipeline.lake.store import Lake, Part
from rag_pipeline.model import DayRange, EmbeddingSpace, Failure
from rag_pipeline.refresh.parts import IndexedParts, pipeline_fingerprint
from rag_pipeline.settings import Repository, Settings
from rag_pipeline.sources.drops.stage import STAGE as DROPS
from rag_pipeline.sources.github.mirror import GitHubMirror
from rag_pipeline.sources.github.stage import (
    GITHUB_SOURCE_VERSION,
    STAGES,
    Access,
    day_inputs,
    day_of,
    fetch_repository,
    is_kept,
    threads_by_day,
)  # fmt: skip
from rag_pipeline.sources.github.store import Settled, Store
from rag_pipeline.sources.raw_parts import is_current

_State: TypeAlias = tuple[str, str, datetime]
"""Source type and id of a thread, and when it was seen so."""
# Names a mirror's file: one that was lost and is read again counts from one again.
_BIRTH = "birth"


class GitHubProgress:
    """Progress of one repository's pull requests and issues."""

    def __init__(
        self, settings: Settings, repository: Repository, *, now: datetime, access: Access | None = None
    ) -> None:
        self._settings = settings
        self._access = access
        self._now = now
        self._mirror = GitHubMirror(settings, repository)
        self._lake = Lake(settings.lake_url)
        self._first_day = settings.first_day_of(repository)
        self._forgotten = settings.forgotten(now)
        self.repository = repository
        self.key = SourceKey(tenant=repository.tenant, repository=repository.name, source="github")

    def read(self) -> str:
        """Ask GitHub what changed (which needs `access`); what there is to say of it. Raises as `fetch` does."""
        if self._access is None:
            return ""
        report, usage = fetch_repository(self._settings, self.repository, self._access)
        return f"GitHub was not read to the end: {report.stopped}" if report.stopped else _asked(usage.requests)

    def is_read(self) -> bool:
        """Whether it was ever read."""
        return self._mirror.exists()

    def incomplete(self) -> str:
        """Why the last reading did not come to the end; empty: it did."""
        if not self._mirror.exists():
            return ""
        with self._mirror.open() as store:
            stopped = store.note("stopped")
        return f"GitHub was not read to the end: {stopped}" if stopped else ""

    def newest(self) -> datetime | None:
        """When the newest change of a thread was; None: there is no thread."""
        if not self._mirror.exists():
            return None
        with self._mirror.open() as store:
            return store.newest_change()

    def seen(self) -> str:
        """The mirror's count of changes, and which mirror it is."""
        if not self._mirror.exists():
            return ""
        with self._mirror.open() as store:
            return f"{_birth_of(store)} {store.last_seq()}"

    def unread(self, reason: str) -> Failure:
        """What goes on record of a repository that could not be read."""
        tenant, name = self.repository.tenant, self.repository.name
        return Failure(
            tenant=tenant, source_type="repository", source_id=name, stage="raw_github", repository=name,
            day=self._now.date(), source_updated_at=self._now, reason=reason[:500],
        )  # fmt: skip

    def pending(self, connection: Connection, space: EmbeddingSpace | None) -> list[date]:
        """The days of all threads that changed since the position."""
        if not self._mirror.exists():
            return []
        with self._mirror.open() as store:
            return self._days(store, connection, space)

    def note(self, connection: Connection, space: EmbeddingSpace, lake: Lake, days: DayRange) -> bool:
        """Move the position if every day with a change since then is wholly in the index, by whatever run."""
        if not self._mirror.exists():
            return False
        with self._mirror.open() as store:
            # Before anything else: what is settled from here on is not part of it.
            reached = store.last_seq()
            pending = self._days(store, connection, space)
            if reached == self._known(store, connection, space):
                return False
            if pending and not self._are_indexed(store, pending, connection, space, lake):
                return False
            fingerprint = self._fingerprint(store)
        return advance(
            connection, self.key, space, fingerprint=fingerprint, to=str(reached), at=self._now, now=self._now
        )

    def _are_indexed(
        self, store: Store, pending: list[date], connection: Connection, space: EmbeddingSpace, lake: Lake
    ) -> bool:
        span = DayRange(first=min(pending), last=max(pending))
        parts = IndexedParts(self._settings, lake, connection, space, span)
        identity = self._mirror.identity(store)
        by_day = threads_by_day(
            store, span, first_day=self._first_day, today=self._now.date(), forgotten=self._forgotten
        )
        # From the last day on: what a run left out is there more often than not.
        for day in reversed(pending):
            part = Part(tenant=self.repository.tenant, repository=self.repository.name, day=day)
            threads = by_day.get(day, [])
            kinds = {f"github_{thread.kind}" for thread in threads}
            is_read = is_current(lake, part, stages=STAGES, kinds=kinds, inputs=day_inputs(identity, threads))
            if not is_read or not parts.is_indexed(part):
                return False
        return True

    def _days(self, store: Store, connection: Connection, space: EmbeddingSpace | None) -> list[date]:
        """The days of what changed since the position, but for what deliveries have brought into the index already."""
        after = self._known(store, connection, space)
        changed = [thread for thread in store.threads(after=after) if is_kept(thread, self._forgotten)]
        if after and space is not None and changed:
            dropped = self._dropped(store, changed, connection, space)
            changed = [thread for thread in changed if self._state(store, thread) not in dropped]
        today = self._now.date()
        return sorted({day_of(thread, first_day=self._first_day, today=today) for thread in changed})

    def _dropped(
        self, store: Store, threads: Sequence[Settled], connection: Connection, space: EmbeddingSpace
    ) -> set[_State]:
        """What of these threads' states is in parts of drops that are wholly in the index."""
        days = sorted({thread.as_of.date() for thread in threads})
        parts = IndexedParts(self._settings, self._lake, connection, space, DayRange(first=days[0], last=days[-1]))
        found: set[_State] = set()
        for day in days:
            part = Part(tenant=self.repository.tenant, repository=self.repository.name, day=day)
            if self._lake.tags(DROPS, part) is None or not parts.is_indexed(part):
                continue
            # A damaged part proves nothing.
            with suppress(PermanentError):
                for batch in self._lake.read(DROPS, part, columns=["source_type", "source_id", "as_of"]):
                    rows = batch.to_pylist()
                    found |= {(row["source_type"], row["source_id"], row["as_of"]) for row in rows}
        return found

    def _state(self, store: Store, thread: Settled) -> _State:
        source_id = self._mirror.source_id(self._mirror.identity(store), thread.number)
        return f"github_{thread.kind}", source_id, thread.as_of

    def _known(self, store: Store, connection: Connection, space: EmbeddingSpace | None) -> int:
        found = position(connection, self.key, space, fingerprint=self._fingerprint(store)) if space else None
        return int(found[0]) if found else 0

    def _fingerprint(self, store: Store) -> str:
        """Changes when the same threads could give other chunks, and when the mirror counts its changes anew."""
        return combine(
            pipeline_fingerprint(self._settings), GITHUB_SOURCE_VERSION, _birth_of(store), str(self._first_day)
        )


def _birth_of(store: Store) -> str:
    if store.note(_BIRTH) is None:
        store.set_note(_BIRTH, uuid4().hex)
    return str(store.note(_BIRTH))


def _asked(requests: int) -> str:
    return "" if requests == 0 else f"asked GitHub {requests:,} times"
