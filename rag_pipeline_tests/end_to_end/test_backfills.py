"""Backfills of many runs, as from the UI or over workers: they end in any order, and then nothing is left to do."""

from __future__ import annotations

import random
from datetime import date, timedelta
from pathlib import Path

import pytest

from rag_pipeline.cli.freshness import freshness_report
from rag_pipeline.errors import StorageUnavailable
from rag_pipeline.index.database import connected
from rag_pipeline.sources.git.reader import GitReader
from rag_pipeline_tests.end_to_end.installation import Installation
from rag_pipeline_tests.git_repository import GitRepository

RAW = ["raw_docs", "raw_code", "raw_webhook_drops"]
REST = ["documents", "chunks", "embeddings", "knowledge_index"]
TODAY = date(2024, 1, 31)
COMMITTED = {date(2024, 1, day) for day in (22, 24, 27, 28, 31)}


@pytest.fixture
def project(repository: GitRepository) -> GitRepository:
    """Commits on five days; one of them touches nothing that is indexed."""
    repository.commit("2024-01-22T10:00", {"README.md": "# Project\n\nWhat it is for.\n"})
    repository.commit("2024-01-24T10:00", {"guide.md": "# Guide\n\nHow it is done.\n"})
    repository.commit("2024-01-27T10:00", {"picture.bin": "\0\1"})
    repository.commit("2024-01-28T10:00", {"guide.md": "# Guide\n\nHow it is done now.\n"})
    repository.commit("2024-01-31T10:00", {"notes.md": "# Notes\n\nWhat was said.\n"})
    return repository


@pytest.fixture
def installation(tmp_path: Path, database: str, project: GitRepository) -> Installation:
    source = {"source": str(project.path), "name": "project"}
    return Installation(tmp_path / "home", database, [source], start_date=date(2024, 1, 20))


def states(installation: Installation) -> set[str]:
    with connected(installation.database) as connection:
        return {row["state"] for row in freshness_report(installation.settings, connection, now=installation.now)}


def nothing_is_left(installation: Installation) -> bool:
    return states(installation) == {"fresh"} and [str(days) for days in installation.planned()] == [str(TODAY)]


def committed(project: GitRepository) -> dict[str, list[str]]:
    """What the index has to show."""
    return {f"project:{path.name}": [path.read_text().strip()] for path in project.path.glob("*.md")}


def days(first: str, last: str) -> list[date]:
    count = (date.fromisoformat(last) - date.fromisoformat(first)).days + 1
    return [date.fromisoformat(first) + timedelta(days=n) for n in range(count)]


@pytest.mark.parametrize("seed", [None, 1])
def test_runs_of_a_day_each_in_any_order_leave_nothing_to_do(installation, seed):
    order = days("2024-01-20", "2024-01-31")
    random.Random(seed).shuffle(order) if seed else order.reverse()
    for number, day in enumerate(order):
        assert not nothing_is_left(installation) or not set(order[number:]) & COMMITTED
        installation.run(day)
    assert nothing_is_left(installation)


def test_of_overlapping_runs_in_any_order_nothing_is_left(installation):
    for first, last in [("2024-01-27", "2024-01-31"), ("2024-01-23", "2024-01-28"), ("2024-01-20", "2024-01-24")]:
        assert not nothing_is_left(installation)
        installation.run(first, last)
    assert nothing_is_left(installation)


def test_runs_that_work_beside_each_other_leave_nothing_to_do(installation):
    early, late = ("2024-01-20", "2024-01-25"), ("2024-01-26", "2024-01-31")
    for run in (early, late):
        installation.run(*run, select=RAW)
    installation.run(*late, select=REST)
    assert not nothing_is_left(installation)
    installation.run(*early, select=REST)
    assert nothing_is_left(installation)


# Some of those that come to rest between, too.
@pytest.mark.parametrize("seed", [2, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (6, 9, 15, 16))])
def test_whatever_overlaps_and_interleaves_nothing_counts_as_indexed_before_it_is(installation, project, seed):
    """Runs over random ranges, their halves in random order, with commits between them: fresh means the whole index."""
    chance = random.Random(seed)
    waiting: list[tuple[date, date]] = []
    for number in range(16):
        if waiting and chance.random() < 0.5:
            installation.run(*waiting.pop(chance.randrange(len(waiting))), select=REST)
        else:
            first, last = (
                chance.choice(days("2024-01-20", "2024-01-31")),
                chance.choice(days("2024-01-28", "2024-01-31")),
            )
            first, last = min(first, last), max(first, last)
            installation.run(first, last, select=RAW)
            waiting.append((first, last))
        if chance.random() < 0.2:
            path = chance.choice(["guide.md", "notes.md", f"new{number}.md"])
            project.commit(f"2024-01-31T10:{number + 1:02}", {path: f"# State {number}\n\nNow it is {number}.\n"})
        # Nothing is said to be left: then nothing must be.
        if not any("(git)" in reason for reason in installation.plan().reasons):
            assert installation.documents() == committed(project)
    installation.refresh()
    assert installation.documents() == committed(project)
    assert nothing_is_left(installation)


def test_a_run_that_died_after_reading_is_finished_by_the_steps_that_are_left(installation):
    installation.run("2024-01-20", "2024-01-31", select=RAW)
    assert states(installation) == {"never indexed"}
    installation.run("2024-01-20", "2024-01-31", select=REST)
    assert nothing_is_left(installation)


def test_a_commit_that_came_after_the_reading_is_left_to_do(installation, project):
    installation.run("2024-01-26", "2024-01-31")
    project.commit("2024-01-31T11:00", {"late.md": "# Late\n\nNobody has read it.\n"})
    # It fetches the mirror, which has the commit then, and reads its own days only.
    installation.run("2024-01-20", "2024-01-25")
    assert not nothing_is_left(installation)
    assert "project:late.md" not in installation.documents()
    installation.refresh()
    assert "project:late.md" in installation.documents()
    assert nothing_is_left(installation)


def test_a_history_that_was_rewritten_since_is_read_again(installation, project):
    installation.run("2024-01-26", "2024-01-31")
    project.git("reset", "--hard", "HEAD~1")
    project.commit("2024-01-31T12:00", {"other.md": "# Other\n\nWritten instead.\n"})
    installation.run("2024-01-20", "2024-01-25")
    assert not nothing_is_left(installation)
    installation.refresh()
    assert {"project:other.md"} == {name for name in installation.documents() if "other" in name or "notes" in name}


def test_other_settings_read_everything_again(installation):
    installation.run("2024-01-26", "2024-01-31")
    installation.more = {"chunking": {"max_tokens": 50, "min_tokens": 8}}
    installation.run("2024-01-20", "2024-01-25")
    assert not nothing_is_left(installation)
    installation.refresh()
    assert nothing_is_left(installation)


def test_a_repository_that_was_read_in_part_is_left_to_do(installation, tmp_path, monkeypatch):
    other = GitRepository(tmp_path / "other")
    other.commit("2024-01-25T10:00", {"other.md": "# Other\n\nAnother matter.\n"})
    installation.repositories = [*installation.repositories, {"source": str(other.path), "name": "other"}]
    items = GitReader.items

    def broken(self, changes, **more):
        if any(change.path == "guide.md" for change in changes):
            raise StorageUnavailable("an object of the repository cannot be read")
        return items(self, changes, **more)

    with monkeypatch.context() as disk:
        disk.setattr(GitReader, "items", broken)
        installation.run("2024-01-20", "2024-01-31")
    assert set(installation.documents()) == {"project:notes.md", "other:other.md"}, "the newest day is read first"
    assert not nothing_is_left(installation)
    installation.refresh()
    assert {"project:guide.md", "project:README.md"} < set(installation.documents())
    assert nothing_is_left(installation)


def test_nothing_is_kept_of_runs_that_everything_before_has_caught_up_with(installation):
    for day in reversed(days("2024-01-20", "2024-01-31")):
        installation.run(day)
    installation.refresh()
    with connected(installation.database) as connection:
        assert connection.execute("SELECT * FROM rag.windows_read").fetchall() == []
