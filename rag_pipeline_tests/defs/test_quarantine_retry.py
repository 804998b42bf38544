"""The sensor launches the days of items that are due, never twice at once, and stops when they are given up."""

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest

from rag_pipeline.defs.automation.quarantine import given_up_alerts, quarantine_sensor
from rag_pipeline.index.bookkeeping import record_failures
from rag_pipeline.index.database import connected
from rag_pipeline.model import DayRange, Failure
from rag_pipeline_tests.end_to_end.installation import Installation

NOW = datetime(2024, 1, 31, 12, tzinfo=UTC)


@pytest.fixture
def installation(tmp_path: Path, database: str) -> Installation:
    more = {"quarantine": {"max_attempts": 3, "first_pause_s": 600}}
    return Installation(tmp_path, database, [{"source": str(tmp_path), "name": "project"}], more=more)


def fail(installation: Installation, *, day: int, now: datetime) -> None:
    days = DayRange(first=date(2024, 1, day), last=date(2024, 1, day))
    failure = Failure(
        tenant="default", source_type="docs", source_id=f"{day}.md", stage="documents", repository="project",
        day=days.first, source_updated_at=NOW, reason="cannot be read",
    )  # fmt: skip
    with connected(installation.database) as connection:
        record_failures(connection, [failure], stage="documents", days=days, now=now)


def tick(installation: Installation, instance: dg.DagsterInstance, cursor: str | None, now: datetime):
    installation.now = now
    resources = {"pipeline": installation.pipeline()}
    with dg.build_sensor_context(instance=instance, cursor=cursor, resources=resources) as context:
        found = quarantine_sensor("refresh")(context)
    if isinstance(found, dg.SkipReason):
        return [], cursor
    return [request.partition_key for request in found.run_requests], found.cursor


def test_days_that_are_due_are_run_once_and_again_after_a_longer_pause(installation):
    fail(installation, day=5, now=NOW)
    fail(installation, day=7, now=NOW + timedelta(minutes=5))
    with dg.DagsterInstance.ephemeral() as instance:
        days, cursor = tick(installation, instance, None, NOW + timedelta(minutes=9))
        assert days == []
        days, cursor = tick(installation, instance, cursor, NOW + timedelta(minutes=11))
        assert days == ["2024-01-05"]
        # Their run failed as a whole: no attempt of theirs was counted, but we have made one.
        days, cursor = tick(installation, instance, cursor, NOW + timedelta(minutes=16))
        assert days == ["2024-01-07"]
        days, cursor = tick(installation, instance, cursor, NOW + timedelta(minutes=22))
        assert days == ["2024-01-05"]
        days, cursor = tick(installation, instance, cursor, NOW + timedelta(minutes=33))
        assert days == ["2024-01-07"]


def test_what_is_given_up_is_not_run_any_more_and_is_told_once(installation):
    pipeline = installation.pipeline()
    _, mark = given_up_alerts(pipeline, NOW, None)
    for attempt in range(3):
        fail(installation, day=5, now=NOW + timedelta(hours=attempt))
    with dg.DagsterInstance.ephemeral() as instance:
        assert tick(installation, instance, None, NOW + timedelta(days=9))[0] == []
    (alert,), mark = given_up_alerts(pipeline, NOW, mark)
    assert alert.title == "5.md is given up after 3 attempts" and "quarantine retry" in alert.advice
    assert given_up_alerts(pipeline, NOW, mark)[0] == []
