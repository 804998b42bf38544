"""The launcher that hands runs to Celery's workers, and knows when one of them is gone.

dagster-celery's own launcher asks Celery's result store how a run is, which shows a run as started for ever when its
worker was killed. This one asks the workers themselves, and has whoever cancels a run say so first, so that Dagster
does not take a cancelled run for a crashed one and start it again.
"""

import time
from collections.abc import Callable, Mapping
from typing import Any, Final, Self, cast

import dagster as dg
from dagster._core.launcher import CheckRunHealthResult, WorkerStatus
from dagster._serdes import ConfigurableClassData
from dagster_celery.launcher import CeleryRunLauncher

WORKER_TAG: Final = "rag/worker"
"""Tag of a run: the worker that took it."""
TASK_TAG: Final = "dagster-celery/task_id"
"""Tag of a run, dagster-celery's: the task that executes it."""
_ANSWER_S: Final = 5.0
_KEPT: Final = 1000


class CeleryLauncher(CeleryRunLauncher):
    """Runs as Celery tasks; a run whose worker is silent for `silence_s` has failed, and Dagster retries it."""

    def __init__(self, *, silence_s: int, clock: Callable[[], float] = time.monotonic, **options: Any) -> None:
        super().__init__(**options)
        self.silence_s = silence_s
        self._clock = clock
        self._silent_since: dict[str, float] = {}

    @classmethod
    def config_type(cls) -> dict[str, Any]:
        """As dagster-celery's, and `silence_s`."""
        silence = dg.Field(
            dg.IntSource, is_required=False, default_value=60,
            description="Seconds for which no worker says that it is at a run, until the run has failed.",
        )  # fmt: skip
        inherited = cast("dict[str, Any]", super().config_type())
        return {**inherited, "silence_s": silence}

    @classmethod
    def from_config_value(cls, inst_data: ConfigurableClassData, config_value: Mapping[str, Any]) -> Self:
        """What `dagster.yaml` describes."""
        return cls(inst_data=inst_data, **config_value)

    def check_run_worker_health(self, run: dg.DagsterRun) -> CheckRunHealthResult:
        """Whether a worker is at this run. A broker that cannot be reached is an error, and says nothing of runs."""
        if self._is_at_work(run):
            self._silent_since.pop(run.run_id, None)
            return CheckRunHealthResult(WorkerStatus.RUNNING)
        now = self._clock()
        silent_s = now - self._silent_since.setdefault(run.run_id, now)
        if silent_s < self.silence_s:
            # A loaded machine answers late, and a broker that was restarted is found again after seconds.
            return CheckRunHealthResult(WorkerStatus.RUNNING, f"no worker has answered for {silent_s:.0f} s")
        while len(self._silent_since) > _KEPT:
            self._silent_since.pop(next(iter(self._silent_since)))
        worker = run.tags.get(WORKER_TAG, "its worker")
        return CheckRunHealthResult(
            WorkerStatus.FAILED,
            f"{worker} has not been at it for {silent_s:.0f} s: it was killed, ran out of memory or lost the broker",
        )

    def terminate(self, run_id: str) -> bool:
        """Cancel a run: the step at work is interrupted, as by Ctrl-C."""
        run = self._instance.get_run_by_id(run_id)
        if run is None or run.is_finished:
            return False
        self._instance.report_run_canceling(run)
        if task := run.tags.get(TASK_TAG):
            self.celery.control.revoke(task, terminate=True, signal="SIGTERM")
        return True

    def _is_at_work(self, run: dg.DagsterRun) -> bool:
        task = run.tags.get(TASK_TAG)
        if not task:
            return False
        worker = run.tags.get(WORKER_TAG)
        # Without a destination, all workers are asked, and the whole time is waited for their answers.
        asked = self.celery.control.inspect(destination=[worker] if worker else None, timeout=_ANSWER_S)
        answers: Mapping[str, Mapping[str, tuple[str, object]]] = asked.query_task(task) or {}
        return any(found[task][0] == "active" for found in answers.values() if task in found)
