"""The raw stage for drops: what waits in the inbox to `raw_webhook_drops`, on the day it is taken in.

A drop leaves the inbox only after what it says is in the lake, so that a run that is killed takes it again; taking a
drop twice changes nothing. A GitHub delivery makes the thread it touches fresh, in the mirror and as an item of today.
"""

from __future__ import annotations

import dataclasses
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TypeAlias

from filelock import FileLock

from rag_pipeline.errors import ConfigError, ItemError
from rag_pipeline.lake.store import Lake, Part
from rag_pipeline.model import DayRange, SourceItem
from rag_pipeline.progress import Progress
from rag_pipeline.settings import Repository, Settings
from rag_pipeline.sources.drops.forgotten_drops import holds_forgotten, purge_notes
from rag_pipeline.sources.drops.inbox import DropFile
from rag_pipeline.sources.drops.parse import Delivery, Parsed, parse_drop
from rag_pipeline.sources.drops.parts import (
    STAGE,
    IntakeRecord,
    inbox_of,
    merged_items,
    restore_lost_parts,
)
from rag_pipeline.sources.drops.routing import changes_files, with_files_of, with_threads_of
from rag_pipeline.sources.github.apply import ApplyReport, apply_touches
from rag_pipeline.sources.github.deliveries import Touch, interpret
from rag_pipeline.sources.github.mirror import GitHubMirror
from rag_pipeline.sources.github.resources import instant
from rag_pipeline.sources.github.stage import Access, client_of, item_of
from rag_pipeline.sources.raw_parts import PartsReport, write_part

__all__ = ["STAGE", "DropsReport", "batch_of", "inbox_of", "make_inbox", "merged_items", "read_drops"]
_MAX_BATCH_BYTES = 64 << 20
_Touches: TypeAlias = list[tuple[Touch, datetime]]


@dataclass(slots=True, kw_only=True)
class DropsReport(PartsReport):
    """What became of the drops that waited."""

    taken: int = 0
    """Files that left the inbox."""
    taken_for: set[tuple[str, str]] = field(default_factory=set)
    """Tenants and repositories that something was taken for."""
    left: int = 0
    """Files that wait for the next run."""
    events: Counter[str] = field(default_factory=Counter)
    """GitHub deliveries that touched something, by event."""
    ignored: Counter[str] = field(default_factory=Counter)
    """Deliveries that touch nothing here, by reason."""
    rejected: list[tuple[str, str]] = field(default_factory=list)
    """(file, reason)"""
    pushed: set[str] = field(default_factory=set)
    """Repositories whose indexed branch was pushed to."""
    threads_from_api: int = 0
    threads_from_payload: int = 0
    unreachable: list[str] = field(default_factory=list)
    """Why GitHub could not be asked."""
    restored: dict[Part, int] = field(default_factory=dict)
    """Parts that were damaged or gone, and were made again from the accepted files; how many items they hold."""


def make_inbox(settings: Settings) -> None:
    """Make the folder in RAG_HOME that people drop files into; one that the settings name is somebody else's."""
    if not settings.drops.inbox:
        Path(settings.inbox_url).mkdir(parents=True, exist_ok=True)


def batch_of(waiting: Sequence[DropFile], settings: Settings, *, until: datetime | None = None) -> list[DropFile]:
    """What one run takes: the oldest drops, none that was written after `until`, and only as many as memory likes."""
    batch: list[DropFile] = []
    held = 0
    for file in waiting[: settings.drops.max_batch]:
        held += file.size
        if batch and held > _MAX_BATCH_BYTES:
            break
        if until is None or file.modified_at <= until:
            batch.append(file)
    return batch


def read_drops(
    settings: Settings, lake: Lake, days: DayRange, *, access: Access, progress: Progress, until: datetime | None = None
) -> DropsReport:
    """Take what waits in the inbox, if today is among these days: a drop belongs to the day it is taken in.

    With `until`, only what had been written by then: whoever launched the run knew of no more, and chose by that what
    the run refreshes. A malformed drop goes to `rejected/` beside its reason and stops nothing.
    """
    report = DropsReport()
    now = access.clock()
    settings.home.mkdir(parents=True, exist_ok=True)
    with FileLock(settings.home / "inbox.lock"):
        report.restored = restore_lost_parts(settings, lake, days, now=now, report=report)
        report.taken_for.update((part.tenant, part.repository) for part in report.restored)
        if now.date() not in days:
            return report
        intake = _Intake(settings, lake, report, access=dataclasses.replace(access, progress=progress), now=now)
        intake.take(progress, until=until)
    return report


class _Intake:
    """One batch of drops on its way into the lake."""

    def __init__(self, settings: Settings, lake: Lake, report: DropsReport, *, access: Access, now: datetime) -> None:
        self._settings = settings
        self._lake = lake
        self._report = report
        self._access = access
        self._now = now
        self._forgotten = settings.forgotten(now)
        self._inbox = inbox_of(settings)
        self._items: dict[tuple[str, str], list[SourceItem]] = defaultdict(list)
        self._touches: dict[tuple[str, str], _Touches] = defaultdict(list)
        self._done: list[tuple[DropFile, Parsed]] = []
        self._not_kept: set[str] = set()

    def take(self, progress: Progress, *, until: datetime | None) -> None:
        waiting = self._inbox.waiting(now=self._now, settle_s=self._settings.drops.settle_s)
        unusable = self._inbox.unusable(now=self._now, settle_s=self._settings.drops.settle_s)
        for misnamed in unusable:
            reason = self._inbox.reject_unusable(misnamed)
            self._report.rejected.append((ascii(misnamed.name)[1:-1], reason))
        batch = batch_of(waiting, self._settings, until=until)
        for done, file in enumerate(batch, start=1):
            self._read(file)
            progress(STAGE, done=done, total=len(batch), unit="drops")
        self._apply()
        record = IntakeRecord(self._settings.home)
        for (tenant, repository), items in sorted(self._items.items()):
            part = Part(tenant=tenant, repository=repository, day=self._now.date())
            merged = merged_items(self._lake, part, items)
            write_part(
                self._lake,
                part,
                merged,
                stages={STAGE: STAGE},
                inputs="",
                report=self._report,
                key=lambda _: STAGE,
                forgotten=self._forgotten,
            )
            record.note_part(part, is_there=self._lake.exists(STAGE, part))
        self._report.taken_for.update(self._items)
        if self._done:
            record.note_taker(self._now.date(), self._settings.tenant)
            record.save()
        for file, parsed in self._done:
            for bad in parsed.bad_lines:
                self._inbox.reject_part(file.name, bad.content, reason=bad.reason)
                self._report.rejected.append((f"{file.name}:{bad.line}", bad.reason))
            if file.name in self._not_kept:
                purge_notes(self._inbox, parsed.items, remove=True)
                self._inbox.remove(file.name)
            else:
                kept = self._inbox.accept(file.name, day=self._now.date(), seen=file)
                if kept is not None and kept != file.name:
                    record.note_numbered(self._now.date(), kept)
        if self._done:
            record.save()
        self._report.taken += len(self._done)
        self._report.left = len(waiting) - self._report.taken
        self._report.taken += len(unusable)

    def _read(self, file: DropFile) -> None:
        try:
            content = self._inbox.read(file.name, max_bytes=self._settings.drops.max_drop_bytes)
            found = self._understand(file, content)
        except FileNotFoundError:
            return  # Another process took it.
        except ItemError as error:
            self._inbox.reject(file.name, reason=str(error), seen=file)
            self._report.rejected.append((file.name, str(error)))
            self._report.taken += 1
            return
        if found is None:
            return  # It is still being written.
        parsed, touch = found
        if parsed.delivery is not None and touch is not None:
            self._take_delivery(parsed.delivery, touch)
        for item in parsed.items:
            self._items[item.tenant, item.repository].append(item)
        if self._forgotten and holds_forgotten(content, parsed.items, self._forgotten, self._settings):
            self._not_kept.add(file.name)
        self._done.append((file, parsed))

    def _understand(self, file: DropFile, content: bytes) -> tuple[Parsed, Touch | None] | None:
        """What a drop says, and what it touches when it is a delivery. Pure, but for the clock's `now`."""
        try:
            parsed = parse_drop(
                file.name, content, modified_at=file.modified_at, now=self._now, tenant=self._settings.tenant
            )
            if parsed is None:
                return None
            if parsed.delivery is None:
                return parsed, None
            received_at = instant(parsed.delivery.received_at.timestamp())
            return parsed, interpret(parsed.delivery.event, parsed.delivery.payload, received_at=received_at)
        except ItemError:
            raise
        except Exception as error:
            # Whatever one drop does to the code that reads it must not stop the others.
            raise ItemError(f"{type(error).__name__}: {error}") from error

    def _take_delivery(self, delivery: Delivery, touch: Touch) -> None:
        if touch.ignored:
            self._report.ignored[touch.ignored] += 1
            return
        assert touch.repository is not None
        find = with_files_of if touch.kind == "push" else with_threads_of
        repositories = find(self._settings, touch.repository)
        if not repositories:
            kind = "files" if touch.kind == "push" else "threads"
            self._report.ignored[f"the {kind} of {touch.repository.full_name} are not configured"] += 1
            return
        self._report.events[delivery.event] += 1
        if touch.kind == "push":
            self._report.pushed.update(r.name for r in repositories if changes_files(r, touch, delivery))
            return
        self._touch(repositories, touch, delivery)
        if touch.moved_to:
            identity, number = touch.moved_to
            moved = Touch(repository=identity, kind="issue", number=number)
            self._touch(with_threads_of(self._settings, identity), moved, delivery)

    def _touch(self, repositories: Sequence[Repository], touch: Touch, delivery: Delivery) -> None:
        for repository in repositories:
            self._touches[repository.tenant, repository.name].append((touch, delivery.received_at))

    def _apply(self) -> None:
        for repository in self._settings.github_repositories:
            touches = self._touches.get((repository.tenant, repository.name))
            if touches:
                self._apply_to(repository, touches)

    def _apply_to(self, repository: Repository, touches: _Touches) -> None:
        mirror = GitHubMirror(self._settings, repository)
        applied = self._ask(repository, mirror, touches)
        self._report.threads_from_api += applied.from_api
        self._report.threads_from_payload += applied.from_payload
        if applied.unreachable:
            self._report.unreachable.append(f"{repository.name}: {applied.unreachable}")
        with mirror.open() as store:
            identity = mirror.identity(store)
            for kind, number in sorted(applied.threads):
                if thread := store.thread(kind, number):
                    item = item_of(mirror, store, identity, thread, day=self._now.date(), now=self._now)
                    self._items[repository.tenant, repository.name].append(item)

    def _ask(self, repository: Repository, mirror: GitHubMirror, touches: _Touches) -> ApplyReport:
        try:
            client = client_of(self._settings, repository, self._access)
        except ConfigError as error:
            applied = apply_touches(mirror, None, touches, now=self._now)
            applied.unreachable = str(error)
            return applied
        with client:
            return apply_touches(mirror, client, touches, now=self._now)
