"""What waits in the inbox, read without taking it: into another lake, for who wants to know what it would cost."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime

from rag_pipeline.errors import ItemError
from rag_pipeline.lake.store import Lake, Part
from rag_pipeline.model import SourceItem
from rag_pipeline.settings import Settings
from rag_pipeline.sources.drops.parse import parse_drop
from rag_pipeline.sources.drops.stage import STAGE, batch_of, inbox_of, merged_items
from rag_pipeline.sources.raw_parts import PartsReport, write_part


@dataclass(slots=True, kw_only=True)
class Waiting:
    """The drops that the next run takes."""

    drops: int = 0
    deliveries: int = 0
    """Of these, GitHub deliveries: what they touch is not known before GitHub is asked."""
    unusable: int = 0


def preview_drops(settings: Settings, lake: Lake, into: Lake, *, now: datetime) -> Waiting:
    """Write what the waiting drops say, beside what `lake` holds of today, to `into`; the inbox stays as it is."""
    inbox, waiting = inbox_of(settings), Waiting()
    items: dict[tuple[str, str], list[SourceItem]] = defaultdict(list)
    for file in batch_of(inbox.waiting(now=now, settle_s=settings.drops.settle_s), settings):
        waiting.drops += 1
        try:
            content = inbox.read(file.name, max_bytes=settings.drops.max_drop_bytes)
            parsed = parse_drop(file.name, content, modified_at=file.modified_at, now=now, tenant=settings.tenant)
        except (ItemError, FileNotFoundError):
            waiting.unusable += 1
            continue
        if parsed is None:
            continue
        waiting.deliveries += parsed.delivery is not None
        for item in parsed.items:
            items[item.tenant, item.repository].append(item)
    for (tenant, repository), new in sorted(items.items()):
        part = Part(tenant=tenant, repository=repository, day=now.date())
        write_part(
            into, part, merged_items(lake, part, new), stages={STAGE: STAGE}, inputs="", report=PartsReport(),
            key=lambda _: STAGE,
        )  # fmt: skip
    return waiting
