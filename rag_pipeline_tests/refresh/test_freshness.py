"""What counts as fresh, and which days are missing: rows, settings and a moment, nothing else."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_pipeline.index.bookkeeping import SourceKey
from rag_pipeline.index.freshness import SourceFreshness
from rag_pipeline.model import DayRange
from rag_pipeline.refresh.freshness import Known, Standing, State, judge, missing_days, spoken_lag, staleness_lines
from rag_pipeline.settings import Settings

NOW = datetime(2024, 3, 10, 12, tzinfo=UTC)
GIT = SourceKey(tenant="acme", repository="rocket", source="git")
GITHUB = SourceKey(tenant="acme", repository="rocket", source="github")
DROPS = SourceKey(tenant="acme", repository="inbox", source="drops")


def settings(**freshness: object) -> Settings:
    rocket = {"source": "/srv/rocket", "github": "acme/rocket", "name": "rocket", "tenant": "acme"}
    return Settings.model_validate({
        "tenant": "acme", "repositories": [rocket], "start_date": date(2024, 1, 1), "home": Path("/nowhere"),
        "freshness": freshness,
    })  # fmt: skip


def row(
    key: SourceKey, *, hours_ago: float, newest_hours_ago: float | None = None, problem: str = ""
) -> SourceFreshness:
    newest = None if newest_hours_ago is None else NOW - timedelta(hours=newest_hours_ago)
    until = NOW - timedelta(hours=hours_ago)
    return SourceFreshness(key=key, asked_at=NOW, newest_item_at=newest, complete_until=until, problem=problem)


def known(**pending: list[date]) -> Known:
    keys = {"git": GIT, "github": GITHUB, "drops": DROPS}
    return Known(pending={keys[name]: days for name, days in pending.items()}, unreadable={})


def by_source(standings: list[Standing]) -> dict[str, Standing]:
    return {standing.key.source: standing for standing in standings}


def days(first: str, last: str | None = None) -> DayRange:
    return DayRange(first=date.fromisoformat(first), last=date.fromisoformat(last or first))


def test_every_source_of_the_settings_is_judged_and_no_other():
    gone = SourceKey(tenant="acme", repository="sold", source="git")
    found = by_source(judge([row(gone, hours_ago=900), row(GIT, hours_ago=1)], settings(), now=NOW))
    assert {name: standing.state for name, standing in found.items()} == {"git": State.FRESH, "github": State.NEVER}
    assert missing_days(found.values()) == [days("2024-01-01", "2024-03-10")]
    assert staleness_lines(found.values()) == ["rocket (github, tenant acme): never wholly indexed"]


def test_the_lag_decides_and_the_days_since_then_are_missing():
    rows = [row(GIT, hours_ago=36.1), row(GITHUB, hours_ago=35.9)]
    found = by_source(judge(rows, settings(), now=NOW))
    assert (found["git"].state, found["github"].state) == (State.STALE, State.FRESH)
    assert missing_days(found.values()) == [days("2024-03-08", "2024-03-10")]
    assert all(standing.state is State.FRESH for standing in judge(rows, settings(max_lag_hours=40), now=NOW))


def test_a_newer_change_at_the_source_is_behind_and_due_at_once():
    rows = [row(GIT, hours_ago=10, newest_hours_ago=9), row(GITHUB, hours_ago=10, newest_hours_ago=10)]
    found = by_source(judge(rows, settings(), now=NOW))
    assert (found["git"].state, found["github"].state) == (State.BEHIND, State.FRESH)
    assert missing_days(found.values()) == [days("2024-03-10")]
    assert staleness_lines(found.values()) == []


def test_what_is_pending_is_due_whatever_the_times_say():
    rows = [row(GIT, hours_ago=1), row(GITHUB, hours_ago=1)]
    late = date(2024, 3, 1)
    assert missing_days(judge(rows, settings(), now=NOW, known=known(git=[late]))) == [days("2024-03-01", "2024-03-10")]
    threads = judge(rows, settings(), now=NOW, known=known(github=[late, date(2024, 3, 2)]))
    assert missing_days(threads) == [days("2024-03-01", "2024-03-02"), days("2024-03-10")]


def test_a_source_that_was_read_to_the_end_but_never_noted_asks_for_today_only():
    found = judge([row(GITHUB, hours_ago=1)], settings(), now=NOW, known=known(git=[]))
    assert missing_days(found) == [days("2024-03-10")]


def test_what_cannot_be_read_now_is_stale_and_asks_for_no_run():
    nobody = Known(pending={}, unreadable={GIT: "no such branch"})
    found = judge([row(GIT, hours_ago=90), row(GITHUB, hours_ago=1)], settings(), now=NOW, known=nobody)
    assert missing_days(found) == []
    (line,) = staleness_lines(found)
    assert line.endswith("3 d 18 h ago; cannot be read: no such branch")


def test_what_could_not_be_read_before_is_told_and_run():
    rows = [row(GIT, hours_ago=90, problem="no route"), row(GITHUB, hours_ago=1)]
    found = judge(rows, settings(), now=NOW)
    assert "cannot be read: no route" in by_source(found)["git"].why
    assert missing_days(found) == [days("2024-03-06", "2024-03-10")]


@pytest.mark.parametrize(
    ("hours_ago", "newest_hours_ago", "waiting_hours", "state"),
    [
        (900, 901, None, State.FRESH), (900, 1, None, State.BEHIND), (900, 40, None, State.STALE),
        (900, 901, 1, State.BEHIND), (900, 901, 37, State.STALE),
    ],
)  # fmt: skip
def test_drops_are_late_only_while_there_is_one(hours_ago, newest_hours_ago, waiting_hours, state):
    since = NOW - timedelta(hours=waiting_hours) if waiting_hours else None
    rows = [row(DROPS, hours_ago=hours_ago, newest_hours_ago=newest_hours_ago)]
    found = judge(rows, settings(), now=NOW, known=Known(pending={}, unreadable={}, waiting_since=since))
    assert by_source(found)["drops"].state is state


def test_many_single_days_share_one_run():
    every_third = [date(2024, 1, 1) + timedelta(days=3 * n) for n in range(20)]
    rows = [row(GIT, hours_ago=1), row(GITHUB, hours_ago=1)]
    found = judge(rows, settings(), now=NOW, known=known(github=every_third))
    assert missing_days(found) == [days("2024-01-01", "2024-03-10")]


@given(
    git=st.none() | st.integers(0, 2000), github=st.none() | st.integers(0, 2000),
    newest=st.none() | st.integers(0, 2000),
    pending=st.sets(st.dates(date(2024, 1, 1), date(2024, 3, 10)), max_size=12),
)  # fmt: skip
def test_the_missing_days_cover_all_that_is_due_in_order_and_without_overlap(git, github, newest, pending):
    rows = [
        row(key, hours_ago=hours, newest_hours_ago=newest)
        for key, hours in ((GIT, git), (GITHUB, github))
        if hours is not None
    ]
    found = judge(rows, settings(), now=NOW, known=known(github=sorted(pending)))
    ranges = missing_days(found)
    for standing in found:
        assert bool(standing.due) == (standing.state is not State.FRESH)
        for due in standing.due:
            assert any(due.first in days and due.last in days for days in ranges)
    assert all(later.first - earlier.last > timedelta(days=1) for earlier, later in pairwise(ranges))
    assert not ranges or (ranges[-1].last == NOW.date() and ranges[0].first >= date(2024, 1, 1))


@pytest.mark.parametrize(
    ("lag", "spoken"),
    [
        (None, "-"), (timedelta(seconds=-5), "0 min"), (timedelta(minutes=59), "59 min"),
        (timedelta(hours=26, minutes=3), "1 d 2 h"), (timedelta(hours=3, minutes=7), "3 h 7 min"),
    ],
)  # fmt: skip
def test_lags_are_for_people(lag, spoken):
    assert spoken_lag(lag) == spoken
