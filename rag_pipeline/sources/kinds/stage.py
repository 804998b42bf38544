"""The raw stage of every kind: listings to one Parquet file per block and day.

A listing shows only the present, so each item is on the day of its last change, as it stands now, and what is no longer
listed is a tombstone on the day that was noticed. Only days with a change are read.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from functools import partial
from typing import Any

from rag_pipeline.errors import RagPipelineError, StorageUnavailable
from rag_pipeline.lake.derive import as_partial, combine
from rag_pipeline.lake.store import Lake, Part
from rag_pipeline.model import DayRange, Failure, SourceItem
from rag_pipeline.progress import Progress
from rag_pipeline.settings import Settings, fingerprint
from rag_pipeline.sources.kinds.memory import Known, Memory, Observed, memory_of
from rag_pipeline.sources.kinds.protocol import Listed, Outside, SourceBlock, SourceKind
from rag_pipeline.sources.kinds.registry import blocks_of, stage_of
from rag_pipeline.sources.raw_parts import PartsReport, is_current, remove_stale, write_part


@dataclass(slots=True, kw_only=True)
class BlockReport:
    """What one block gave."""

    block: SourceBlock
    observed: Observed = field(default_factory=Observed)
    items: int = 0
    """Known items of these days."""


@dataclass(slots=True, kw_only=True)
class KindReport(PartsReport):
    """What the run's days hold of one kind, over all its blocks; what could not be read is a failure."""

    blocks: list[BlockReport] = field(default_factory=list)


def observe(
    kind: SourceKind[Any], block: SourceBlock, settings: Settings, *, outside: Outside, now: datetime
) -> Observed:  # fmt: skip
    """List a block, and remember what changed.

    Raises:
        RagPipelineError: it cannot be listed.
    """
    with memory_of(settings, kind.name, block) as memory, memory.listing():
        try:
            listed = list(kind.list(block, outside))
        except RagPipelineError:
            raise
        except Exception as error:
            # Whatever a kind stumbles over must not stop the other sources.
            raise RagPipelineError(f"{block.name} cannot be listed: {type(error).__name__}: {error}") from error
        return memory.observe(listed, block=block, now=now)


def withheld_removal(block: SourceBlock, observed: Observed) -> str:
    """What is said of a listing that is not believed."""
    return (
        f"{observed.withheld:,} known items are no longer listed, which is more than max_removed_items "
        f"({block.max_removed_items}) and max_removed_share ({block.max_removed_share}): they are kept; "
        "repair the source, or set max_removed_share = 1 to let them go"
    )


def read_kind(
    kind: SourceKind[Any], settings: Settings, lake: Lake, days: DayRange, *, outside: Outside,
    clock: Callable[[], datetime], progress: Progress,
) -> KindReport:  # fmt: skip
    """List every block of a kind and bring its raw parts of these days up to date.

    Neither a block that cannot be listed nor an item that cannot be read stops the others; both are in the report's
    failures.

    Raises:
        ConfigError: a block holds what the kind does not know.
    """
    report = KindReport()
    blocks = blocks_of(kind, settings)
    for done, block in enumerate(blocks, start=1):
        found = BlockReport(block=block)
        report.blocks.append(found)
        now = clock()
        errors: list[RagPipelineError] = []
        try:
            found.observed = observe(kind, block, settings, outside=outside, now=now)
            if found.observed.withheld:
                reason = withheld_removal(block, found.observed)
                report.failures.append(_failure(kind, block, reason, day=days.last, now=now))
        except RagPipelineError as error:
            errors.append(error)
        if not any(isinstance(error, StorageUnavailable) for error in errors):
            # What was listed before can be read, even if the source cannot be listed now.
            try:
                with memory_of(settings, kind.name, block) as memory:
                    _write_days(_Reading(kind, block, outside, memory, report, now), settings, lake, days, found)
            except RagPipelineError as error:
                errors.append(error)
        report.unread += errors[:1]
        report.failures += [_failure(kind, block, str(error), day=days.last, now=now) for error in errors[:1]]
        progress(stage_of(kind), done=done, total=len(blocks), unit="sources")
    return report


def days_of_items(
    items: Sequence[Known], *, first_day: date, today: date
) -> dict[date, list[Known]]:  # fmt: skip
    """Items by partition: what is older than the first one is in that one; no clock ahead of ours leads past today."""
    found: dict[date, list[Known]] = defaultdict(list)
    for item in items:
        found[max(min(item.changed_at.date(), today), first_day)].append(item)
    return found


def day_inputs(kind: SourceKind[Any], block: SourceBlock, items: Sequence[Known]) -> str:
    """Changes when reading a day's items would give other ones."""
    states = [f"{item.source_id} {item.version} {item.as_of.isoformat()} {item.deleted}" for item in items]
    return combine(source_fingerprint(kind, block), *states)


def source_fingerprint(kind: SourceKind[Any], block: SourceBlock) -> str:
    """Changes when the same listing could give other items."""
    chosen = block.model_dump(mode="json", exclude={"max_removed_items", "max_removed_share"})
    return combine(kind.name, kind.version, fingerprint(chosen))


def first_day_of(block: SourceBlock, settings: Settings) -> date:
    """The first daily partition of a block (UTC)."""
    return max(block.start_date or settings.start_date or settings.first_day, settings.first_day)


@dataclass(frozen=True, slots=True)
class _Reading:
    """One block while it is read."""

    kind: SourceKind[Any]
    block: SourceBlock
    outside: Outside
    memory: Memory
    report: KindReport
    now: datetime

    def items(self, known: Sequence[Known], day: date) -> Iterator[SourceItem]:
        """A day's items; those that cannot be read are failures."""
        for item in known:
            try:
                made = self._item(item, day)
            except Exception as error:
                reason = str(error) if isinstance(error, RagPipelineError) else f"{type(error).__name__}: {error}"
                self.memory.note_reading(item.source_id, failed=True)
                self.report.failures.append(
                    _failure(self.kind, self.block, reason, day=day, now=item.as_of, source_id=self._id(item))
                )
                continue
            if item.failed:
                self.memory.note_reading(item.source_id, failed=False)
            yield made

    def _item(self, known: Known, day: date) -> SourceItem:
        gone = SourceItem(
            tenant=self.block.tenant, source_type=self.kind.name, source_id=self._id(known),
            repository=self.block.name, day=day, source_updated_at=known.changed_at, observed_at=self.now,
            as_of=known.as_of, deleted=True,
        )  # fmt: skip
        if known.deleted:
            return gone
        listed = Listed(source_id=known.source_id, version=known.version, changed_at=known.changed_at)
        read = self.kind.read(self.block, self.outside, listed)
        metadata = dict(read.metadata) if read.path else {"content_type": read.content_type, **read.metadata}
        return replace(
            gone, deleted=False, content=read.content, title=read.title, path=read.path, language=read.language,
            url=read.url, anchor=read.anchor, scope=read.scope, metadata=metadata,
        )  # fmt: skip

    def _id(self, known: Known) -> str:
        return f"{self.block.name}:{known.source_id}"


def _write_days(
    reading: _Reading, settings: Settings, lake: Lake, days: DayRange, found: BlockReport
) -> None:  # fmt: skip
    kind, block, report = reading.kind, reading.block, reading.report
    forgotten = settings.forgotten(reading.now)
    stages = {kind.name: stage_of(kind)}
    by_day = days_of_items(
        reading.memory.items(), first_day=first_day_of(block, settings), today=reading.now.date()
    )  # fmt: skip
    for day, known in sorted((day, known) for day, known in by_day.items() if day in days):
        found.items += len(known)
        part = Part(tenant=block.tenant, repository=block.name, day=day)
        inputs = day_inputs(kind, block, known)
        if is_current(lake, part, stages=stages, kinds=[kind.name], inputs=inputs, report=report):
            continue
        noted = partial(_noted, inputs, report.failures, before=len(report.failures))
        write_part(
            lake, part, reading.items(known, day), stages=stages, inputs=noted, report=report, forgotten=forgotten,
        )  # fmt: skip
    remove_stale(
        lake, days, tenant=block.tenant, repository=block.name, kept={stage_of(kind): set(by_day)}, report=report
    )


def _noted(inputs: str, failures: Sequence[Failure], *, before: int) -> str:
    """What a part was read from; one that lacks what failed is read again by the next run."""
    return as_partial(inputs) if len(failures) > before else inputs


def _failure(
    kind: SourceKind[Any], block: SourceBlock, reason: str, *, day: date, now: datetime, source_id: str = ""
) -> Failure:  # fmt: skip
    return Failure(
        tenant=block.tenant, source_type=kind.name if source_id else "repository", source_id=source_id or block.name,
        stage=stage_of(kind), repository=block.name, day=day, source_updated_at=now, reason=reason[:500],
    )  # fmt: skip
