"""`rag-pipeline forget` as a user meets it: it shows, asks, removes, proves, and takes a mistake back."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from rag_pipeline_tests.embedded.servers import temporary_home
from rag_pipeline_tests.git_repository import GitRepository
from rag_pipeline_tests.test_cli import README, Shell


@pytest.fixture
def shell(repository: GitRepository) -> Iterator[Shell]:
    repository.commit("2024-01-02T10:00", {"README.md": README, "plan.md": "# Plan\n\nThe quokka goes by night.\n"})
    (repository.path.parent / "rag_pipeline.toml").write_text('[[repositories]]\nsource = "project"\n')
    with temporary_home() as home:
        found = Shell(repository.path.parent, home)
        done = found("materialize")
        assert done.returncode == 0, done.stderr
        yield found


@pytest.mark.slow
def test_a_document_is_forgotten_after_a_look_and_a_mistake_is_taken_back(shell: Shell) -> None:
    assert "confirm with --yes" in shell.fails("forget", "--document", "plan.md")
    assert "quokka" in shell("search", "quokka by night").stdout
    done = shell("forget", "--document", "plan.md", "--yes", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["before"]["documents"] == 1
    assert not any(told["left"].values())
    assert "quokka" not in shell("search", "quokka by night").stdout
    assert shell("forget", "--verify").returncode == 0
    assert shell("materialize").returncode == 0
    assert "quokka" not in shell("search", "quokka by night").stdout
    undone = shell("forget", "--undo", "--document", told["document_id"])
    assert "the next refresh reads it again" in undone.stdout
    assert shell("materialize").returncode == 0
    assert "quokka" in shell("search", "quokka by night").stdout


@pytest.mark.slow
def test_options_that_name_nothing_or_two_things_are_refused(shell: Shell) -> None:
    assert "name one thing to forget" in shell.fails("forget")
    assert "name one thing to forget" in shell.fails("forget", "--expired", "--verify")
    assert "exclude each other" in shell.fails("forget", "--repo", "project", "--author", "ada")
    assert "no document of tenant 'default' is called 'none.md'" in shell.fails(
        "forget", "--document", "none.md", "--yes"
    )
    assert "there is no repository 'other'" in shell.fails("forget", "--repo", "other", "--yes")
    expired = shell("forget", "--expired")
    assert expired.returncode == 0, expired.stderr
