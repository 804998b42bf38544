"""Where nothing can be read of one kind of source, the others go through all stages, and the run fails in the end."""

from __future__ import annotations

import shutil
from pathlib import Path

import psycopg
import pytest

from rag_pipeline.cli.runs import reason_of
from rag_pipeline_tests.end_to_end.conftest import FIRST_DAY
from rag_pipeline_tests.end_to_end.installation import Installation
from rag_pipeline_tests.git_repository import GitRepository
from rag_pipeline_tests.github_server.model import Forge
from rag_pipeline_tests.github_server.nouns import Repository
from rag_pipeline_tests.github_server.server import GitHubServer

SOURCES = {"git": "docs", "github": "rocket", "inbox": "inbox"}
"""The repository that each kind of source gives."""
REASONS = {
    "git": ("raw: ", "gone"),
    "github": ("raw_github: ", "Bad credentials"),
    "inbox": ("raw_drops: ", "cannot be used"),
}


@pytest.fixture
def all_kinds(
    tmp_path: Path, database: str, repository: GitRepository, forge: Forge, rocket: Repository, github: GitHubServer
) -> Installation:
    """One source of each kind, each with something new."""
    made = Installation(
        tmp_path / "home", database, [], start_date=FIRST_DAY, now=forge.now, github=github,
        environ={"GITHUB_TOKEN": "secret"},
    )  # fmt: skip
    repository.commit("2024-05-01T10:00", {"a.md": "# Page\n\nWords of the page.\n"})
    forge.open_issue(rocket, title="An issue", body="Words of the issue.")
    forge.tick(60)
    made.repositories = [
        {"source": str(repository.path), "name": "docs"},
        {"github": "acme/rocket", "name": "rocket"},
    ]
    made.drop("note.md", "# Note\n\nWords of the note.\n")
    return made


def take_away(kind: str, installation: Installation, tmp_path: Path) -> None:
    if kind == "git":
        docs, rocket = installation.repositories
        installation.repositories = [{**docs, "source": str(tmp_path / "gone")}, rocket]
    elif kind == "github":
        installation.environ = {"GITHUB_TOKEN": "wrong"}
    else:
        inbox = Path(installation.settings.inbox_url)
        shutil.move(inbox, inbox.with_name("elsewhere"))
        inbox.write_text("a file stands in its place")


def give_back(kind: str, installation: Installation, repository: GitRepository) -> None:
    if kind == "git":
        docs, rocket = installation.repositories
        installation.repositories = [{**docs, "source": str(repository.path)}, rocket]
    elif kind == "github":
        installation.environ = {"GITHUB_TOKEN": "secret"}
    else:
        inbox = Path(installation.settings.inbox_url)
        inbox.unlink()
        shutil.move(inbox.with_name("elsewhere"), inbox)


def found(installation: Installation) -> set[str]:
    """The repositories of which something can be found."""
    with psycopg.connect(installation.database) as connection:
        return {row[0] for row in connection.execute("SELECT repository FROM rag.documents WHERE NOT deleted")}


@pytest.mark.parametrize("planned", [True, False])
@pytest.mark.parametrize("kind", SOURCES)
def test_one_kind_of_source_away_stops_no_other(all_kinds, tmp_path, repository, kind, planned):
    take_away(kind, all_kinds, tmp_path)
    todo = all_kinds.plan() if planned else None
    result, pipeline = all_kinds.try_run(FIRST_DAY, all_kinds.now.date(), planned=todo)
    assert not result.success
    stage, why = REASONS[kind]
    reason = str(reason_of(result))
    assert reason.startswith(stage) and why in reason
    assert [line for line in pipeline.left_out if line.startswith(stage)] == pipeline.left_out
    assert found(all_kinds) == set(SOURCES.values()) - {SOURCES[kind]}
    assert [source_id for _, source_id, _ in all_kinds.failures()] == [SOURCES[kind]]
    give_back(kind, all_kinds, repository)
    all_kinds.refresh()
    assert found(all_kinds) == set(SOURCES.values())
    assert all_kinds.failures() == []


def test_a_kind_with_one_readable_source_does_not_fail_the_run(all_kinds, tmp_path):
    docs, rocket = all_kinds.repositories
    all_kinds.repositories = [docs, {"source": str(tmp_path / "gone"), "name": "gone"}, rocket]
    result, pipeline = all_kinds.try_run(FIRST_DAY, all_kinds.now.date())
    assert result.success and pipeline.left_out == []
    assert [source_id for _, source_id, _ in all_kinds.failures()] == ["gone"]
