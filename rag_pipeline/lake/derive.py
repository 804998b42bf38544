"""Deriving one stage's parts from another's: what is still fresh is left alone, what is stale is made again.

A part's fingerprint says what it was made from and by which code and settings; its content depends on nothing else.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import groupby
from typing import TypeAlias, TypeVar

import pyarrow as pa

from rag_pipeline.errors import DamagedPart, PartError
from rag_pipeline.lake.store import Lake, Part, PartWriter
from rag_pipeline.model import DayRange, Failure
from rag_pipeline.progress import Advance, Progress

_PARTIAL = "partial:"

Transform: TypeAlias = Callable[[Part, list[Failure], Advance], Iterator[pa.RecordBatch]]
"""Makes a part's batches; appends what it could not process to the list, and tells each row it has read."""

Source: TypeAlias = tuple[str, str]
"""Tenant and repository."""

TooMany: TypeAlias = Callable[[Sequence[Failure], int], bool]
"""Whether so many failures, of so many items of one source, stop that source."""


@dataclass(slots=True, kw_only=True)
class Damage:
    """What could not be read of the lake while the rest went on."""

    left_aside: dict[Part, str] = field(default_factory=dict)
    """Parts that stay as they were, because a file of theirs cannot be read or replaced, and why."""


@dataclass(slots=True, kw_only=True)
class DeriveReport(Damage):
    """What a stage did with the parts of a run."""

    parts: int = 0
    """Parts with data in the run's days."""
    fresh: int = 0
    """Of these, left alone because nothing they are made from changed."""
    rows: int = 0
    bytes: int = 0
    removed: int = 0
    rows_by_day: Counter[str] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)
    fingerprints: dict[Part, str] = field(default_factory=dict)
    """What each part with data holds now, changed or not."""
    items: Counter[Source] = field(default_factory=Counter)
    """How many items each source has in the run's days, whether they were looked at or not."""
    copied: int = 0
    """Rows that were taken over from the part as it was; not among `rows`."""

    def count_copied(self, rows: int) -> None:
        """Rows that were taken over."""
        self.copied += rows


Report = TypeVar("Report", bound=DeriveReport)


def combine(*fingerprints: str) -> str:
    """One fingerprint of several, in order."""
    return hashlib.blake2b("\x1f".join(fingerprints).encode(), digest_size=16).hexdigest()


def expected_fingerprint(lake: Lake, part: Part, *, inputs: Sequence[str], stage_fingerprint: str) -> str | None:
    """What a part's fingerprint is when it is up to date; None when none of its inputs exists.

    For plans: an input that cannot be read counts as absent, because a run makes it again first.
    """
    return _expected(lake, part, inputs=inputs, stage_fingerprint=stage_fingerprint, planned=True)[0]


def _expected(
    lake: Lake, part: Part, *, inputs: Sequence[str], stage_fingerprint: str, planned: bool = False
) -> tuple[str | None, int]:
    """`expected_fingerprint`, and how many rows the inputs hold.

    Raises:
        PartError: unless it is `planned`: an input is there and cannot be read.
    """
    tags = {stage: found for stage in sorted(inputs) if (found := lake.tags(stage, part, owned=planned))}
    known = {stage: value for stage, found in tags.items() if (value := found.get("fingerprint"))}
    if not known:
        return None, 0
    rows = sum(int(tags[stage]["rows"]) for stage in known)
    return combine(stage_fingerprint, *(f"{stage}={value}" for stage, value in known.items())), rows


def is_fresh(fingerprint: str | None, expected: str | None) -> bool:
    """Whether a part was made from what is there now; one with quarantined items counts, its failures are on record."""
    return fingerprint is not None and fingerprint.rpartition(":")[2] == expected


def as_partial(fingerprint: str, *, lacking: Iterable[object] = ()) -> str:
    """The fingerprint of a part that lacks what was quarantined when it was made: the next run makes it again.

    It says what is `lacking`, so that the stages after this one see when some of it is no longer.
    """
    lost = sorted({str(one) for one in lacking})
    return f"{_PARTIAL}{combine(*lost)[:16]}:{fingerprint}" if lost else f"{_PARTIAL}{fingerprint}"


def again(old: str | None, fingerprint: str) -> str:
    """The fingerprint of a part that lacks what it lacked under its old one."""
    return f"{(old or '').rpartition(':')[0]}:{fingerprint}".removeprefix(":")


def is_partial(fingerprint: str | None) -> bool:
    """Whether a part lacks items that were quarantined when it was made."""
    return (fingerprint or "").startswith(_PARTIAL)


def fingerprints_of(lake: Lake, stage: str, days: DayRange) -> dict[Part, str]:
    """What a stage's parts of these days hold, by their own word."""
    found = {part: lake.fingerprint(stage, part) for part in parts_in(lake, [stage], days)}
    return {part: fingerprint for part, fingerprint in found.items() if fingerprint is not None}


def parts_in(lake: Lake, stages: Sequence[str], days: DayRange) -> list[Part]:
    """Every part that any of the stages holds in these days, oldest first."""
    found = {
        Part(tenant=tenant, repository=repository, day=day)
        for stage in stages
        for tenant, repository in lake.repositories(stage)
        for day in lake.days(stage, tenant=tenant, repository=repository)
        if day in days
    }
    return sorted(found, key=lambda part: (part.tenant, part.repository, part.day))


def derive(
    lake: Lake,
    days: DayRange,
    *,
    stage: str,
    inputs: Sequence[str],
    schema: pa.Schema,
    stage_fingerprint: str,
    transform: Transform,
    progress: Progress,
    report: Report,
    too_many: TooMany = lambda failures, items: False,
    tags_of: Callable[[Part], Mapping[str, str]] = lambda part: {},
) -> Report:
    """Bring a stage's parts of these days up to date with its inputs; parts without inputs any more are removed.

    A part of which a file cannot be read or replaced is left aside: it stays as it was, and the others go on. Of a
    source with `too_many` failures, the parts that hold them stay as they were. `tags_of` gives what else is noted
    with a part.

    Tells how many parts were looked at, then how many rows of those that are not up to date were read. Returns
    `report`, to which what was done is added.
    """
    parts = parts_in(lake, [*inputs, stage], days)
    stale: dict[Part, str] = {}
    total = 0
    for done, part in enumerate(parts, start=1):
        progress(stage, done=done, total=len(parts), unit="parts")
        try:
            expected, rows = _expected(lake, part, inputs=inputs, stage_fingerprint=stage_fingerprint)
            if expected is None:
                report.removed += lake.remove(stage, part)
                continue
        except PartError as error:
            leave_aside(lake, part, error, report)
            continue
        report.parts += 1
        report.items[part.tenant, part.repository] += rows
        # A part with failures is made again by every run: that is how a quarantined item is retried.
        if lake.fingerprint(stage, part) == expected:
            report.fresh += 1
            report.fingerprints[part] = expected
        else:
            stale[part] = expected
            total += rows
    advance = Advance(progress, stage, total=total, unit="items")
    making = _Making(
        lake, report, stage=stage, schema=schema, transform=transform, advance=advance, tags_of=tags_of
    )  # fmt: skip
    for source, group in groupby(stale, key=lambda part: (part.tenant, part.repository)):
        with ExitStack() as held:
            writers = {part: writer for part in group if (writer := making.make(part, stale[part], held))}
            failures = [failure for part in writers for failure in making.failures[part]]
            is_stopped = bool(failures) and too_many(failures, report.items[source])
            for writer in writers.values():
                writer.discarded = is_stopped
        for part, writer in writers.items():
            making.count(part, writer)
    return report


def leave_aside(lake: Lake, part: Part, error: PartError, report: Damage) -> None:
    """Note that a part stays as it was; what is damaged is given up, so that its owner makes it again."""
    assert isinstance(error.part, Part)
    if isinstance(error, DamagedPart):
        lake.give_up(error.stage, error.part)
    report.left_aside[part] = str(error)


class _Making:
    """The parts of one stage while they are made."""

    def __init__(
        self, lake: Lake, report: DeriveReport, *, stage: str, schema: pa.Schema, transform: Transform,
        advance: Advance, tags_of: Callable[[Part], Mapping[str, str]],
    ) -> None:  # fmt: skip
        self._lake = lake
        self._report = report
        self._stage = stage
        self._schema = schema
        self._transform = transform
        self._advance = advance
        self._tags_of = tags_of
        self.failures: dict[Part, list[Failure]] = {}
        self._copied: dict[Part, int] = {}

    def make(self, part: Part, expected: str, held: ExitStack) -> PartWriter | None:
        """Make a part; one with failures takes the place of the old one when `held` ends.

        None: it was left aside.
        """
        try:
            try:
                return self._make(part, expected, held)
            except DamagedPart as error:
                # Its own former state, from which unchanged rows are taken: without it, all are made.
                if error.stage != self._stage or not self._lake.give_up(self._stage, part):
                    raise
                return self._make(part, expected, held)
        except PartError as error:
            leave_aside(self._lake, part, error, self._report)
            return None

    def _make(self, part: Part, expected: str, held: ExitStack) -> PartWriter:
        failures: list[Failure] = []
        before = self._report.copied
        with ExitStack() as own:
            writer = own.enter_context(self._lake.writer(self._stage, part, schema=self._schema))
            for batch in self._transform(part, failures, self._advance):
                writer.add(batch)
            lacking = [failure.source_id for failure in failures]
            writer.fingerprint = as_partial(expected, lacking=lacking) if failures else expected
            writer.tags = dict(self._tags_of(part))
            if failures:
                # Whether it may take the old one's place is known when all of its source are made.
                writer.close()
                held.push(own.pop_all())
        self.failures[part] = failures
        self._copied[part] = self._report.copied - before
        return writer

    def count(self, part: Part, writer: PartWriter) -> None:
        """Note what became of a part that was made."""
        report = self._report
        report.failures += self.failures[part]
        if writer.discarded and self.failures[part]:
            if fingerprint := self._lake.fingerprint(self._stage, part):
                report.fingerprints[part] = fingerprint
            return
        report.fingerprints[part] = writer.fingerprint
        report.rows += writer.rows - self._copied[part]
        report.bytes += writer.bytes
        report.rows_by_day[part.day.isoformat()] += writer.rows
