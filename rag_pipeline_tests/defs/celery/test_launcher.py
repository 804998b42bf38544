"""Who is at a run is asked of the workers; a silent one loses its run, and a cancelled run is not a crashed one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace

import dagster as dg
import pytest

pytest.importorskip("dagster_celery", reason="the extra `celery` is not installed")

from dagster._core.launcher import WorkerStatus
from dagster_celery.tags import DAGSTER_CELERY_TASK_ID_TAG

from rag_pipeline.defs.celery.launcher import TASK_TAG, WORKER_TAG, CeleryLauncher

TASK, WORKER = "task-1", "worker@one"


@dataclass
class Workers:
    """What Celery's remote control shows of the workers."""

    answers: Mapping[str, object] | None = None
    broken: bool = False
    asked: list[Sequence[str] | None] = field(default_factory=list)
    revoked: list[tuple[str, str]] = field(default_factory=list)

    def inspect(self, *, destination: Sequence[str] | None, timeout: float) -> Workers:
        assert timeout > 0
        self.asked.append(destination)
        return self

    def query_task(self, task: str) -> Mapping[str, object] | None:
        assert task == TASK
        if self.broken:
            raise ConnectionError("no broker")
        return self.answers

    def revoke(self, task: str, *, terminate: bool, signal: str) -> None:
        assert terminate
        self.revoked.append((task, signal))


@pytest.fixture
def workers() -> Workers:
    return Workers()


@pytest.fixture
def clock() -> list[float]:
    return [1000.0]


@pytest.fixture
def launcher(workers: Workers, clock: list[float]) -> CeleryLauncher:
    launcher = CeleryLauncher(
        silence_s=60, clock=lambda: clock[0], default_queue="dagster", broker="memory://", backend="cache+memory://"
    )
    launcher.celery = SimpleNamespace(control=workers)
    return launcher


def run_on(worker: str | None = WORKER, status: dg.DagsterRunStatus = dg.DagsterRunStatus.STARTED) -> dg.DagsterRun:
    assert TASK_TAG == DAGSTER_CELERY_TASK_ID_TAG
    tags = {TASK_TAG: TASK} | ({WORKER_TAG: worker} if worker else {})
    return dg.DagsterRun(job_name="refresh", tags=tags, status=status)


def health(launcher: CeleryLauncher, run: dg.DagsterRun) -> WorkerStatus:
    return launcher.check_run_worker_health(run).status


def test_a_run_that_its_worker_is_at_goes_on_however_long_it_takes(launcher, workers, clock):
    workers.answers = {WORKER: {TASK: ["active", {}]}}
    run = run_on()
    for _ in range(5):
        assert health(launcher, run) == WorkerStatus.RUNNING
        clock[0] += 10_000
    assert workers.asked == [[WORKER]] * 5


@pytest.mark.parametrize("answers", [None, {}, {WORKER: {}}, {WORKER: {TASK: ["reserved", {}]}}])
def test_a_worker_that_is_not_at_its_run_loses_it_after_the_silence_and_not_before(launcher, workers, clock, answers):
    workers.answers = answers
    run = run_on()
    assert health(launcher, run) == WorkerStatus.RUNNING
    clock[0] += 59
    assert health(launcher, run) == WorkerStatus.RUNNING
    clock[0] += 1
    said = launcher.check_run_worker_health(run)
    assert said.status == WorkerStatus.FAILED
    assert WORKER in said.msg


def test_an_answer_ends_the_silence(launcher, workers, clock):
    run = run_on()
    health(launcher, run)
    clock[0] += 59
    workers.answers = {WORKER: {TASK: ["active", {}]}}
    assert health(launcher, run) == WorkerStatus.RUNNING
    workers.answers = None
    clock[0] += 59
    assert health(launcher, run) == WorkerStatus.RUNNING


def test_a_run_that_nobody_has_put_his_name_to_is_asked_of_all(launcher, workers):
    workers.answers = {"worker@two": {TASK: ["active", {}]}}
    assert health(launcher, run_on(None)) == WorkerStatus.RUNNING
    assert workers.asked == [None]


def test_a_broker_that_is_away_ends_no_run(launcher, workers, clock):
    workers.broken = True
    run = run_on()
    for _ in range(3):
        with pytest.raises(ConnectionError):
            launcher.check_run_worker_health(run)
        clock[0] += 10_000
    workers.broken = False
    assert health(launcher, run) == WorkerStatus.RUNNING


def test_a_cancelled_run_is_on_record_as_such_before_its_process_is_told(launcher, workers):
    with dg.DagsterInstance.ephemeral() as instance:
        launcher.register_instance(instance)
        run = run_on()
        instance.add_run(run)
        assert launcher.terminate(run.run_id)
        assert instance.get_run_by_id(run.run_id).status == dg.DagsterRunStatus.CANCELING
        assert workers.revoked == [(TASK, "SIGTERM")]
        over = run_on(status=dg.DagsterRunStatus.SUCCESS)
        instance.add_run(over)
        assert not launcher.terminate(over.run_id)
        assert not launcher.terminate("unknown")
