"""Quarantined items are tried again with growing pauses, then wait for a person, who may leave them out."""

from __future__ import annotations

from datetime import datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from rag_pipeline.index.bookkeeping import record_failures
from rag_pipeline.index.database import Connection
from rag_pipeline.index.quarantine import accept, due_days, pause, quarantined
from rag_pipeline.model import DayRange, Failure
from rag_pipeline.settings.quarantine import Quarantine
from rag_pipeline_tests.knowledge import DAY, NOW, moment

SETTINGS = Quarantine(max_attempts=3, first_pause_s=600)


def fail(connection: Connection, *, now: datetime, at: int = 1, name: str = "a.md") -> None:
    failure = Failure(
        tenant="acme", source_type="docs", source_id=name, stage="documents", repository="handbook", day=DAY,
        source_updated_at=moment(at), reason="cannot be read",
    )  # fmt: skip
    record_failures(connection, [failure], stage="documents", days=DayRange(first=DAY, last=DAY), now=now)


def test_an_item_is_due_after_a_pause_that_doubles_and_then_is_given_up(connection):
    now = NOW
    for attempt, minutes in ((1, 10), (2, 20)):
        fail(connection, now=now)
        (item,) = quarantined(connection)
        assert item.attempts == attempt
        assert due_days([item], SETTINGS, now=now + timedelta(minutes=minutes, seconds=-1)) == []
        now += timedelta(minutes=minutes)
        assert due_days([item], SETTINGS, now=now) == [DAY]
    fail(connection, now=now)
    (item,) = quarantined(connection)
    assert item.is_given_up(SETTINGS)
    assert due_days([item], SETTINGS, now=now + timedelta(days=365)) == []


@given(attempts=st.integers(1, 10_000))
def test_no_pause_is_longer_than_a_day_or_shorter_than_the_one_before(attempts):
    assert pause(attempts, SETTINGS) <= pause(attempts + 1, SETTINGS) <= timedelta(days=1)


def test_what_a_person_accepts_stays_out_until_it_changes(connection):
    fail(connection, now=NOW)
    assert accept(connection, "a.md", note="a test file", now=NOW) == 1
    assert accept(connection, "a.md", note="again", now=NOW) == 0
    fail(connection, now=NOW + timedelta(days=1))
    assert quarantined(connection) == []
    fail(connection, now=NOW + timedelta(days=2), at=5)
    (item,) = quarantined(connection)
    assert item.attempts == 1
    fail(connection, now=NOW + timedelta(days=3), at=5)
    assert [item.attempts for item in quarantined(connection)] == [2]


def test_only_the_named_tenant_s_item_is_accepted(connection):
    fail(connection, now=NOW)
    assert accept(connection, "a.md", note="not theirs", now=NOW, tenant="globex") == 0
    assert len(quarantined(connection)) == 1
