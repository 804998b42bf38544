"""A source is fresh when all that was read of it is in the index or in the quarantine, whatever its times say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rag_pipeline.cli.freshness import freshness_report
from rag_pipeline.defs.assets import raw_git
from rag_pipeline.errors import BudgetExceeded, PermanentError
from rag_pipeline.index.database import connected
from rag_pipeline.lake.store import Lake, Part
from rag_pipeline.quality import chunks, documents, parts, raw
from rag_pipeline_tests.end_to_end.installation import Installation
from rag_pipeline_tests.end_to_end.test_one_bad_source import BROKEN, _altered, part_of
from rag_pipeline_tests.git_repository import GitRepository

DAYS = ("2024-01-01", "2024-01-31")


def states(installation: Installation) -> dict[str, str]:
    with connected(installation.database) as connection:
        rows = freshness_report(installation.settings, connection, now=installation.now)
    return {row["repository"]: row["state"] for row in rows}


@pytest.fixture
def indexed(tmp_path: Path, database: str, repository: GitRepository) -> Installation:
    repository.commit("2024-01-02T10:00", {"a.md": "# A\n\nWords.\n"})
    made = Installation(
        tmp_path / "home",
        database,
        [{"source": str(repository.path), "name": "project", "tenant": "b"}],
        more={"quality": {"max_failures": 2, "max_failure_share": 0.5}},
    )
    made.run(*DAYS)
    assert states(made) == {"project": "fresh"}
    return made


def _push_an_old_commit(repository: GitRepository) -> None:
    """Made before the source was last read, and pushed only now."""
    repository.commit("2024-01-05T10:00", {"b.md": "# B\n\nOther words.\n"})


@pytest.mark.parametrize("failing", ["clean_items", "chunk_documents", "embed_space", "index_documents"])
def test_a_run_that_failed_leaves_its_source_behind(indexed, repository, monkeypatch, failing):
    _push_an_old_commit(repository)
    module = "index" if failing == "index_documents" else "knowledge"
    error = BudgetExceeded("no money left") if failing == "embed_space" else PermanentError("no")

    def fail(*_: object, **__: object) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(f"rag_pipeline.defs.assets.{module}.{failing}", fail)
        result, _ = indexed.try_run(*DAYS)
    assert not result.success
    assert states(indexed) == {"project": "behind"}
    indexed.run(*DAYS)
    assert states(indexed) == {"project": "fresh"}


@pytest.mark.parametrize("is_read", [True, False])
def test_a_raw_stage_that_failed_leaves_its_source_behind(indexed, repository, monkeypatch, is_read):
    """It fails before its files are in the lake, or after that."""
    _push_an_old_commit(repository)
    todo = indexed.plan()
    read = raw_git.read_git

    def fail(*args: Any, **options: Any) -> None:
        if is_read:
            read(*args, **options)
        raise PermanentError("no")

    with monkeypatch.context() as patch:
        patch.setattr(raw_git, "read_git", fail)
        result, _ = indexed.try_run(*DAYS, planned=todo)
    assert not result.success
    assert states(indexed) == {"project": "behind"}
    indexed.run(*DAYS)
    assert states(indexed) == {"project": "fresh"}


@pytest.mark.parametrize("stage", ["raw_docs", "documents", "chunks"])
def test_a_check_that_blocks_leaves_its_source_behind(indexed, repository, monkeypatch, stage):
    indexed.checks = True
    _push_an_old_commit(repository)
    columns = parts.wrong_columns

    def wrong(lake: Lake, part: Part, found: parts.Measured, **options: Any) -> bool:
        is_wrong = columns(lake, part, found, **options)
        found.figures["wrong_columns"] = int(options["stage"] == stage) + int(is_wrong)
        return is_wrong

    with monkeypatch.context() as patch:
        for module in (chunks, documents, raw):
            patch.setattr(module, "wrong_columns", wrong)
        result, _ = indexed.try_run(*DAYS)
    assert not result.success
    assert states(indexed) == {"project": "behind"}
    indexed.run(*DAYS)
    assert states(indexed) == {"project": "fresh"}


def test_two_configurations_on_one_home_judge_their_own_sources(indexed, repository, tmp_path):
    second = GitRepository(tmp_path / "second")
    second.commit("2024-01-02T10:00", {"a.md": "# A\n\nWords of the second.\n"})
    other = Installation(
        indexed.home, indexed.database, [{"source": str(second.path), "name": "second", "tenant": "c"}], now=indexed.now
    )
    assert states(other) == {"second": "never indexed"}
    other.run(*DAYS)
    assert (states(indexed), states(other)) == ({"project": "fresh"}, {"second": "fresh"})
    _push_an_old_commit(repository)
    indexed.plan()
    # A run of the other configuration reads, and makes fresh, nothing but its own source.
    other.run(*DAYS)
    assert (states(indexed), states(other)) == ({"project": "behind"}, {"second": "fresh"})
    _push_an_old_commit(second)
    other.plan()
    indexed.run(*DAYS)
    assert (states(indexed), states(other)) == ({"project": "fresh"}, {"second": "behind"})


def test_a_refresh_that_was_planned_and_not_run_leaves_its_source_behind(indexed, repository):
    _push_an_old_commit(repository)
    indexed.plan()
    assert states(indexed) == {"project": "behind"}


def test_a_source_that_was_stopped_is_behind_and_a_quarantined_item_is_not(indexed, repository):
    repository.commit("2024-01-05T10:00", {"0.ipynb": "{", "b.md": "# B\n\nOther words.\n"})
    indexed.run(*DAYS)
    assert states(indexed) == {"project": "fresh"}
    repository.commit("2024-01-06T10:00", BROKEN)
    indexed.try_run(*DAYS)
    assert states(indexed) == {"project": "behind"}


def test_a_run_over_another_day_makes_nothing_fresh(indexed, repository):
    _push_an_old_commit(repository)
    indexed.run("2024-01-02")
    assert states(indexed) == {"project": "behind"}
    indexed.run("2024-01-05")
    indexed.run(*DAYS)
    assert states(indexed) == {"project": "fresh"}


def test_a_change_in_a_damaged_part_is_not_fresh_until_it_is_made_again(indexed, repository):
    repository.commit("2024-01-05T10:00", {f"{n}.md": f"# B\n\nOther words {n}.\n" * 40 for n in range(90)})
    indexed.run(*DAYS, select=["raw_docs"])
    _altered(part_of(indexed, "raw_docs", "b"))
    result, _ = indexed.try_run(*DAYS)
    assert not result.success
    assert states(indexed) == {"project": "behind"}
    indexed.run(*DAYS)
    assert states(indexed) == {"project": "fresh"}


def test_a_drop_that_waits_is_not_fresh(indexed):
    indexed.drop("a.md", "# A drop\n\nIts words.\n")
    assert states(indexed) == {"project": "fresh", "inbox": "behind"}
    indexed.run("2024-01-31")
    assert states(indexed) == {"project": "fresh", "inbox": "fresh"}


def test_a_source_that_cannot_be_reached_says_so_and_keeps_what_is_known(indexed, repository, tmp_path):
    repository.path.rename(tmp_path / "away")
    assert "does not exist" in " ".join(indexed.plan().reasons)
    with connected(indexed.database) as connection:
        (row,) = freshness_report(indexed.settings, connection, now=indexed.now)
    assert (row["state"], "cannot be read" in row["why"]) == ("fresh", True)
