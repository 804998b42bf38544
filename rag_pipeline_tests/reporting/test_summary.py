"""The report's numbers: totals, growth, rates."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_pipeline.reporting.charts import _ticks, lines
from rag_pipeline.reporting.summary import cost_by_day, growth, newest_quality, present, summarise
from rag_pipeline.reporting.words import bytes_of, money, number, share, span
from rag_pipeline_tests.reporting.reports import (
    FIRST,
    NOW,
    empty_report,
    full_report,
    quality,
    reuse,
    size,
    usage,
)


def test_growth_carries_sizes_over_days_without_a_row():
    sizes = [size(FIRST - timedelta(days=9), 100), size(FIRST + timedelta(days=2), 50, kind="code"),
             size(FIRST + timedelta(days=3), 130)]  # fmt: skip
    points = growth(sizes, first=FIRST, last=FIRST + timedelta(days=4))
    assert [point.chunks for point in points] == [100, 100, 150, 180, 180]
    assert points[0].day == FIRST
    assert growth([], first=FIRST, last=NOW.date()) == []


def test_what_left_the_index_is_no_source_any_more():
    sizes = [size(FIRST, 100), size(FIRST, 70, repository="acme/gone"), size(NOW.date(), 0, repository="acme/gone")]
    assert [row.repository for row in present(sizes)] == ["acme/app"]
    assert [p.chunks for p in growth(sizes, first=FIRST, last=NOW.date())][-1] == 100


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 99), st.sampled_from("abc")), max_size=30))
def test_the_last_day_of_growth_is_what_is_there(rows):
    days = {(FIRST + timedelta(days=day), name): chunks for day, chunks, name in rows}
    sizes = [size(day, chunks, repository=name) for (day, name), chunks in sorted(days.items())]
    points = growth(sizes, first=FIRST, last=FIRST + timedelta(days=20))
    assert (points[-1].chunks if points else 0) == sum(row.chunks for row in present(sizes))


def test_an_empty_index_has_no_rates():
    summary = summarise(empty_report())
    assert (summary.documents, summary.quality, summary.reuse_share, summary.largest_lag) == (0, None, None, None)
    assert summary.cost_usd == 0 and summary.database_bytes == 9_000_000


def test_the_key_numbers_of_a_full_one():
    summary = summarise(full_report())
    assert (summary.documents, summary.chunks, summary.sources) == (50, 500, 2)
    assert summary.quality == pytest.approx(0.6)
    assert summary.reuse_share == pytest.approx(19 / 20)
    assert (summary.largest_lag, summary.failures) == (timedelta(hours=5), 2)


def test_a_clock_ahead_of_ours_is_no_negative_lag():
    report = full_report()
    ahead = [replace(row, complete_until=NOW + timedelta(hours=1)) for row in report.facts.freshness]
    assert summarise(replace(report, facts=replace(report.facts, freshness=ahead))).largest_lag == timedelta()


def test_only_this_month_is_this_months_cost():
    report = full_report()
    used = [usage(date(2024, 5, 31), 5.0), usage(date(2024, 6, 1), 0.5)]
    report = replace(report, facts=replace(report.facts, usage=used))
    assert summarise(report).cost_usd == 0.5
    by_day = cost_by_day(report)
    assert (len(by_day), sum(by_day.values()), min(by_day)) == (32, 5.5, FIRST)


def test_quality_weighs_label_sets_by_their_questions():
    small = replace(quality(1, 0.2, dataset="small"), queries=30)
    assert newest_quality([quality(5, 0.1), quality(1, 0.6), small]) == pytest.approx((0.6 * 10 + 0.2 * 30) / 40)


def test_runs_without_texts_say_nothing_of_reuse():
    assert [run.share for run in reuse((0, 0), (1, 3))] == [None, 0.75]


@given(st.floats(0, 1e9), st.booleans())
def test_axes_hold_all_values_in_few_equal_steps(highest, whole):
    ticks = _ticks(highest, whole=whole)
    assert ticks[0] == 0 and ticks[-1] >= highest * (1 - 1e-6) and 2 <= len(ticks) <= 7
    assert ticks == sorted(set(ticks))
    assert not whole or all(float(tick).is_integer() for tick in ticks)


def test_a_chart_of_one_day_stands_in_the_middle():
    drawn = lines("one", {"a": [(FIRST, 3.0)]})
    assert drawn.count("<circle") == 1 and str(FIRST) in drawn
    assert lines("none", {"a": []}) == ""


def test_numbers_are_for_people():
    assert [number(n) for n in (0, 12.5, 99_999, 250_000, 1_234_567)] == ["0", "12.50", "99,999", "250 k", "1.2 M"]
    assert [money(n) for n in (0, 0.0031, 0.25, 1234.5)] == ["$0.00", "$0.0031", "$0.25", "$1,234.50"]
    assert [span(timedelta(minutes=m)) for m in (0, 61, 3000)] == ["0 min", "1 h 1 min", "2 d 2 h"]
    assert (share(None), share(0.5), bytes_of(1500), span(None)) == ("–", "50.0 %", "1.5 kB", "–")
