"""What is remembered of sources: the order in which it is noted does not matter, and nothing moves backwards."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from rag_pipeline.index.bookkeeping import SourceKey, record_failures
from rag_pipeline.index.database import connected
from rag_pipeline.index.freshness import freshness, note_asked, note_complete, note_unreadable
from rag_pipeline.model import DayRange, Failure

KEY = SourceKey(tenant="acme", repository="rocket", source="git")
NOW = datetime(2024, 3, 10, 12, tzinfo=UTC)


def ago(hours: float) -> datetime:
    return NOW - timedelta(hours=hours)


def test_what_was_seen_and_indexed_never_moves_backwards(connection):
    note_asked(connection, KEY, at=ago(1), newest=ago(2))
    note_complete(connection, KEY, until=ago(1), now=NOW)
    note_asked(connection, KEY, at=ago(5), newest=ago(6))
    note_asked(connection, KEY, at=ago(1), newest=None)
    note_complete(connection, KEY, until=ago(5), now=ago(4))
    (row,) = freshness(connection)
    assert (row.key, row.asked_at, row.newest_item_at) == (KEY, ago(1), ago(2))
    assert (row.complete_until, row.indexed_at) == (ago(1), NOW)


def test_many_writers_at_once_end_with_the_newest(database, connection):
    def write(hours: int) -> None:
        with connected(database) as own:
            note_asked(own, KEY, at=ago(hours), newest=ago(hours + 1))
            note_complete(own, KEY, until=ago(hours), now=ago(hours))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, [7, 3, 9, 1, 5, 8, 2, 6]))
    (row,) = freshness(connection)
    assert (row.asked_at, row.newest_item_at, row.complete_until, row.indexed_at) == (ago(1), ago(2), ago(1), ago(1))


def test_a_clock_that_is_ahead_does_not_put_the_source_ahead_of_the_index(connection):
    note_asked(connection, KEY, at=NOW, newest=NOW + timedelta(minutes=5))
    assert freshness(connection)[0].newest_item_at == NOW


def test_a_problem_stands_until_the_source_could_be_read_again(connection):
    note_unreadable(connection, KEY, reason="no route\0to host", now=ago(3))
    assert freshness(connection)[0].problem == "no routeto host"
    note_asked(connection, KEY, at=ago(2), newest=None)
    assert freshness(connection)[0].problem == ""
    note_unreadable(connection, KEY, reason="what somebody slower found", now=ago(3))
    assert freshness(connection)[0].problem == ""
    note_unreadable(connection, KEY, reason="gone again", now=ago(1))
    note_asked(connection, KEY, at=ago(4), newest=None)
    assert freshness(connection)[0].problem == "gone again"


def test_the_view_counts_failures_and_this_months_cost_per_repository(connection):
    note_asked(connection, KEY, at=NOW, newest=None)
    failure = Failure(
        tenant="acme", source_type="docs", source_id="rocket:a.md", stage="documents", repository="rocket",
        day=NOW.date(), source_updated_at=NOW, reason="broken",
    )  # fmt: skip
    days = DayRange(first=NOW.date(), last=NOW.date())
    record_failures(connection, [failure], stage="documents", days=days, now=NOW)
    for when, cost in (("now()", 0.25), ("now()", 0.5), ("now() - interval '40 days'", 8.0)):
        connection.execute(
            "INSERT INTO rag.usage (used_at, tenant_id, repository, run_id, purpose, provider, model, cost_usd)"
            f" VALUES ({when}, 'acme', 'rocket', 'r', 'embedding', 'p', 'm', {cost})"
        )
    (row,) = freshness(connection)
    assert (row.failures_waiting, row.cost_this_month_usd) == (1, pytest.approx(0.75))
