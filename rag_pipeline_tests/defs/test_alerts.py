"""Each failure is told once by each channel, whatever happens to the others, and a storm is a few messages."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest

from rag_pipeline.definitions import build_defs
from rag_pipeline.defs.automation.alerts import alerts_sensor
from rag_pipeline.defs.resources import Pipeline
from rag_pipeline.settings import Settings
from rag_pipeline_tests.alerting.receivers import Mails, Posts, http_receiver, smtp_receiver

SECRET = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"


@dg.op(config_schema={"says": str})
def work(context: dg.OpExecutionContext) -> None:
    if says := context.op_config["says"]:
        raise dg.Failure(says, allow_retries=False)


@dg.job
def refresh() -> None:
    work()


@dg.asset
def documents() -> None:
    pass


def checked(*, severity: dg.AssetCheckSeverity) -> dg.Definitions:
    @dg.asset_check(asset=documents)
    def no_secrets() -> dg.AssetCheckResult:
        return dg.AssetCheckResult(passed=False, severity=severity, description="2 documents hold a secret")

    return dg.Definitions(assets=[documents], asset_checks=[no_secrets])


@dataclass
class Watch:
    """The sensor, ticked by hand."""

    settings: Settings
    environ: dict[str, str]
    instance: dg.DagsterInstance
    now: datetime = datetime(2024, 5, 1, tzinfo=UTC)
    cursor: str | None = None
    said: list[str] = field(default_factory=list)

    def tick(self) -> str:
        (sensor,) = alerts_sensor(self.settings)
        pipeline = Pipeline(settings=self.settings, environ=self.environ, clock=lambda: self.now)
        with dg.build_sensor_context(
            instance=self.instance, cursor=self.cursor, resources={"pipeline": pipeline}
        ) as context:
            skipped = sensor(context)
            self.cursor = context.cursor
        self.now += timedelta(seconds=30)
        assert isinstance(skipped, dg.SkipReason)
        return skipped.skip_message or ""

    def fail(self, says: str = "no such branch: name another", **tags: str) -> str:
        config = {"ops": {"work": {"config": {"says": says}}}}
        return refresh.execute_in_process(
            config, instance=self.instance, raise_on_error=False, tags={"dagster/partition": "2024-05-01", **tags}
        ).run_id


@pytest.fixture
def posts() -> Iterator[Posts]:
    with http_receiver() as receiver:
        yield receiver


@pytest.fixture
def mails() -> Iterator[Mails]:
    with smtp_receiver() as receiver:
        yield receiver


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as instance:
        yield instance


@pytest.fixture
def watch(tmp_path: Path, posts: Posts, mails: Mails, instance: dg.DagsterInstance) -> Watch:
    settings = Settings.model_validate({
        "home": tmp_path,
        "alerts": {
            "webhook_url_env": "HOOK", "ui_url": "http://ui", "email_to": ["ada@example.org"], "max_per_hour": 5,
            "email_from": "rag@example.org", "smtp_host": "127.0.0.1", "smtp_port": mails.port, "smtp_security": "none",
        },
    })  # fmt: skip
    return Watch(settings=settings, environ={"HOOK": posts.url}, instance=instance)


def test_without_a_channel_there_is_no_sensor_and_with_one_it_runs_by_itself(watch, tmp_path):
    names = {sensor.name for sensor in build_defs(Settings(home=tmp_path)).sensors or ()}
    assert "alerts" not in names
    (sensor,) = [s for s in build_defs(watch.settings).sensors or () if s.name == "alerts"]
    assert sensor.default_status == dg.DefaultSensorStatus.RUNNING


def test_a_failed_run_is_told_once_by_each_channel_with_all_that_one_needs(watch, posts, mails):
    assert watch.tick() == "watching from now on"
    run_id = watch.fail(f"the token {SECRET} is refused: name another")
    watch.tick()
    assert watch.tick() == "nothing to tell"
    (body,) = posts.bodies
    assert (body["kind"], body["title"]) == ("run_failure", "refresh failed in work")
    assert body["facts"] == {"job": "refresh", "run": run_id, "days": "2024-05-01"}
    assert body["link"] == f"http://ui/runs/{run_id}"
    assert "is refused: name another" in body["reason"] and SECRET not in json.dumps(body)
    assert "launch the run again" in body["advice"]
    ((_, recipients, message),) = mails.taken
    assert recipients == ["ada@example.org"] and message["Subject"] == "[rag-pipeline] refresh failed in work"


def test_what_failed_before_anybody_was_to_be_told_is_history(watch, posts):
    watch.fail()
    watch.tick()
    watch.tick()
    assert posts.taken == []


def test_a_run_that_succeeds_or_is_tried_again_by_itself_is_nothing_to_tell(watch, posts):
    watch.tick()
    watch.fail("")
    watch.fail("broken", **{"dagster/will_retry": "true"})
    assert watch.tick() == "nothing to tell"
    assert posts.taken == []


def test_a_failed_check_is_told_although_its_run_succeeded(watch, posts):
    watch.tick()
    job = checked(severity=dg.AssetCheckSeverity.ERROR).resolve_implicit_global_asset_job_def()
    assert job.execute_in_process(instance=watch.instance).success
    watch.tick()
    (body,) = posts.bodies
    assert (body["kind"], body["reason"]) == ("check_failure", "2 documents hold a secret")
    assert body["title"] == "check no_secrets of documents failed"
    assert body["link"] == "http://ui/assets/documents?view=checks&checkDetail=no_secrets"


def test_a_check_that_only_warns_is_told_where_that_is_wanted(watch, posts):
    watch.tick()
    job = checked(severity=dg.AssetCheckSeverity.WARN).resolve_implicit_global_asset_job_def()
    job.execute_in_process(instance=watch.instance)
    assert watch.tick() == "nothing to tell"
    alerts = watch.settings.alerts.model_copy(update={"occasions": ("check_warning",)})
    watch.settings = watch.settings.model_copy(update={"alerts": alerts})
    job.execute_in_process(instance=watch.instance)
    watch.tick()
    assert [body["kind"] for body in posts.bodies] == ["check_warning"]


def test_a_channel_that_fails_hides_no_other_and_gets_the_alert_later(watch, posts, mails):
    watch.tick()
    posts.status = 500
    watch.fail()
    said = watch.tick()
    assert (
        "webhook: refused with HTTP 500" in said and "1 alerts wait, trying again" in said and "email: 1 told" in said
    )
    assert len(mails.taken) == 1
    posts.status = 200
    watch.tick()
    assert (len(posts.taken), len(mails.taken)) == (1, 1)


def test_many_at_once_are_one_message(watch, posts):
    watch.tick()
    for _ in range(4):
        watch.fail()
    watch.tick()
    assert [body["title"] for body in posts.bodies] == ["4 alerts"]


def test_a_storm_is_no_more_than_so_many_messages_an_hour_and_nothing_is_forgotten(watch, posts):
    watch.tick()
    for _ in range(8):
        watch.fail()
        said = watch.tick()
    assert len(posts.taken) == 5
    assert "webhook: 3 alerts wait, 5 messages went out in the last hour" in said
    watch.fail()
    watch.now += timedelta(hours=1)
    watch.tick()
    assert [body["title"] for body in posts.bodies[5:]] == ["4 alerts"]


def test_events_that_become_visible_late_are_told_too(watch, posts):
    """Ids are given when an event is written, but it is seen when its transaction ends."""
    watch.fail("")
    watch.tick()
    watch.fail()
    memory = json.loads(watch.cursor)
    watch.cursor = json.dumps(memory | {"after": memory["after"] + 900})
    watch.tick()
    assert len(posts.taken) == 1
