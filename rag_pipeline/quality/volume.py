"""Whether a source suddenly gives much less than it used to, or takes much away: both look like health to others.

Judged is the last day of a run that is over, against days before it of the same kind: working days with working days.
A repository that is quiet now and then gives no alarm, because there was a comparable day with as little.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import date, timedelta
from typing import Final, TypeAlias

from rag_pipeline.lake.derive import combine
from rag_pipeline.lake.store import Lake, Part, whole_batches
from rag_pipeline.model import DayRange
from rag_pipeline.quality.expectations import Outcome, Rule, validate
from rag_pipeline.quality.parts import Checked, about, at_most
from rag_pipeline.settings.quality import Quality

_VERSION: Final = "volume/1"
_HISTORY_DAYS: Final = 42
_MOST_COMPARABLE: Final = 20
_SATURDAY: Final = 5

Living: TypeAlias = Callable[[str, str], int]
"""How many documents the index shows of a tenant's repository."""


def volume_rules(settings: Quality) -> tuple[Rule, ...]:
    """The rules, with their thresholds."""
    return (
        at_most(
            "drop_share", settings.max_drop_share, name="no_sudden_drop", check="volume", severity="warn",
            expects=(
                f"the last day that is over has not at least {settings.max_drop_share:.0%} fewer items than the median "
                f"of comparable days before it (at least {settings.min_history}), and fewer than any of them"
            ),
            remedy=(
                "look whether the source could be read as a whole (credentials, branch, include and exclude); raise "
                "quality.max_drop_share or quality.min_history to accept it"
            ),
        ),
        at_most(
            "deleted_share", settings.max_deleted_share, name="no_mass_delete", check="volume", severity="warn",
            expects=(
                f"a day does not delete more than {settings.max_deleted_items:,} items and "
                f"{settings.max_deleted_share:.0%} of what the index shows of the repository"
            ),
            remedy=(
                "look whether so much was deleted on purpose (branch, include and exclude, a damaged listing); raise "
                "quality.max_deleted_items or quality.max_deleted_share to accept it"
            ),
        ),
    )  # fmt: skip


def check_volume(
    lake: Lake, stage: str, days: DayRange, *, today: date, settings: Quality, rules: Sequence[Rule],
    known: Mapping[Part, str], living: Living,
) -> Checked:  # fmt: skip
    """Judge the last day of a run that is over, for each repository of a raw stage.

    `rules` are those of `volume_rules`; `known` and what is returned as
    passed are fingerprints of that day and of those it is compared with.
    """
    started = time.perf_counter()
    day = min(days.last, today - timedelta(days=1))
    nothing = Outcome(findings=(), rows=0, seconds=0.0)
    if day not in days:
        return Checked(outcome=nothing, parts=0, unchanged=0, passed={}, left_aside={})
    todo: dict[Part, str] = {}
    unchanged = 0
    for tenant, repository in lake.repositories(stage):
        part = Part(tenant=tenant, repository=repository, day=day)
        fingerprint = _fingerprint(lake, stage, part, rules, settings)
        if known.get(part) == fingerprint:
            unchanged += 1
        else:
            todo[part] = fingerprint
    if not todo:
        return Checked(outcome=nothing, parts=0, unchanged=unchanged, passed={}, left_aside={})
    import pandas as pd

    rows = [_figures(lake, stage, part, settings=settings, living=living) for part in todo]
    outcome = validate(pd.DataFrame(rows), rules, rows=len(rows))
    offending = set().union(*(finding.offending or () for finding in outcome.failed))
    return Checked(
        outcome=Outcome(findings=outcome.findings, rows=outcome.rows, seconds=time.perf_counter() - started),
        parts=len(todo), unchanged=unchanged,
        passed={part: mark for number, (part, mark) in enumerate(todo.items()) if number not in offending},
        left_aside={},
    )  # fmt: skip


def comparable_days(day: date, known: Sequence[date]) -> list[date]:
    """Days like this one before it, newest first: since the source's second day, the first holds all that is older."""
    if len(known) < 2:
        return []
    since = max(sorted(known)[1], day - timedelta(days=_HISTORY_DAYS))
    before = (day - timedelta(days=n) for n in range(1, _HISTORY_DAYS + 1))
    alike = [other for other in before if other >= since and _is_weekend(other) == _is_weekend(day)]
    return alike[:_MOST_COMPARABLE]


def _is_weekend(day: date) -> bool:
    return day.weekday() >= _SATURDAY


def _fingerprint(lake: Lake, stage: str, part: Part, rules: Sequence[Rule], settings: Quality) -> str:
    """Of the day and of which days there are before it: their rows are read only when this is new."""
    there = lake.days(stage, tenant=part.tenant, repository=part.repository)
    history = sorted(day for day in there if part.day - timedelta(days=_HISTORY_DAYS) <= day < part.day)
    thresholds = [str(rule.arguments) for rule in rules]
    limits = f"{settings.min_history} {settings.max_deleted_items}"
    return combine(_VERSION, limits, *thresholds, str(lake.fingerprint(stage, part)), *map(str, history))


def _figures(lake: Lake, stage: str, part: Part, *, settings: Quality, living: Living) -> dict[str, object]:
    there = lake.days(stage, tenant=part.tenant, repository=part.repository)
    present = set(there)
    history = [_rows(lake, stage, part, day) if day in present else 0 for day in comparable_days(part.day, there)]
    rows = _rows(lake, stage, part, part.day) if part.day in present else 0
    gone = _deleted(lake, stage, part) if part.day in present else 0
    # Tombstones of what never was in the index (generated, vendored files) take nothing away.
    shown = living(part.tenant, part.repository) if gone > settings.max_deleted_items else 0
    figures: dict[str, object] = {
        "items": rows,
        "comparable_days": len(history),
        "usual_items": float(statistics.median(history)) if history else None,
        "fewest_items": min(history, default=None),
        "drop_share": _drop(rows, history, least=settings.min_history),
        "deleted": gone,
        "deleted_share": min(1.0, gone / shown) if shown else 0.0,
    }  # fmt: skip
    return about(part) | figures


def _drop(rows: int, history: Sequence[int], *, least: int) -> float | None:
    """How much less than usual; None where there is too little to compare with, 0 where it was so little before."""
    if len(history) < least:
        return None
    usual = statistics.median(history)
    return 1 - rows / usual if usual and rows < min(history) else 0.0


def _rows(lake: Lake, stage: str, part: Part, day: date) -> int:
    tags = lake.tags(stage, Part(tenant=part.tenant, repository=part.repository, day=day))
    return int(tags["rows"]) if tags else 0


def _deleted(lake: Lake, stage: str, part: Part) -> int:
    """Tombstones less living items: what was only moved is there under its new name."""
    gone = 0
    for batch in whole_batches(lake.read(stage, part, columns=["deleted"])):
        tombstones = sum(batch.column("deleted").to_pylist())
        gone += tombstones - (batch.num_rows - tombstones)
    return max(gone, 0)
