"""How days become the ranges that runs cover."""

from __future__ import annotations

from datetime import date, timedelta
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from rag_pipeline.model import DayRange
from rag_pipeline.refresh.day_ranges import merge_ranges, single_days

FIRST = date(2024, 1, 1)


def shown(*offsets: int) -> list[str]:
    return [str(days) for days in merge_ranges(single_days(FIRST + timedelta(days=offset) for offset in offsets))]


def test_small_holes_are_run_and_large_ones_are_not() -> None:
    assert shown(0, 7, 14) == ["2024-01-01 to 2024-01-15"]
    assert shown(0, 8) == ["2024-01-01", "2024-01-09"]
    assert shown(0, 5, 10, 20) == ["2024-01-01 to 2024-01-21"]
    assert shown(5, 0, 400) == ["2024-01-01 to 2024-01-06", "2025-02-04"]


def test_a_catch_up_over_weeks_is_one_run_or_two() -> None:
    assert len(shown(*range(0, 46, 5))) == 1
    assert len(shown(*range(0, 46, 4), 200)) == 2


def test_of_many_ranges_the_nearest_share_one() -> None:
    assert shown(0, 10, 30, 70, 150) == ["2024-01-01 to 2024-01-31", "2024-03-11", "2024-05-30"]


@given(st.lists(st.integers(0, 500), min_size=1))
def test_every_day_is_covered_in_order_and_once(offsets: list[int]) -> None:
    days = [FIRST + timedelta(days=offset) for offset in offsets]
    ranges = merge_ranges(single_days(days))
    assert len(ranges) <= 3 and all(any(day in found for found in ranges) for day in days)
    assert all(one.last < other.first for one, other in pairwise(ranges))
    assert merge_ranges([DayRange(first=min(days), last=max(days)), *ranges]) == [
        DayRange(first=min(days), last=max(days))
    ]
