"""A look at what waits in the inbox, to decide which run it needs. Nothing is taken, moved or rejected."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime

from rag_pipeline.settings import Settings
from rag_pipeline.sources.drops.inbox import DropFile, Inbox
from rag_pipeline.sources.drops.parse import Delivery, parse_drop
from rag_pipeline.sources.drops.routing import changes_files, with_files_of
from rag_pipeline.sources.drops.stage import batch_of, inbox_of
from rag_pipeline.sources.github.deliveries import interpret
from rag_pipeline.sources.github.resources import instant

_MAX_UNNAMED_BYTES = 4_000_000  # a push under another name than the receiver gives it


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """The drops that the next run will take."""

    ids: Sequence[str]
    """Of deliveries, or names of files; with size and time, so that a file dropped again is another drop."""
    waiting: int
    """All drops in the inbox."""
    until: datetime | None = None
    """When the newest of them was written; None: there are none."""
    pushed_since: date | None = None
    """The day of the oldest commit of pushes to indexed branches among them; None: nothing was pushed."""

    @property
    def key(self) -> str:
        """Identity of the batch."""
        return hashlib.blake2b("\n".join(sorted(self.ids)).encode(), digest_size=12).hexdigest()


def peek(settings: Settings, *, now: datetime) -> Batch:
    """The next batch."""
    inbox = inbox_of(settings)
    waiting = inbox.waiting(now=now, settle_s=settings.drops.settle_s)
    files = batch_of(waiting, settings)
    unusable = inbox.unusable(now=now, settle_s=settings.drops.settle_s)
    seen = [*files, *unusable]
    days = [day for file in files if (day := _pushed_since(inbox, file, settings, now=now))]
    return Batch(
        ids=[f"{_spelt(file.name)} {file.size} {file.modified_at.timestamp():.6f}" for file in seen],
        waiting=len(waiting) + len(unusable), until=max((file.modified_at for file in seen), default=None),
        pushed_since=max(min(days), settings.first_day) if days else None,
    )  # fmt: skip


def _spelt(name: str) -> str:
    return name.encode("utf-8", "backslashreplace").decode()


def _pushed_since(inbox: Inbox, file: DropFile, settings: Settings, *, now: datetime) -> date | None:
    is_named = file.name.startswith("push.")
    limit = settings.drops.max_drop_bytes if is_named else _MAX_UNNAMED_BYTES
    if not file.name.endswith(".json") or file.size > limit or not settings.git_repositories:
        return None
    try:
        content = inbox.read(file.name, max_bytes=limit)
        if not is_named and b'"push"' not in content:
            return None
        parsed = parse_drop(file.name, content, modified_at=file.modified_at, now=now, tenant=settings.tenant)
        if parsed is None or parsed.delivery is None or parsed.delivery.event != "push":
            return None
        return _first_day(parsed.delivery, settings)
    except Exception:
        # Whatever is wrong with it, the run will say so.
        return None


def _first_day(delivery: Delivery, settings: Settings) -> date | None:
    touch = interpret("push", delivery.payload, received_at=instant(delivery.received_at.timestamp()))
    if touch.repository is None:
        return None
    about = with_files_of(settings, touch.repository)
    return touch.first_day if any(changes_files(repository, touch, delivery) for repository in about) else None
