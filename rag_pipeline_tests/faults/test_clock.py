"""The clock jumps, back and ahead, and is put right again: nothing that was changed meanwhile is missed."""

from __future__ import annotations

import json
import operator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from rag_pipeline_tests.end_to_end.conftest import FIRST_DAY, _not_drawn, forge, github
from rag_pipeline_tests.end_to_end.installation import Installation
from rag_pipeline_tests.faults.conftest import Record
from rag_pipeline_tests.git_repository import GitRepository
from rag_pipeline_tests.github_server.generated import generate
from rag_pipeline_tests.github_server.model import Forge
from rag_pipeline_tests.github_server.nouns import Repository
from rag_pipeline_tests.github_server.server import GitHubServer

__all__ = ["_not_drawn", "forge", "github"]

pytestmark = pytest.mark.faults
JUMPS = {
    "an hour back": timedelta(hours=-1), "three days back": timedelta(days=-3), "a minute ahead": timedelta(minutes=1),
    "a day ahead": timedelta(days=1), "forty days ahead": timedelta(days=40),
}  # fmt: skip
_HALF_A_REFRESH = 16
"""Looks at the clock: one takes 32 here."""


@dataclass
class Skewed(Installation):
    """One whose clock is wrong by `skew`, while GitHub's is right."""

    skew: timedelta = timedelta()
    looks_before: int = 0
    """So many looks at the clock are right before it jumps: in the middle of a run."""

    def _tick(self) -> datetime:
        self.looks_before -= 1
        return super()._tick() + (timedelta() if self.looks_before >= 0 else self.skew)


@pytest.fixture
def rocket(forge: Forge) -> Repository:
    found = generate(forge, seed=3, issues=5, pulls=2, comments=1, days=8)
    forge.now = datetime.fromisoformat("2024-05-02T12:00:00+00:00")
    return found


def installed(home: Path, database: str, project: GitRepository, github: GitHubServer) -> Skewed:
    repositories = [{"github": "acme/rocket", "name": "rocket"}, {"source": str(project.path), "name": "project"}]
    return Skewed(home, database, repositories, start_date=FIRST_DAY, now=github.forge.now, github=github)


def work(forge: Forge, rocket: Repository, project: GitRepository, round_: int) -> str:
    """What people do between two refreshes; the drop that somebody leaves."""
    first, second, gone = rocket.issues()[round_ % 2 :: 2][:2] + rocket.issues()[-1:]
    forge.comment(first, f"Said in round {round_}.", author="grace")
    forge.edit_thread(second, body=f"The body as of round {round_}.")
    if round_ == 2:
        forge.delete_issue(gone)
    at = forge.now - timedelta(minutes=5)
    project.commit(
        at, {"guide.md": f"# Guide\n\nAs of round {round_}.\n", f"{round_}.md": f"# Page {round_}\n\nNew.\n"}
    )
    return json.dumps({"id": "note", "content": f"The note of round {round_}.", "updated_at": at.isoformat()})


def _undated(row: tuple[Any, ...]) -> list[Any]:
    return [value for value in row if not isinstance(value, datetime)]


def _dates(row: tuple[Any, ...]) -> list[datetime]:
    return [value for value in row if isinstance(value, datetime)]


@pytest.mark.parametrize("when", ["between two refreshes", "in the middle of one"])
@pytest.mark.parametrize("jump", JUMPS)
def test_what_changes_while_the_clock_is_wrong_and_after_it_was_put_right_is_indexed(
    jump, when, forge, github, rocket, repository, tmp_path, database, other_database, outcome: Record
):
    repository.commit("2024-04-23T10:00", {"guide.md": "# Guide\n\nThe first words.\n"})
    followed = installed(tmp_path / "home", database, repository, github)
    note = ""
    for round_, skew in enumerate((timedelta(), JUMPS[jump], timedelta(), timedelta())):
        note = work(forge, rocket, repository, round_)
        followed.drop(f"note.{round_}.json", note, seconds_ago=240)
        followed.skew = skew
        followed.looks_before = _HALF_A_REFRESH if when == "in the middle of one" and skew else 0
        followed.refresh()
        followed.pass_time(7200)
    followed.refresh()
    followed.reconcile(confirm=True)
    cold = installed(tmp_path / "cold", other_database, repository, github)
    cold.drop("note.json", note, seconds_ago=240)
    cold.refresh()
    found, expected = followed.shown(), cold.shown()
    # The mirrors remember when they saw a change. While the clock was behind, that is early, and never of the future.
    assert {key: _undated(row) for key, row in found.items()} == {key: _undated(row) for key, row in expected.items()}
    late = [key for key in found if any(map(operator.gt, _dates(found[key]), _dates(expected[key])))]
    assert late == []
    assert followed.failures() == []
    outcome("clock wrong, then right", f"{jump}, {when}", "converged", rows=len(found))
