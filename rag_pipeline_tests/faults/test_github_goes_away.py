"""GitHub goes away at any request of a refresh or a reconciliation, and comes back: nothing is lost or removed."""

from __future__ import annotations

import random
from datetime import UTC, datetime

import pytest

from rag_pipeline.errors import RagPipelineError
from rag_pipeline_tests.end_to_end.conftest import _not_drawn, forge, github, indexing
from rag_pipeline_tests.faults.conftest import Record
from rag_pipeline_tests.github_server.faults import Fault, Kind
from rag_pipeline_tests.github_server.generated import generate
from rag_pipeline_tests.github_server.model import Forge
from rag_pipeline_tests.github_server.nouns import Repository

__all__ = ["_not_drawn", "forge", "github"]

pytestmark = pytest.mark.faults
KINDS: tuple[Kind, ...] = ("close", "cut", "truncated", "html", "status", "slow")
HASTY = {"github": {"max_retries": 1, "max_wait_s": 10, "timeout_s": 1.0}}
_TOO_LONG_S = 2.5


@pytest.fixture
def rocket(forge: Forge) -> Repository:
    found = generate(forge, seed=3, issues=5, pulls=3, comments=1, reviews=1, review_comments=1, days=8)
    forge.now = datetime(2024, 5, 2, 12, tzinfo=UTC)
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_github_goes_away_in_the_middle_of_a_first_reading_and_of_a_reconciliation(
    kind, forge, github, rocket, tmp_path, database, other_database, outcome: Record
):
    cold = indexing(github, tmp_path / "cold", other_database)
    cold.refresh()
    requests, first = len(github.requests), cold.shown()
    followed = indexing(github, tmp_path / "home", database, more=HASTY)
    chance = random.Random(kind)
    for after in sorted(chance.sample(range(1, requests), 3)):
        _away(github, kind, after)
        reasons = _tries(followed.refresh)
        assert {key: first[key] for key in followed.shown()} == followed.shown(), "half a thread"
        assert followed.failures() or reasons
        github.faults.clear()
    followed.refresh()
    assert (followed.shown(), followed.failures()) == (first, [])
    forge.edit_thread(rocket.issues()[0], body="Without a trace.", silently=True)
    forge.delete_issue(rocket.issues()[-1])
    for after in (1, 3):
        _away(github, kind, after)
        _tries(lambda: followed.reconcile(confirm=True))
        assert len(followed.shown()) >= len(first) - 1, "an absence was taken for a deletion"
        github.faults.clear()
    followed.reconcile(confirm=True)
    followed.refresh()
    cold.reconcile(confirm=True)
    assert (followed.shown(), followed.failures()) == (cold.shown(), [])
    outcome(f"GitHub goes away ({kind})", "refresh, reconciliation", "converged", rows=len(first))


def _away(github, kind: Kind, after: int) -> None:
    status = 503 if kind == "status" else None
    github.faults.add(Fault(match="", kind=kind, after=after, times=None, status=status, seconds=_TOO_LONG_S))


def _tries(action) -> list[str]:
    try:
        action()
    except (RagPipelineError, AssertionError) as error:
        assert "Traceback" not in str(error)
        return [str(error)]
    return []
