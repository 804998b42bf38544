"""A look at what waits in the inbox, to decide which run it needs. Nothing is taken, moved or rejected."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime

from rag_pipeline.errors import ItemError
from rag_pipeline.settings import Settings
from rag_pipeline.sources.drops.inbox import DropFile, Inbox
from rag_pipeline.sources.drops.parse import parse_drop
from rag_pipeline.sources.drops.stage import inbox_of
from rag_pipeline.sources.github.deliveries import interpret
from rag_pipeline.sources.github.resources import instant

_MAX_PUSH_BYTES = 4_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """The drops that the next run will take."""

    ids: Sequence[str]
    """Of deliveries, or names of files; with size and time, so that a file dropped again is another drop."""
    waiting: int
    """All drops in the inbox."""
    pushed_since: date | None = None
    """The day of the oldest commit of pushes among them; None: nothing was pushed."""

    @property
    def key(self) -> str:
        """Identity of the batch."""
        return hashlib.blake2b("\n".join(sorted(self.ids)).encode(), digest_size=12).hexdigest()


def peek(settings: Settings, *, now: datetime) -> Batch:
    """The next batch."""
    inbox = inbox_of(settings)
    waiting = inbox.waiting(now=now, settle_s=settings.drops.settle_s)
    files = waiting[: settings.drops.max_batch]
    days = [day for file in files if (day := _pushed_since(inbox, file, settings, now=now))]
    return Batch(
        ids=[f"{file.name} {file.size} {file.modified_at.timestamp():.6f}" for file in files], waiting=len(waiting),
        pushed_since=max(min(days), settings.first_day) if days else None,
    )  # fmt: skip


def _pushed_since(inbox: Inbox, file: DropFile, settings: Settings, *, now: datetime) -> date | None:
    if not file.name.endswith(".json") or file.size > _MAX_PUSH_BYTES or not settings.git_repositories:
        return None
    try:
        content = inbox.read(file.name, max_bytes=_MAX_PUSH_BYTES)
        if not file.name.startswith("push.") and b'"push"' not in content:
            return None
        parsed = parse_drop(file.name, content, modified_at=file.modified_at, now=now, tenant=settings.tenant)
        if parsed is None or parsed.delivery is None or parsed.delivery.event != "push":
            return None
        received_at = instant(parsed.delivery.received_at.timestamp())
        return interpret("push", parsed.delivery.payload, received_at=received_at).first_day
    except (ItemError, OSError):
        return None  # The run will say what is wrong with it.
