"""Run worker, daemon or PostgreSQL killed at any point of a backfill: a rerun ends in the undisturbed index."""

from __future__ import annotations

import os
import random
import sys
import time
from pathlib import Path

import pytest

from rag_pipeline_tests.embedded.servers import temporary_home
from rag_pipeline_tests.faults.plant import Plant
from rag_pipeline_tests.faults.test_kill import finishes, index_of, log_of, project, start
from rag_pipeline_tests.git_repository import GitRepository

__all__ = ["project"]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.faults,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="finds its processes in /proc"),
]
VICTIMS = ("worker", "daemon", "postgres")
POINTS = 20 if os.environ.get("RAG_TEST_LONG") else 1
"""Of each victim."""
_LATEST_S = 12.0
_REACTION_S = 3.0


@pytest.fixture(scope="module")
def undisturbed(project: GitRepository) -> list[tuple[object, ...]]:
    with temporary_home() as home:
        finishes(start(project, home), home)
        return index_of(home)


@pytest.mark.parametrize(("victim", "point"), [(victim, n) for n in range(POINTS) for victim in VICTIMS])
def test_whatever_is_killed_at_whatever_point_a_rerun_gives_the_undisturbed_index(
    victim: str,
    point: int,
    plant: Plant,
    undisturbed: list[tuple[object, ...]],
    project: GitRepository,
) -> None:
    plant.start_daemon()
    plant.launch_backfill()
    plant.wait_for_worker()
    time.sleep(random.Random(f"{victim} {point}").uniform(0, _LATEST_S))
    plant.kill(victim)
    # What is left notices, or goes on: either way the rerun has to cope with it.
    time.sleep(_REACTION_S)
    if point % 2 == 0:
        plant.end()
    rerun_of(project, plant.home)
    if point % 2:
        # Something else was at work beside the rerun.
        plant.end()
        rerun_of(project, plant.home)
    assert index_of(plant.home) == undisturbed, plant.printed()


def rerun_of(project: GitRepository, home: Path) -> None:
    """A refresh from the command line, whatever else may still be at work."""
    process = start(project, home)
    assert process.wait(timeout=400) == 0, log_of(home).read_text(encoding="utf-8", errors="replace")[-4000:]
