"""The sensor of the inbox and the weekly schedule: which runs they ask for, and that these runs do what they should."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from rag_pipeline.definitions import RECONCILE_JOB, REFRESH_JOB, build_defs
from rag_pipeline.defs.automation.drops import DROP_SENSOR
from rag_pipeline_tests.end_to_end.installation import Installation
from rag_pipeline_tests.git_repository import GitRepository

TODAY = "2024-01-31"
ALWAYS = {"raw_webhook_drops", "documents", "chunks", "embeddings", "knowledge_index"}


class Watched:
    """An installation with the sensor that watches its inbox, as the daemon runs it: one tick after the other."""

    def __init__(self, installation: Installation) -> None:
        self.installation = installation
        self.instance = installation.instance = dg.DagsterInstance.ephemeral()
        self.cursor: str | None = None

    def tick(self, *, seconds: float = 10) -> Any:
        """What the sensor asks for after some seconds; Dagster has checked it and put its own tags on."""
        self.installation.pass_time(seconds)
        pipeline = self.installation.pipeline()
        defs = self.installation.definitions()
        context = dg.build_sensor_context(
            instance=self.instance, cursor=self.cursor, resources={"pipeline": pipeline}, definitions=defs,
            sensor_name=DROP_SENSOR,
        )  # fmt: skip
        found = defs.resolve_sensor_def(DROP_SENSOR).evaluate_tick(context)
        self.cursor = found.cursor or self.cursor
        return found

    def request(self, *, seconds: float = 10) -> dg.RunRequest:
        """The one run that the sensor asks for."""
        found = self.tick(seconds=seconds)
        assert found.run_requests, found.skip_message
        (request,) = found.run_requests
        return request

    def skipped(self, *, seconds: float = 10) -> str:
        """Why the sensor asks for none."""
        found = self.tick(seconds=seconds)
        assert not found.run_requests
        return found.skip_message or ""

    def run(self, request: dg.RunRequest) -> dg.ExecuteInProcessResult:
        """Do what the daemon does with a request."""
        return self.installation.job(REFRESH_JOB, self.installation.pipeline()).execute_in_process(
            instance=self.instance, tags=dict(request.tags),
            asset_selection=request.asset_selection, raise_on_error=False,
            run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
        )  # fmt: skip


@pytest.fixture
def watched(tmp_path: Path, database: str, repository: GitRepository) -> Watched:
    repository.commit("2024-01-20T10:00", {"guide.md": "# Guide\n\nHow it is done.\n"})
    source = {"source": str(repository.path), "name": "acme/project", "branch": "main"}
    return Watched(Installation(tmp_path / "home", database, [source], start_date=date(2024, 1, 10)))


def push(*days: str, ref: str = "refs/heads/main", name: str = "acme/project") -> str:
    """The payload of a push with commits of these days."""
    commits = [{"id": "c", "timestamp": f"{day}T10:00:00Z"} for day in days]
    return json.dumps({"ref": ref, "commits": commits, "repository": {"id": 1, "full_name": name}})


def names(keys: Sequence[dg.AssetKey] | None) -> set[str]:
    return {key.to_user_string() for key in keys or ()}


def test_an_empty_inbox_asks_for_nothing(watched):
    assert watched.skipped() == f"the inbox is empty: {watched.installation.settings.inbox_url}"
    assert watched.cursor is None


def test_drops_ask_for_one_run_of_today_which_takes_them(watched):
    watched.installation.drop("runbook.md", "Restart the broker.")
    watched.installation.drop("memory.md", "Prefers short answers.")
    request = watched.request()
    assert (request.tags["dagster/partition"], names(request.asset_selection)) == (TODAY, ALWAYS)
    assert watched.run(request).success
    assert set(watched.installation.documents()) == {"runbook.md", "memory.md"}
    assert watched.skipped() == f"the inbox is empty: {watched.installation.settings.inbox_url}"


def test_the_same_batch_asks_again_only_after_a_growing_pause(watched):
    watched.installation.drop("runbook.md", "Restart the broker.")
    keys = [watched.request().run_key]
    pauses = []
    for _ in range(3):
        pause = 0
        while not (found := watched.tick()).run_requests:
            assert "trying again at" in (found.skip_message or "")
            pause += 1
        keys.append(found.run_requests[0].run_key)
        pauses.append(pause)
    assert len(set(keys)) == 4
    assert pauses == sorted(set(pauses))
    watched.installation.drop("another.md", "This makes it another batch.")
    assert watched.request().run_key not in keys


def test_the_same_names_dropped_again_are_another_batch(watched):
    watched.installation.drop("runbook.md", "Restart the broker.")
    first = watched.request()
    watched.run(first)
    watched.installation.drop("runbook.md", "Restart the broker, then the queue.")
    second = watched.request()
    assert second.run_key != first.run_key
    assert watched.run(second).success
    assert watched.installation.documents()["runbook.md"] == ["Restart the broker, then the queue."]


@pytest.mark.parametrize("status", [dg.DagsterRunStatus.NOT_STARTED, dg.DagsterRunStatus.STARTED])
def test_no_second_run_is_asked_for_while_one_takes_drops(watched, status):
    watched.installation.drop("runbook.md", "Restart the broker.")
    watched.request()
    run = watched.instance.create_run_for_job(
        build_defs(watched.installation.settings).resolve_job_def(REFRESH_JOB),
        tags={"dagster/sensor_name": DROP_SENSOR}, status=status,
    )  # fmt: skip
    watched.installation.drop("another.md", "One more.")
    assert watched.skipped(seconds=3600) == "2 drops wait for the run that is taking drops now"
    watched.instance.report_run_canceled(run)
    assert watched.request().run_key


def test_a_run_that_somebody_else_started_does_not_hold_the_sensor_up(watched):
    job = build_defs(watched.installation.settings).resolve_job_def(REFRESH_JOB)
    watched.instance.create_run_for_job(job, status=dg.DagsterRunStatus.STARTED)
    watched.installation.drop("runbook.md", "Restart the broker.")
    assert watched.request().run_key


def test_a_push_refreshes_the_files_from_its_oldest_commit_on(watched, repository):
    watched.installation.refresh()
    repository.commit("2024-01-29T10:00", {"guide.md": "# Guide\n\nHow it is done now.\n"})
    repository.commit("2024-01-30T10:00", {"new.py": "def new():\n    return 1\n"})
    watched.installation.drop("push.1.json", push("2024-01-30", "2024-01-29"))
    watched.installation.drop("push.2.json", push("2024-01-30"))
    request = watched.request()
    assert names(request.asset_selection) == {*ALWAYS, "raw_docs", "raw_code"}
    assert request.partition_key is None
    assert request.tags["dagster/asset_partition_range_start"] == "2024-01-29"
    assert request.tags["dagster/asset_partition_range_end"] == TODAY
    assert watched.run(request).success
    assert watched.installation.documents() == {
        "acme/project:guide.md": ["# Guide\n\nHow it is done now."],
        "acme/project:new.py": ["def new():\n    return 1"],
    }
    assert [str(days) for days in watched.installation.planned()] == [TODAY]


def test_a_push_of_today_refreshes_the_files_of_today(watched):
    watched.installation.drop("push.1.json", push(TODAY))
    request = watched.request()
    assert (request.partition_key, "raw_docs" in names(request.asset_selection)) == (TODAY, True)


def test_a_push_of_old_commits_begins_at_the_first_partition(watched):
    watched.installation.drop("push.1.json", push("2011-03-01"))
    assert watched.request().tags["dagster/asset_partition_range_start"] == "2024-01-10"


@pytest.mark.parametrize(
    "payload",
    [
        push("2024-01-20", ref="refs/tags/v1"), push("2024-01-20", ref="refs/heads/feature"),
        push("2024-01-20", name="acme/unknown"), '{"ref": 7}', '{"ref": "refs/',
    ],
)  # fmt: skip
def test_what_is_no_push_to_an_indexed_branch_refreshes_no_files(watched, payload):
    watched.installation.drop("push.1.json", payload)
    assert names(watched.request().asset_selection) == ALWAYS


def test_a_push_that_arrives_while_the_run_starts_waits_for_a_run_of_its_own(watched, repository):
    watched.installation.refresh()
    watched.installation.drop("runbook.md", "Restart the broker.")
    request = watched.request()
    repository.commit("2024-01-31T10:00", {"guide.md": "# Guide\n\nHow it is done now.\n"})
    watched.installation.drop("push.1.json", push(TODAY), seconds_ago=30)
    watched.run(request)
    assert "push.1.json" in watched.installation.inbox()
    following = watched.request()
    assert "raw_docs" in names(following.asset_selection)
    watched.run(following)
    assert watched.installation.documents()["acme/project:guide.md"] == ["# Guide\n\nHow it is done now."]


def test_pushes_do_not_matter_where_no_files_are_indexed(watched):
    watched.installation.repositories = [{"github": "acme/rocket", "name": "rocket"}]
    watched.installation.drop("push.1.json", push("2024-01-20", name="acme/rocket"))
    assert names(watched.request().asset_selection) == ALWAYS


def test_thousands_of_drops_ask_for_one_bounded_run_at_a_time(watched):
    for number in range(2000):
        watched.installation.drop(f"{number:04}.txt", f"Number {number}.")
    request = watched.request()
    assert request.tags["rag/drops"] == "500"
    watched.installation.more = {"drops": {"max_batch": 30}}
    assert watched.run(request).success
    assert set(watched.installation.documents()) == {f"{number:04}.txt" for number in range(30)}
    following = watched.request()
    assert (following.tags["rag/drops"], following.run_key != request.run_key) == ("30", True)


def test_the_sensor_is_on_and_the_schedule_waits_to_be_switched_on(watched):
    defs = build_defs(watched.installation.settings)
    sensor = defs.resolve_sensor_def(DROP_SENSOR)
    assert sensor.default_status == dg.DefaultSensorStatus.RUNNING
    assert sensor.minimum_interval_seconds == 10
    schedule = defs.resolve_schedule_def("weekly_reconciliation")
    assert (schedule.job_name, schedule.execution_timezone) == (RECONCILE_JOB, "UTC")
    assert schedule.default_status == dg.DefaultScheduleStatus.STOPPED


def test_a_day_later_the_run_is_of_the_new_day(watched):
    watched.installation.drop("runbook.md", "Restart the broker.")
    watched.installation.now += timedelta(days=1)
    assert watched.request().partition_key == "2024-02-01"
