"""Two daemons on one RAG_HOME, as after a deployment that forgot the old one: each run happens, at once or by
its retry, and the index is right."""

from __future__ import annotations

import sys
import time

import psycopg
import pytest

from rag_pipeline.embedded import EmbeddedPostgres
from rag_pipeline_tests.embedded.servers import temporary_home
from rag_pipeline_tests.faults.conftest import Record
from rag_pipeline_tests.faults.plant import Plant
from rag_pipeline_tests.faults.test_kill import finishes, index_of, locks_of, start
from rag_pipeline_tests.git_repository import GitRepository

pytestmark = [
    pytest.mark.faults,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="finds its processes in /proc"),
]
_LONGEST_S = 300.0
_QUIET_S = 8.0  # the daemon looks for what is to be retried every few seconds


def test_two_daemons_end_in_the_index_of_one(plant: Plant, project: GitRepository, outcome: Record) -> None:
    plant.start_daemon()
    first = plant.daemon
    plant.start_daemon()
    plant.launch_backfill()
    plant.wait_for_worker()
    plant.launch_backfill()
    runs = _settled(plant)
    # Dagster supports one daemon per instance, and says so in its log. What both take at once is started twice;
    # the second process leaves it alone, and the daemon that asks after that one calls the run failed and retries it.
    of_one = [run for run, (status, takers) in runs.items() if status != "SUCCESS" and takers == 1]
    assert of_one == [], _of_the_engine(plant)
    assert "SUCCESS" in {status for status, _ in runs.values()}, _of_the_engine(plant)
    assert first is not None and first.poll() is None, "the first one was ended by the second"
    plant.end()
    first.wait(timeout=30)
    # A refresh of whoever comes next leaves nothing of the runs behind, and adds nothing.
    finishes(start(project, plant.home), plant.home)
    found = index_of(plant.home)
    with temporary_home() as home:
        finishes(start(project, home), home)
        assert found == index_of(home)
    assert locks_of(plant.home) == ([], [])
    outcome("two daemons", f"{len(runs)} runs over all days", "converged", rows=len(found))


def _settled(plant: Plant) -> dict[str, tuple[str, int]]:
    """How each run ended, and how many took it; once nothing is at work, and no retry has come for some seconds."""
    until = time.monotonic() + _LONGEST_S
    since = time.monotonic()
    while time.monotonic() < until:
        with psycopg.connect(EmbeddedPostgres(plant.home).url("dagster")) as connection:
            runs = {
                run: (status, takers)
                for run, status, takers in connection.execute(
                    "SELECT run_id, status, (SELECT count(*) FROM event_logs e WHERE e.run_id = r.run_id"
                    " AND dagster_event_type = 'PIPELINE_STARTING') FROM runs r"
                ).fetchall()
            }
        ended = all(status in ("SUCCESS", "FAILURE", "CANCELED") for status, _ in runs.values())
        if len(runs) < 2 or not ended or plant.at_work():
            since = time.monotonic()
        elif time.monotonic() - since > _QUIET_S:
            return runs
        time.sleep(0.5)
    raise AssertionError(f"the runs did not end: {_of_the_engine(plant)}")


def _of_the_engine(plant: Plant) -> str:
    """What became of the runs: their events that are not about a step, and what was printed last."""
    with psycopg.connect(EmbeddedPostgres(plant.home).url("dagster")) as connection:
        events = connection.execute(
            "SELECT run_id, timestamp, dagster_event_type, event::json #>> '{dagster_event,message}' FROM event_logs"
            " WHERE run_id <> '' AND step_key IS NULL OR dagster_event_type LIKE '%FAILURE' ORDER BY id"
        ).fetchall()
    return "\n".join(" ".join(str(value) for value in event) for event in events) + "\n" + plant.printed()
