"""Days as the ranges that runs cover: few of them, since a run costs more than some days on which nothing happened."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, timedelta
from itertools import pairwise
from typing import Final

from rag_pipeline.model import DayRange

_SMALL_HOLE: Final = timedelta(days=7)
"""Days that are at most this far apart share a range; so do those that are no farther apart than the range is long."""
_MOST_RANGES: Final = 3
"""Where there would be more, the smallest holes are run as well."""


def merge_ranges(ranges: Iterable[DayRange]) -> list[DayRange]:
    """The same days, and those of small holes between them, in order, in at most three ranges."""
    merged: list[DayRange] = []
    for days in sorted(ranges, key=lambda each: each.first):
        if merged and days.first - merged[-1].last <= max(_SMALL_HOLE, merged[-1].last - merged[-1].first):
            merged[-1] = _joined(merged[-1], days)
        else:
            merged.append(days)
    while len(merged) > _MOST_RANGES:
        holes = [after.first - before.last for before, after in pairwise(merged)]
        at = holes.index(min(holes))
        merged[at : at + 2] = [_joined(merged[at], merged[at + 1])]
    return merged


def single_days(days: Iterable[date]) -> list[DayRange]:
    """Each day as a range of its own."""
    return [DayRange(first=day, last=day) for day in days]


def _joined(one: DayRange, other: DayRange) -> DayRange:
    return DayRange(first=min(one.first, other.first), last=max(one.last, other.last))
