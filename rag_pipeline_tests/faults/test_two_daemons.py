"""Two daemons on one RAG_HOME, as after a deployment that forgot the old one: each run happens, the index is right."""

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
_LONGEST_S = 240.0


def test_two_daemons_end_in_the_index_of_one(plant: Plant, project: GitRepository, outcome: Record) -> None:
    plant.start_daemon()
    first = plant.daemon
    plant.start_daemon()
    plant.launch_backfill()
    plant.wait_for_worker()
    plant.launch_backfill()
    runs = _settled(plant)
    assert [status for status in runs if status != "SUCCESS"] == [], plant.printed()
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


def _settled(plant: Plant) -> list[str]:
    """How both runs ended."""
    until = time.monotonic() + _LONGEST_S
    while time.monotonic() < until:
        with psycopg.connect(EmbeddedPostgres(plant.home).url("dagster")) as connection:
            runs = [row[0] for row in connection.execute("SELECT status FROM runs").fetchall()]
        if len(runs) >= 2 and all(status in ("SUCCESS", "FAILURE", "CANCELED") for status in runs):
            return runs
        time.sleep(0.5)
    raise AssertionError(f"the runs did not end: {plant.printed()}")
