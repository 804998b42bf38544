"""The parts of the lake that drops fill: what is new merged into them, and made again from the accepted files.

A part that is damaged, or gone though it was written, is made again from `inbox/accepted/<day>/`: each file keeps the
time at which it was written, so that the newest state of each item wins as it did when it was taken. What is known of
the accepted files beyond what they say lies in `RAG_HOME/inbox.json`, by hashes: which parts they gave, which names got
a number because another file had them, and who took them, since records that name no tenant belong to the taker's.
"""

from __future__ import annotations

import hashlib
import heapq
import json
import os
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from itertools import groupby
from pathlib import Path
from typing import Final

from rag_pipeline.bounded_json import parse_json
from rag_pipeline.errors import ItemError, PermanentError
from rag_pipeline.lake.schemas import items_of
from rag_pipeline.lake.store import Lake, Part
from rag_pipeline.model import DayRange, SourceItem, age_of
from rag_pipeline.settings import Settings
from rag_pipeline.sources.drops.inbox import Inbox
from rag_pipeline.sources.drops.parse import Delivery, parse_drop
from rag_pipeline.sources.drops.routing import with_threads_of
from rag_pipeline.sources.github.deliveries import interpret
from rag_pipeline.sources.github.mirror import GitHubMirror
from rag_pipeline.sources.github.resources import instant
from rag_pipeline.sources.github.stage import item_of
from rag_pipeline.sources.raw_parts import PartsReport, write_part

STAGE: Final = "raw_webhook_drops"
_NUMBERED: Final = re.compile(r"\.\d+(?=(?:\.[^.]*)?$)")
_THREADS: Final = ("issue", "pull_request", "discussion", "release")


@dataclass(slots=True, kw_only=True)
class AcceptedItems:
    """What the accepted files of a day say."""

    items: dict[tuple[str, str], list[SourceItem]] = field(default_factory=lambda: defaultdict(list))
    """By tenant and repository, in the order in which the files were written."""
    files: int = 0
    unusable: list[tuple[str, str]] = field(default_factory=list)
    """(file, reason) of what cannot be taken again."""


class IntakeRecord:
    """What is remembered of accepted files; may only be changed by the one who holds the inbox's lock."""

    def __init__(self, home: Path) -> None:
        self._path = home / "inbox.json"
        try:
            known = parse_json(self._path.read_bytes())
        except (FileNotFoundError, ValueError):
            known = {}
        self._known: dict[str, dict[str, list[str]]] = known if isinstance(known, dict) else {}

    def note_taker(self, day: date, tenant: str) -> None:
        """Records of this day that name no tenant belong to this one."""
        self._note("takers", day, _hash(tenant))

    def note_part(self, part: Part, *, is_there: bool) -> None:
        """The accepted files of its day gave this part; not any more, if it is not there."""
        self._note("parts", part.day, _hash(part.tenant, part.repository))
        if not is_there:
            self._known["parts"][part.day.isoformat()].remove(_hash(part.tenant, part.repository))

    def note_numbered(self, day: date, name: str) -> None:
        """An accepted file got a number into its name, because another file had that name."""
        self._note("numbered", day, _hash(name))

    def keep_parts(self, day: date, parts: Sequence[Part]) -> None:
        """Of this day, remember only these: the accepted files give no others any more."""
        self._known.setdefault("parts", {})[day.isoformat()] = [_hash(part.tenant, part.repository) for part in parts]

    def parts(self, day: date) -> int:
        """How many parts the accepted files of a day gave."""
        return len(self._of("parts", day))

    def is_taken_by(self, day: date, tenant: str) -> bool:
        """Whether all files of the day were taken for this tenant, as far as is known."""
        of_day = set(self._of("takers", day))
        known = of_day or {taker for takers in self._known.get("takers", {}).values() for taker in takers}
        return known <= {_hash(tenant)}

    def original_name(self, day: date, name: str) -> str:
        """The name that an accepted file was dropped under."""
        return _NUMBERED.sub("", name) if _hash(name) in self._of("numbered", day) else name

    def save(self) -> None:
        """Write what changed, whole or not at all."""
        content = json.dumps(self._known, sort_keys=True).encode()
        if self._path.exists() and self._path.read_bytes() == content:
            return
        temporary = self._path.with_name(f"{self._path.name}.{os.getpid()}.tmp")
        temporary.write_bytes(content)
        temporary.replace(self._path)

    def _note(self, kind: str, day: date, hash_: str) -> None:
        known = self._known.setdefault(kind, {}).setdefault(day.isoformat(), [])
        if hash_ not in known:
            known.append(hash_)

    def _of(self, kind: str, day: date) -> Sequence[str]:
        return self._known.get(kind, {}).get(day.isoformat(), ())


def inbox_of(settings: Settings) -> Inbox:
    """The inbox that the settings name."""
    return Inbox(settings.inbox_url)


def accepted_items(settings: Settings, day: date, *, now: datetime) -> AcceptedItems:
    """What the accepted files of a day say, and what the mirrors hold of the threads that its deliveries touched."""
    found, inbox, record = AcceptedItems(), inbox_of(settings), IntakeRecord(settings.home)
    then = min(now, datetime.combine(day, time.max, UTC))
    is_ours = record.is_taken_by(day, settings.tenant)
    files = [(record.original_name(day, file.name), file) for file in inbox.accepted(day)]
    for name, file in sorted(files, key=lambda one: (one[1].modified_at, one[0])):
        found.files += 1
        try:
            parsed = parse_drop(
                name, inbox.content(f"accepted/{day.isoformat()}/{file.name}"), modified_at=file.modified_at, now=then,
                tenant=settings.tenant if is_ours else "",
            )  # fmt: skip
            if parsed is None:
                raise ItemError("it is not whole")
            items = [*parsed.items, *(_threads_of(settings, parsed.delivery, day, now) if parsed.delivery else ())]
        except Exception as error:
            # Whatever one file does to the code that reads it must not stop the others.
            found.unusable.append((file.name, str(error) or type(error).__name__))
            continue
        for item in items:
            found.items[item.tenant, item.repository].append(item)
        if not all(item.tenant for item in items):
            found.unusable.append((file.name, "it names no tenant, and several took files on this day: drop it again"))
    found.items = defaultdict(list, {key: items for key, items in found.items.items() if key[0]})
    return found


def restore_lost_parts(
    settings: Settings, lake: Lake, days: DayRange, *, now: datetime, report: PartsReport
) -> dict[Part, int]:
    """Make parts of these days that are damaged, or gone though they were written, again from the accepted files.

    Returns how many items each of them holds now. A damaged part that no accepted file tells of stays as it is.
    """
    record = IntakeRecord(settings.home)
    damaged = [part for part in _parts(lake, days) if not _is_whole(lake, part)]
    lost = {part.day for part in damaged} | {
        day for day in inbox_of(settings).accepted_days() if day in days and _count(lake, day) < record.parts(day)
    }
    restored: dict[Part, int] = {}
    for day in sorted(lost):
        accepted = accepted_items(settings, day, now=now)
        for (tenant, repository), items in sorted(accepted.items.items()):
            part = Part(tenant=tenant, repository=repository, day=day)
            if part in damaged or not lake.exists(STAGE, part):
                merged = merged_items(lake, part, items, held=False)
                restored[part] = write_drops(settings, lake, part, merged, now=now, report=report)
        record = IntakeRecord(settings.home)
        record.keep_parts(day, _parts(lake, DayRange(first=day, last=day)))
        record.save()
    return restored


def restore_day(
    settings: Settings, lake: Lake, day: date, *, tenants: Sequence[str], now: datetime, report: PartsReport
) -> tuple[dict[Part, int], AcceptedItems]:
    """Take the accepted files of a day in again, next to what the lake holds of it; no tenant named: those of all."""
    accepted = accepted_items(settings, day, now=now)
    restored: dict[Part, int] = {}
    for (tenant, repository), items in sorted(accepted.items.items()):
        part = Part(tenant=tenant, repository=repository, day=day)
        if not tenants or tenant in tenants:
            merged = merged_items(lake, part, items, held=_is_whole(lake, part))
            restored[part] = write_drops(settings, lake, part, merged, now=now, report=report)
    return restored, accepted


def write_drops(
    settings: Settings, lake: Lake, part: Part, items: Iterator[SourceItem], *, now: datetime, report: PartsReport
) -> int:
    """Write a part without what is forgotten, and remember it; how many items it holds."""
    before = report.rows[STAGE]
    write_part(
        lake, part, items, stages={STAGE: STAGE}, inputs="", report=report, key=lambda _: STAGE,
        forgotten=settings.forgotten(now),
    )  # fmt: skip
    record = IntakeRecord(settings.home)
    record.note_part(part, is_there=lake.exists(STAGE, part))
    record.save()
    return report.rows[STAGE] - before


def merged_items(lake: Lake, part: Part, new: Sequence[SourceItem], *, held: bool = True) -> Iterator[SourceItem]:
    """What the day held already and what is new, the newest state of each; contents pass one batch at a time.

    In the order of their identities, so that the same items are the same part whatever order they came in. With
    `held=False` without what the day held, because it cannot be read.
    """
    known = (item for batch in lake.read(STAGE, part) for item in items_of(batch)) if held else iter(())
    both = heapq.merge(known, sorted(new, key=_identity), key=_identity)
    for _, states in groupby(both, key=_identity):
        yield sorted(states, key=age_of)[-1]


def _threads_of(settings: Settings, delivery: Delivery, day: date, now: datetime) -> Iterator[SourceItem]:
    touch = interpret(delivery.event, delivery.payload, received_at=instant(delivery.received_at.timestamp()))
    if touch.repository is None or touch.kind not in _THREADS:
        return
    touched = [(touch.repository, touch.kind, touch.number)]
    if touch.moved_to:
        touched.append((touch.moved_to[0], "issue", touch.moved_to[1]))
    for identity, kind, number in touched:
        for repository in with_threads_of(settings, identity):
            mirror = GitHubMirror(settings, repository)
            if not mirror.exists():
                continue
            with mirror.open() as store:
                if thread := store.thread(kind, number):
                    yield item_of(mirror, store, mirror.identity(store), thread, day=day, now=now)


def _parts(lake: Lake, days: DayRange) -> list[Part]:
    return [
        Part(tenant=tenant, repository=repository, day=day)
        for tenant, repository in lake.repositories(STAGE)
        for day in lake.days(STAGE, tenant=tenant, repository=repository)
        if day in days
    ]


def _count(lake: Lake, day: date) -> int:
    return len(_parts(lake, DayRange(first=day, last=day)))


def _is_whole(lake: Lake, part: Part) -> bool:
    """Whether a part can be read to its end; one that is not there can."""
    if not lake.exists(STAGE, part):
        return True
    try:
        for _ in lake.read(STAGE, part):
            pass
    except PermanentError:
        return False
    return lake.fingerprint(STAGE, part) is not None


def _identity(item: SourceItem) -> tuple[str, str]:
    return item.source_type, item.source_id


def _hash(*names: str) -> str:
    return hashlib.blake2b("\x00".join(names).encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
