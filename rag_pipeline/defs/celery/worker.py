"""A Celery worker that executes runs: the same app as the launcher's, and a note of who took which run."""

from collections.abc import Mapping
from typing import Any

import dagster as dg
from celery import Celery
from celery.signals import task_prerun
from dagster._grpc.types import ExecuteRunArgs, ResumeRunArgs
from dagster._serdes import unpack_value
from dagster_celery.config import TASK_EXECUTE_JOB_NAME, TASK_RESUME_JOB_NAME
from dagster_celery.tasks import create_execute_job_task, create_resume_job_task

from rag_pipeline.defs.celery.launcher import WORKER_TAG, CeleryLauncher
from rag_pipeline.errors import ConfigError

_ARGUMENT = {TASK_EXECUTE_JOB_NAME: "execute_job_args_packed", TASK_RESUME_JOB_NAME: "resume_job_args_packed"}
_NOT_YET = (dg.DagsterRunStatus.NOT_STARTED, dg.DagsterRunStatus.STARTING)


def app_of(instance: dg.DagsterInstance) -> Celery:
    """The Celery app that `dagster.yaml` describes, with the tasks that execute runs.

    Raises:
        ConfigError: `dagster.yaml` names another launcher.
    """
    launcher = instance.run_launcher
    if not isinstance(launcher, CeleryLauncher):
        raise ConfigError(
            f"{instance.root_directory}/dagster.yaml hands no runs to workers: set DAGSTER_HOME to a folder with the "
            "dagster.yaml of deploy/celery, for the daemon, the webserver and every worker"
        )
    app = launcher.celery
    create_execute_job_task(app)
    create_resume_job_task(app)
    app.set_default()
    task_prerun.connect(_note_worker, weak=False)
    return app


def work(app: Celery, *, name: str, at_once: int, queue: str, loglevel: str) -> None:
    """Take runs until somebody stops it; the runs at work are finished first, once SIGTERM was sent."""
    app.worker_main([
        "worker", "--hostname", f"{name}@%h", "--concurrency", str(at_once), "--queues", queue, "--loglevel", loglevel,
        # A process for each run, as Dagster's own launcher has it: what one leaves behind is no burden to the next.
        "--pool", "prefork", "--max-tasks-per-child", "1",
        "--without-gossip", "--without-mingle",
    ])  # fmt: skip


def _note_worker(task: Any = None, kwargs: Mapping[str, Any] | None = None, **_: object) -> None:
    """Which worker a run is on. A task that comes a second time, for a run that is at work, changes nothing."""
    if task is None or task.name not in _ARGUMENT:
        return
    args = unpack_value((kwargs or {})[_ARGUMENT[task.name]], as_type=ExecuteRunArgs | ResumeRunArgs)  # type: ignore[arg-type]
    with dg.DagsterInstance.get() as instance:
        run = instance.get_run_by_id(args.run_id)
        if run is not None and run.status in _NOT_YET:
            instance.add_run_tags(run.run_id, {WORKER_TAG: task.request.hostname})
