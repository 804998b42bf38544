"""Freshness as a user sees it: a stopped schedule is noticed, and exactly what is missing is run."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from rag_pipeline.cli.freshness import freshness_report
from rag_pipeline.definitions import REFRESH_JOB, build_defs
from rag_pipeline.defs.automation.drops import DROP_SENSOR
from rag_pipeline.defs.automation.freshness import FRESHNESS_CHECK, FRESHNESS_SENSOR
from rag_pipeline.defs.automation.refresh import REFRESH_SCHEDULE
from rag_pipeline.index.database import connected
from rag_pipeline_tests.end_to_end.installation import Installation
from rag_pipeline_tests.git_repository import GitRepository

QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
CHECK_KEY = dg.AssetCheckKey(dg.AssetKey("knowledge_index"), FRESHNESS_CHECK)


class Watched:
    """An installation with the sensor that watches its freshness, as the daemon runs it: one tick after the other."""

    def __init__(self, installation: Installation) -> None:
        self.installation = installation
        self.instance = installation.instance = dg.DagsterInstance.ephemeral()
        self.cursor: str | None = None

    def tick(self, **passed: float) -> Any:
        """What the sensor asks for after some time; what it tells of the index is stored, as the daemon does."""
        self.installation.pass_time(timedelta(**passed).total_seconds())
        pipeline = self.installation.pipeline()
        defs = self.installation.definitions()
        with dg.build_sensor_context(
            instance=self.instance, cursor=self.cursor, resources={"pipeline": pipeline}, definitions=defs,
            sensor_name=FRESHNESS_SENSOR,
        ) as context:  # fmt: skip
            found = defs.resolve_sensor_def(FRESHNESS_SENSOR).evaluate_tick(context)
        self.cursor = found.cursor or self.cursor
        for event in found.asset_events:
            self.instance.report_runless_asset_event(event)
        return found

    def launched(self, **passed: float) -> list[str]:
        """The days that the sensor asks for, and no runs of them."""
        return [days_of(request) for request in self.tick(**passed).run_requests]

    def run(self, request: dg.RunRequest) -> dg.ExecuteInProcessResult:
        """Do what the daemon does with a request."""
        return self.installation.job(REFRESH_JOB, self.installation.pipeline()).execute_in_process(
            instance=self.instance, tags=dict(request.tags),
            asset_selection=request.asset_selection, raise_on_error=False, run_config=QUIET,
        )  # fmt: skip

    def mend(self, **passed: float) -> list[str]:
        """Let the sensor look, and run what it asks for; the days."""
        found = self.tick(**passed)
        for request in found.run_requests:
            assert self.run(request).success
        return [days_of(request) for request in found.run_requests]

    def standings(self) -> dict[str, str]:
        """How each source stands, as `rag-pipeline status` tells it."""
        return {f"{row['repository']} {row['source']}": row["state"] for row in self.report()}

    def report(self) -> list[dict[str, Any]]:
        with connected(self.installation.database) as connection:
            return freshness_report(self.installation.settings, connection, now=self.installation.now)

    def check(self) -> tuple[bool, dg.AssetCheckSeverity, Mapping[str, Any]]:
        """The last evaluation of the check, as the UI shows it."""
        record = self.instance.event_log_storage.get_latest_asset_check_execution_by_key([CHECK_KEY])[CHECK_KEY]
        assert record.event is not None and record.event.dagster_event is not None
        evaluation = record.event.dagster_event.asset_check_evaluation_data
        metadata = {name: value.value for name, value in evaluation.metadata.items()}
        return evaluation.passed, evaluation.severity, metadata


def days_of(request: dg.RunRequest) -> str:
    """A request's partition, or its range."""
    tags = request.tags
    if "dagster/partition" in tags:
        return tags["dagster/partition"]
    return f"{tags['dagster/asset_partition_range_start']}..{tags['dagster/asset_partition_range_end']}"


@pytest.fixture
def watched(tmp_path: Path, database: str, repository: GitRepository) -> Watched:
    repository.commit("2024-01-20T10:00", {"guide.md": "# Guide\n\nHow it is done.\n"})
    source = {"source": str(repository.path), "name": "project"}
    return Watched(Installation(tmp_path / "home", database, [source], start_date=date(2024, 1, 10), checks=True))


@pytest.fixture
def two(watched: Watched, tmp_path: Path) -> Watched:
    other = GitRepository(tmp_path / "other")
    other.commit("2024-01-22T10:00", {"other.md": "# Other\n\nAnother matter.\n"})
    watched.installation.repositories = [
        *watched.installation.repositories,
        {"source": str(other.path), "name": "other"},
    ]
    return watched


def test_a_repository_that_was_never_indexed_is_stale_and_launched_from_its_first_day(watched):
    assert watched.standings() == {"project git": "never indexed"}
    assert watched.mend() == ["2024-01-10..2024-01-31"]
    assert watched.standings() == {"project git": "fresh"}
    assert watched.check()[0] is True
    assert watched.tick(minutes=15).skip_message == "all 1 sources are indexed"


def test_three_days_without_the_schedule_are_reported_and_exactly_they_are_launched(watched, repository):
    watched.installation.run("2024-01-10", "2024-01-31")
    repository.commit("2024-02-01T10:00", {"new.md": "# New\n\nWritten while nobody looked.\n"})
    found = watched.tick(days=3)
    assert [days_of(request) for request in found.run_requests] == ["2024-01-31..2024-02-03"]
    passed, severity, told = watched.check()
    assert (passed, severity) == (False, dg.AssetCheckSeverity.WARN)
    assert (told["stale"], told["missing_days"]) == (1, "2024-01-31 to 2024-02-03")
    assert "project" in told["sources"] and "3 d 0 h" in told["sources"]
    assert watched.standings() == {"project git": "stale"}
    assert watched.run(found.run_requests[0]).success
    assert watched.standings() == {"project git": "fresh"}
    assert watched.check()[0] is True
    assert "project:new.md" in watched.installation.documents()
    assert watched.launched(minutes=15) == []


def test_a_backfill_of_an_old_day_leaves_a_stale_index_stale(watched):
    watched.installation.run("2024-01-10", "2024-01-31")
    watched.installation.pass_time(3 * 86_400)
    before = watched.report()[0]["complete_until"]
    watched.installation.run("2024-01-12", "2024-01-20")
    assert watched.report()[0]["complete_until"] == before
    assert watched.standings() == {"project git": "stale"}
    assert watched.check()[0] is False
    assert watched.launched(minutes=1) == ["2024-01-31..2024-02-03"]


def test_only_what_is_behind_is_launched(two, tmp_path):
    two.installation.run("2024-01-10", "2024-01-31")
    both = two.installation.repositories
    two.installation.repositories = both[:1]
    two.installation.pass_time(2 * 86_400)
    two.installation.run("2024-01-31", "2024-02-02")
    two.installation.repositories = both
    assert two.standings() == {"other git": "stale", "project git": "fresh"}
    assert two.mend(minutes=1) == ["2024-01-31..2024-02-02"]
    assert set(two.standings().values()) == {"fresh"}


def test_a_commit_of_today_puts_the_source_ahead_of_this_mornings_run(watched, repository):
    watched.installation.now = datetime(2024, 1, 31, 2, 5, tzinfo=UTC)
    watched.installation.run("2024-01-10", "2024-01-31")
    repository.commit("2024-01-31T09:00", {"new.md": "# New\n\nWritten this morning.\n"})
    found = watched.tick(hours=8)
    assert watched.standings() == {"project git": "behind"}
    assert [days_of(request) for request in found.run_requests] == ["2024-01-31"]
    assert watched.check()[0] is True, "behind is not stale"
    assert watched.run(found.run_requests[0]).success
    assert watched.standings() == {"project git": "fresh"}


def test_a_commit_that_was_pushed_late_launches_its_day_on(watched, repository):
    watched.installation.run("2024-01-10", "2024-01-31")
    repository.commit("2024-01-25T09:00", {"late.md": "# Late\n\nCommitted days before it was pushed.\n"})
    assert watched.mend(minutes=15) == ["2024-01-25..2024-01-31"]
    assert "project:late.md" in watched.installation.documents()


def test_a_run_of_today_alone_completes_nothing_while_older_days_are_missing(watched, repository):
    watched.installation.run("2024-01-10", "2024-01-31")
    repository.commit("2024-02-01T10:00", {"new.md": "# New\n\nWritten while nobody looked.\n"})
    watched.installation.pass_time(3 * 86_400)
    watched.installation.run("2024-02-03")
    assert watched.standings() == {"project git": "stale"}
    assert watched.launched() == ["2024-01-31..2024-02-03"]


def test_a_repository_that_cannot_be_read_stays_stale_with_a_reason_and_holds_up_nobody(two, tmp_path):
    two.installation.run("2024-01-10", "2024-01-31")
    (tmp_path / "other").rename(tmp_path / "gone")
    assert two.mend(days=3) == ["2024-01-31..2024-02-03"]
    assert two.standings() == {"other git": "stale", "project git": "fresh"}
    other = two.report()[0]
    assert "cannot be read" in other["why"] and "does not exist" in other["why"]
    assert "does not exist" in two.check()[2]["complaints"]
    found = two.tick(minutes=15)
    assert not found.run_requests
    assert "nothing that a run could mend: other" in found.skip_message
    (tmp_path / "gone").rename(tmp_path / "other")
    assert two.mend(minutes=15) == ["2024-01-31..2024-02-03"]
    assert set(two.standings().values()) == {"fresh"}
    assert two.report()[0]["why"] == ""


def test_alerting_launches_nothing_and_fails_the_check(watched):
    watched.installation.more = {"freshness": {"on_stale": "alert"}}
    found = watched.tick()
    assert not found.run_requests
    assert "2024-01-10 to 2024-01-31 are missing" in found.skip_message
    assert watched.check()[:2] == (False, dg.AssetCheckSeverity.ERROR)


@pytest.mark.parametrize("status", [dg.DagsterRunStatus.NOT_STARTED, dg.DagsterRunStatus.STARTED])
def test_nothing_is_launched_while_a_refresh_is_queued_or_at_work(watched, status):
    job = build_defs(watched.installation.settings).resolve_job_def(REFRESH_JOB)
    run = watched.instance.create_run_for_job(job, status=status)
    found = watched.tick()
    assert not found.run_requests and run.run_id in found.skip_message
    assert watched.check()[0] is False, "it is stale all the same"
    watched.instance.report_run_canceled(run)
    assert watched.launched(minutes=15) == ["2024-01-10..2024-01-31"]


def test_a_run_that_takes_drops_does_not_hold_the_sensor_up(watched):
    job = build_defs(watched.installation.settings).resolve_job_def(REFRESH_JOB)
    tags = {"dagster/sensor_name": DROP_SENSOR}
    watched.instance.create_run_for_job(job, status=dg.DagsterRunStatus.STARTED, tags=tags)
    assert watched.launched() == ["2024-01-10..2024-01-31"]


def test_the_same_days_are_launched_again_only_after_a_growing_pause(watched):
    watched.installation.now = datetime(2024, 1, 31, 1, tzinfo=UTC)
    keys = [watched.tick().run_requests[0].run_key]
    pauses = []
    for _ in range(3):
        ticks = 0
        while not (found := watched.tick(minutes=15)).run_requests:
            assert "did not make it fresh" in found.skip_message
            ticks += 1
        keys.append(found.run_requests[0].run_key)
        pauses.append(ticks)
    assert len(set(keys)) == 4
    assert pauses == sorted(set(pauses))
    assert watched.check()[1] == dg.AssetCheckSeverity.ERROR, "what does not mend itself is for a person"


def test_the_check_is_told_once_and_not_at_every_look(watched):
    assert len(watched.tick(minutes=15).asset_events) == 1
    assert [len(watched.tick(minutes=15).asset_events) for _ in range(3)] == [0, 0, 0]
    assert len(watched.tick(days=1).asset_events) == 1, "once a day"


@pytest.mark.slow
def test_a_repository_that_left_the_settings_is_no_reason_to_complain(two):
    two.installation.run("2024-01-10", "2024-01-31")
    two.installation.repositories = two.installation.repositories[:1]
    two.installation.pass_time(3 * 86_400)
    two.installation.run("2024-01-31", "2024-02-03")
    assert two.standings() == {"project git": "fresh"}


@pytest.mark.slow
def test_sources_are_not_asked_where_that_is_switched_off(watched, repository):
    watched.installation.more = {"freshness": {"ask_sources": False}}
    watched.installation.run("2024-01-10", "2024-01-31")
    repository.commit("2024-01-31T13:00", {"new.md": "# New\n\nWritten at noon.\n"})
    assert watched.launched(hours=2) == []
    assert watched.standings() == {"project git": "fresh"}
    watched.installation.more = {}
    assert watched.launched(minutes=15) == ["2024-01-31"]


def test_drops_complain_only_when_they_wait_for_too_long(watched):
    watched.installation.run("2024-01-10", "2024-01-31")
    watched.installation.drop("runbook.md", "Restart the broker.")
    assert watched.standings() == {"inbox drops": "behind", "project git": "fresh"}
    assert watched.launched(minutes=15) == []
    watched.installation.now += timedelta(days=2)
    assert watched.standings() == {"inbox drops": "stale", "project git": "stale"}
    assert watched.mend() == ["2024-01-31..2024-02-02"]
    assert watched.standings() == {"inbox drops": "fresh", "project git": "fresh"}
    watched.installation.pass_time(5 * 86_400)
    assert watched.standings() == {"inbox drops": "fresh", "project git": "stale"}


# The schedule --------------------------------------------------------------------------------------------------------


def scheduled(watched: Watched, records: dg.DagsterInstance, at: str) -> Any:
    """What the schedule asks for at a moment (UTC)."""
    pipeline = watched.installation.pipeline()
    defs = build_defs(watched.installation.settings, pipeline=pipeline)
    with dg.build_schedule_context(
        instance=records, scheduled_execution_time=datetime.fromisoformat(f"{at}+00:00"),
        resources={"pipeline": pipeline}, repository_def=defs.get_repository_def(),
    ) as context:  # fmt: skip
        return defs.resolve_schedule_def(REFRESH_SCHEDULE).evaluate_tick(context)


@pytest.fixture
def records() -> Iterator[dg.DagsterInstance]:
    """Dagster's records on disk: a schedule opens them by itself."""
    with dg.instance_for_test() as instance:
        yield instance


def test_the_schedule_runs_yesterday_and_today_in_one_run(watched, records):
    watched.installation.run("2024-01-10", "2024-01-31")
    watched.installation.now = datetime(2024, 2, 1, 2, 5, tzinfo=UTC)
    (request,) = scheduled(watched, records, "2024-02-01T02:05").run_requests
    assert days_of(request) == "2024-01-31..2024-02-01"
    assert watched.run(request).success
    assert watched.standings() == {"project git": "fresh"}


def test_the_schedule_fills_in_the_days_that_it_was_off(watched, records):
    watched.installation.run("2024-01-10", "2024-01-31")
    watched.installation.now = datetime(2024, 2, 4, 2, 5, tzinfo=UTC)
    (request,) = scheduled(watched, records, "2024-02-04T02:05").run_requests
    assert days_of(request) == "2024-01-31..2024-02-04"


@pytest.mark.slow
def test_a_repository_that_nobody_can_read_does_not_lengthen_every_run(two, records, tmp_path):
    two.installation.run("2024-01-10", "2024-01-31")
    (tmp_path / "other").rename(tmp_path / "gone")
    two.mend(days=3)
    (request,) = scheduled(two, records, "2024-02-04T02:05").run_requests
    assert days_of(request) == "2024-02-03..2024-02-04"


def test_the_schedule_does_not_overtake_itself(watched, records):
    job = build_defs(watched.installation.settings).resolve_job_def(REFRESH_JOB)
    tags = {"dagster/schedule_name": REFRESH_SCHEDULE}
    run = records.create_run_for_job(job, status=dg.DagsterRunStatus.STARTED, tags=tags)
    found = scheduled(watched, records, "2024-02-01T02:05")
    assert not found.run_requests and run.run_id in found.skip_message


def test_both_wait_to_be_switched_on_and_follow_the_settings(watched):
    watched.installation.more = {
        "schedules": {"refresh": "hourly", "timezone": "Europe/Berlin"}, "freshness": {"check_every_minutes": 5},
    }  # fmt: skip
    defs = build_defs(watched.installation.settings)
    sensor = defs.resolve_sensor_def(FRESHNESS_SENSOR)
    assert (sensor.default_status, sensor.minimum_interval_seconds) == (dg.DefaultSensorStatus.STOPPED, 300)
    schedule = defs.resolve_schedule_def(REFRESH_SCHEDULE)
    assert (schedule.cron_schedule, schedule.execution_timezone) == ("5 * * * *", "Europe/Berlin")
    assert schedule.default_status == dg.DefaultScheduleStatus.STOPPED


def test_the_ui_has_a_policy_of_the_settings(watched):
    watched.installation.more = {"freshness": {"max_lag_hours": 10}}
    node = build_defs(watched.installation.settings).resolve_asset_graph().get(dg.AssetKey("knowledge_index"))
    assert node.freshness_policy.fail_window.to_timedelta() == timedelta(hours=10)


def test_the_cursor_is_small_and_readable(watched):
    watched.tick()
    assert set(json.loads(watched.cursor or "")) == {"key", "attempts", "at", "said"}
