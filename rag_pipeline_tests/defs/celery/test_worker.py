"""A worker puts its name to the runs that it takes, and works for an instance that hands runs to workers only."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import dagster as dg
import pytest

pytest.importorskip("dagster_celery", reason="the extra `celery` is not installed")

from dagster._core.code_pointer import ModuleCodePointer
from dagster._core.origin import JobPythonOrigin, RepositoryPythonOrigin
from dagster._core.test_utils import instance_for_test
from dagster._grpc.types import ExecuteRunArgs
from dagster._serdes import pack_value
from dagster_celery.config import TASK_EXECUTE_JOB_NAME

from rag_pipeline.defs.celery.launcher import WORKER_TAG
from rag_pipeline.defs.celery.worker import _note_worker, app_of
from rag_pipeline.errors import ConfigError


def take(run: dg.DagsterRun, *, worker: str, task: str = TASK_EXECUTE_JOB_NAME) -> None:
    """As Celery tells it, before the task begins."""
    code = RepositoryPythonOrigin(
        executable_path=sys.executable, code_pointer=ModuleCodePointer("rag_pipeline.definitions", "defs")
    )
    origin = JobPythonOrigin(job_name="refresh", repository_origin=code)
    args = ExecuteRunArgs(job_origin=origin, run_id=run.run_id, instance_ref=None)
    _note_worker(
        task=SimpleNamespace(name=task, request=SimpleNamespace(hostname=worker)),
        kwargs={"execute_job_args_packed": pack_value(args)},
    )


def test_a_run_bears_the_name_of_the_worker_that_takes_it_and_keeps_it_when_it_is_offered_again():
    with instance_for_test() as instance:
        run = dg.DagsterRun(job_name="refresh", status=dg.DagsterRunStatus.STARTING)
        instance.add_run(run)
        take(run, worker="worker@one", task="celery.ping")
        assert WORKER_TAG not in instance.get_run_by_id(run.run_id).tags
        take(run, worker="worker@one")
        assert instance.get_run_by_id(run.run_id).tags[WORKER_TAG] == "worker@one"
        # It was lost before it had begun: another worker has it now.
        take(run, worker="worker@two")
        assert instance.get_run_by_id(run.run_id).tags[WORKER_TAG] == "worker@two"
        begun = dg.DagsterRun(job_name="refresh", status=dg.DagsterRunStatus.STARTED, tags={WORKER_TAG: "worker@one"})
        instance.add_run(begun)
        take(begun, worker="worker@two")
        assert instance.get_run_by_id(begun.run_id).tags[WORKER_TAG] == "worker@one"


def test_a_worker_for_an_instance_without_workers_says_which_file_is_wanted():
    with instance_for_test() as instance, pytest.raises(ConfigError, match=r"dagster\.yaml hands no runs to workers"):
        app_of(instance)
