"""Source items to the lake's raw parts, streamed: one Parquet file per stage, repository and day."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import date

from rag_pipeline.errors import RagPipelineError
from rag_pipeline.forgotten import NOTHING, Forgotten
from rag_pipeline.lake.schemas import ITEMS, dump_metadata, to_batches
from rag_pipeline.lake.store import Lake, Part, PartWriter
from rag_pipeline.model import DayRange, Failure, SourceItem

_BATCH_ROWS = 512
_BATCH_BYTES = 8 << 20
_SHOWN = 10  # items that a report names, for a preview


@dataclass(slots=True, kw_only=True)
class PartsReport:
    """What a run's days hold, by source type, over all repositories."""

    fresh_parts: int = 0
    written_parts: int = 0
    removed_parts: int = 0
    bytes: int = 0
    rows_by_day: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    items: Counter[str] = field(default_factory=Counter)
    """Living items written, by source type."""
    tombstones: Counter[str] = field(default_factory=Counter)
    preview: dict[str, list[SourceItem]] = field(default_factory=lambda: defaultdict(list))
    fingerprints: dict[str, dict[Part, str]] = field(default_factory=lambda: defaultdict(dict))
    """What each part holds now, written or left alone, by source type."""
    failures: list[Failure] = field(default_factory=list)
    unread: list[RagPipelineError] = field(default_factory=list)
    """Why sources could not be read, one for each of them; they are among the failures, too."""

    @property
    def rows(self) -> Counter[str]:
        """Rows written, by source type."""
        return Counter({kind: by_day.total() for kind, by_day in self.rows_by_day.items()})

    def add(self, other: PartsReport) -> None:
        """Count what somebody else did beside this, too."""
        self.fresh_parts += other.fresh_parts
        self.written_parts += other.written_parts
        self.removed_parts += other.removed_parts
        self.bytes += other.bytes
        self.items += other.items
        self.tombstones += other.tombstones
        self.failures += other.failures
        self.unread += other.unread
        for kind, by_day in other.rows_by_day.items():
            self.rows_by_day[kind] += by_day
        for kind, items in other.preview.items():
            self.preview[kind] = [*self.preview[kind], *items][:_SHOWN]
        for kind, found in other.fingerprints.items():
            self.fingerprints[kind] |= found

    def note(self, key: str, item: SourceItem) -> None:
        """Count an item that was written."""
        (self.tombstones if item.deleted else self.items)[key] += 1
        if len(self.preview[key]) < _SHOWN:
            self.preview[key].append(item)


def write_part(
    lake: Lake,
    part: Part,
    items: Iterable[SourceItem],
    *,
    stages: Mapping[str, str],
    inputs: str | Callable[[], str],
    report: PartsReport,
    key: Callable[[SourceItem], str] = lambda item: item.source_type,
    forgotten: Forgotten = NOTHING,
) -> None:
    """Split a day's items over the files of `stages`, by `key`; `inputs` notes what they were read from.

    A function in its place is asked when all items have been taken. What is `forgotten` is left out. A stage that gets
    no item loses its part.
    """
    digests = {kind: hashlib.blake2b(digest_size=16) for kind in stages}
    with ExitStack() as stack:
        writers = {k: stack.enter_context(lake.writer(stage, part, schema=ITEMS)) for k, stage in stages.items()}
        pending: dict[str, list[SourceItem]] = {kind: [] for kind in stages}
        held = 0
        for item in forgotten.kept(items):
            kind = key(item)
            pending[kind].append(item)
            held += len(item.content)
            digests[kind].update(digest_of(item))
            report.note(kind, item)
            if held >= _BATCH_BYTES or len(pending[kind]) >= _BATCH_ROWS:
                _flush(writers, pending)
                held = 0
        _flush(writers, pending)
        for kind, writer in writers.items():
            writer.fingerprint = digests[kind].hexdigest()
            writer.tags = {"inputs": inputs() if callable(inputs) else inputs}
    for kind, writer in writers.items():
        report.bytes += writer.bytes
        report.written_parts += writer.rows > 0
        if writer.rows:
            report.fingerprints[kind][part] = writer.fingerprint
            report.rows_by_day[kind][part.day.isoformat()] += writer.rows


def is_current(
    lake: Lake, part: Part, *, stages: Mapping[str, str], kinds: Iterable[str], inputs: str,
    report: PartsReport | None = None,
) -> bool:  # fmt: skip
    """Whether a day's files were read from the same inputs, and no stage holds a file of a kind it should not.

    If they were, they are counted in `report`, with what they hold.
    """
    tags = {kind: lake.tags(stage, part) for kind, stage in stages.items()}
    wanted = set(kinds)
    if any((tags[kind] or {}).get("inputs") != inputs for kind in wanted):
        return False
    if any(tags[kind] for kind in set(stages) - wanted):
        return False
    if report is not None:
        report.fresh_parts += len(wanted)
        for kind in wanted:
            report.fingerprints[kind][part] = (tags[kind] or {})["fingerprint"]
    return True


def remove_stale(
    lake: Lake,
    days: DayRange,
    *,
    tenant: str,
    repository: str,
    kept: Mapping[str, Collection[date]],
    report: PartsReport,
) -> None:
    """Remove a repository's parts of days on which, seen over these days, nothing changed last; `kept` is by stage."""
    for stage, alive in kept.items():
        for day in lake.days(stage, tenant=tenant, repository=repository):
            if day in days and day not in alive:
                report.removed_parts += lake.remove(stage, Part(tenant=tenant, repository=repository, day=day))


def _flush(writers: Mapping[str, PartWriter], pending: dict[str, list[SourceItem]]) -> None:
    for kind, items in pending.items():
        for batch in to_batches(items, ITEMS):
            writers[kind].add(batch)
        items.clear()


def digest_of(item: SourceItem) -> bytes:
    """What of an item the later stages can see; when it was observed is not part of it."""
    shown = [
        item.source_id,
        item.source_updated_at.isoformat(),
        str(item.deleted),
        item.url or "",
        dump_metadata(item.metadata),
    ]
    if item.as_of is not None or item.scope is not None:
        shown += [str(item.as_of), str(item.scope), str(item.title)]
    return "\x1f".join(shown).encode("utf-8", "surrogatepass") + hashlib.blake2b(item.content, digest_size=16).digest()
