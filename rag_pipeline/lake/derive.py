"""Deriving one stage's parts from another's: what is still fresh is left alone, what is stale is made again.

A part's fingerprint says what it was made from and by which code and settings; its content depends on nothing else.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

import pyarrow as pa

from rag_pipeline.lake.store import Lake, Part
from rag_pipeline.model import DayRange, Failure
from rag_pipeline.progress import Advance, Progress

_PARTIAL = "partial:"

Transform: TypeAlias = Callable[[Part, list[Failure], Advance], Iterator[pa.RecordBatch]]
"""Makes a part's batches; appends what it could not process to the list, and tells each row it has read."""


@dataclass(slots=True, kw_only=True)
class DeriveReport:
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
        PermanentError, StorageUnavailable: unless it is `planned`: an input is there and cannot be read.
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
) -> Report:
    """Bring a stage's parts of these days up to date with its inputs; parts without inputs any more are removed.

    Tells how many parts were looked at, then how many rows of those that are not up to date were read. Returns
    `report`, to which what was done is added.

    Raises:
        PermanentError, StorageUnavailable: an input is there and cannot be read. Nothing was removed because of it.
    """
    parts = parts_in(lake, [*inputs, stage], days)
    stale: dict[Part, str] = {}
    total = 0
    for done, part in enumerate(parts, start=1):
        expected, rows = _expected(lake, part, inputs=inputs, stage_fingerprint=stage_fingerprint)
        if expected is None:
            report.removed += lake.remove(stage, part)
        # A part with failures is made again by every run: that is how a quarantined item is retried.
        elif lake.fingerprint(stage, part) == expected:
            report.fresh += 1
            report.fingerprints[part] = expected
        else:
            stale[part] = expected
            total += rows
        report.parts += expected is not None
        progress(stage, done=done, total=len(parts), unit="parts")
    advance = Advance(progress, stage, total=total, unit="items")
    for part, expected in stale.items():
        _make(lake, part, report, stage=stage, schema=schema, expected=expected, transform=transform, advance=advance)
    return report


def _make(
    lake: Lake, part: Part, report: DeriveReport, *, stage: str, schema: pa.Schema, expected: str,
    transform: Transform, advance: Advance,
) -> None:  # fmt: skip
    failures: list[Failure] = []
    with lake.writer(stage, part, schema=schema) as writer:
        for batch in transform(part, failures, advance):
            writer.add(batch)
        lacking = [failure.source_id for failure in failures]
        writer.fingerprint = as_partial(expected, lacking=lacking) if failures else expected
    report.failures += failures
    report.fingerprints[part] = writer.fingerprint
    report.rows += writer.rows
    report.bytes += writer.bytes
    report.rows_by_day[part.day.isoformat()] += writer.rows
