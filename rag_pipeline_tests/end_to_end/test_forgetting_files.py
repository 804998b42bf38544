"""Forgetting what came from git: it is gone everywhere, others are as if it had never been, and it stays away."""

from __future__ import annotations

import random
import shutil
from datetime import date, timedelta
from pathlib import Path

import pytest

from rag_pipeline.errors import ConfigError, SourceNotFound
from rag_pipeline.model import document_id
from rag_pipeline.refresh import forgetting as forgetting_module
from rag_pipeline_tests.end_to_end import forgetting
from rag_pipeline_tests.end_to_end.forgetting import everything, forget_in, places_of, scores, undo_in, verify_in
from rag_pipeline_tests.end_to_end.installation import Installation
from rag_pipeline_tests.git_repository import GitRepository

QUESTIONS = ("deployment rollback", "how does the lantern work", "zanzibarx secret plan")
KEPT = {
    "README.md": "# Project\n\nWhat the lantern is for, and how its deployment works.\n",
    "docs/guide.md": "# Guide\n\n## Rollback\n\nHow a rollback of the deployment goes.\n\n# Lamp\n\nIt turns.\n",
    "src/app.py": 'def turn(lantern):\n    """Turns the lantern."""\n    return lantern\n',
}
SECRET = "# Plan\n\nThe zanzibarx plan of the deployment.\n\n## More\n\nNobody shall know the quixotx of it.\n"


def commit(repository: GitRepository, *, secret: bool) -> None:
    """Five days, with a file that was edited, or without it."""
    repository.commit("2024-01-02T10:00", {"README.md": KEPT["README.md"]})
    hidden = {"docs/secret.md": "# Plan\n\nAn older zanzibarx draft.\n"} if secret else {}
    repository.commit("2024-01-03T10:00", {"docs/guide.md": "# Guide\n\nNothing yet.\n", **hidden})
    repository.commit("2024-01-05T10:00", {"docs/guide.md": KEPT["docs/guide.md"]})
    repository.commit("2024-01-08T10:00", {"docs/secret.md": SECRET} if secret else {})
    repository.commit("2024-01-09T10:00", {"src/app.py": KEPT["src/app.py"]})


@pytest.fixture
def project(repository: GitRepository) -> GitRepository:
    commit(repository, secret=True)
    return repository


def installed(home: Path, database: str, *repositories: GitRepository, **more: object) -> Installation:
    named = [{"source": str(r.path), "name": r.path.name, "web_url": "https://git.example.org/p"} for r in repositories]
    return Installation(home, database, named, **more)


def lived_through(found: Installation) -> Installation:
    """A former day once more at the end, so that older states and their vectors are there, too."""
    found.refresh()
    found.run("2024-01-03")
    return found


@pytest.fixture
def installation(tmp_path: Path, database: str, project: GitRepository) -> Installation:
    return lived_through(installed(tmp_path / "home", database, project))


@pytest.fixture
def never(tmp_path: Path, other_database: str) -> Installation:
    """One that reads the same history without the file."""
    repository = GitRepository(tmp_path / "never" / "project")
    commit(repository, secret=False)
    return lived_through(installed(tmp_path / "other", other_database, repository))


def without_commits(rows: dict[str, list[tuple[object, ...]]]) -> dict[str, list[tuple[object, ...]]]:
    """Commits have other names where another file is in them."""
    documents = []
    for (row,) in rows["documents"]:
        assert isinstance(row, dict)
        metadata = {key: value for key, value in row["metadata"].items() if key != "commit"}
        documents.append(({k: v for k, v in row.items() if k not in ("url", "state_hash")} | {"metadata": metadata},))
    return rows | {"documents": documents}


def test_a_forgotten_file_is_nowhere_and_the_rest_is_as_if_it_had_never_been(installation, never):
    assert {place.partition(" ")[0] for place in places_of(installation, "zanzibarx")} == {"chunks", "postings", "lake"}
    report = forget_in(installation, "document", "docs/secret.md")
    assert report.is_gone
    assert report.found["documents"] == 1
    assert (
        min(report.found[place] for place in ("chunks", "postings", "vectors", "lake documents", "lake raw_docs")) > 0
    )
    for word in ("zanzibarx", "quixotx", "secret.md"):
        assert places_of(installation, word) == []
    assert without_commits(everything(installation.database)) == without_commits(everything(never.database))
    for question in QUESTIONS:
        assert scores(installation, question) == scores(never, question)
    assert verify_in(installation).is_gone


@pytest.mark.slow
def test_no_run_in_any_order_brings_it_back_until_that_is_undone(installation, project):
    id_ = document_id(tenant="default", source_type="docs", source_id="project:docs/secret.md")
    forget_in(installation, "document", str(id_))
    before = installation.documents()
    assert installation.refresh()[-1].reports["knowledge_index"].written.rows == 0
    days = [date(2024, 1, 2) + timedelta(days=n) for n in range(8)]
    for day in random.Random(3).sample(days, 5):
        installation.run(day)
    installation.run("2024-01-01", "2024-01-31")
    project.commit("2024-01-30T10:00", {"docs/secret.md": SECRET + "\nAnd another zanzibarx word.\n"})
    installation.refresh()
    assert installation.documents() == before
    assert places_of(installation, "zanzibarx") == []
    assert undo_in(installation, "document", "docs/secret.md") == 1
    installation.refresh()
    assert "another zanzibarx word" in " ".join(installation.documents()["project:docs/secret.md"])
    assert {name: texts for name, texts in installation.documents().items() if "secret" not in name} == before


@pytest.mark.slow
def test_a_text_that_another_document_has_too_keeps_its_vector(tmp_path, database, project):
    project.commit("2024-01-10T10:00", {"docs/copy.md": SECRET})
    installation = installed(tmp_path / "home", database, project)
    installation.refresh()
    embedded = len(installation.embedder.embedded)
    (url,) = {shown[4] for (_, source_id), shown in installation.shown().items() if "secret" in source_id}
    forget_in(installation, "document", url)
    assert [name for name in installation.documents() if "secret" in name] == []
    rows = everything(database)
    assert {row[0]["text_hash"] for row in rows["chunks"]} == {str(row[1]) for row in rows["vectors"]}
    installation.refresh()
    assert len(installation.embedder.embedded) == embedded
    assert [hit[0] for hit in scores(installation, "zanzibarx")] == ["project:docs/copy.md"]


@pytest.mark.slow
def test_a_forgotten_repository_leaves_no_name_and_is_not_read_again(tmp_path, database, other_database, project):
    second = GitRepository(tmp_path / "second" / "quokkabase")
    second.commit("2024-01-04T10:00", {"notes.md": "# Notes\n\nOnly wombatx words about deployment here.\n"})
    installation = installed(tmp_path / "home", database, project, second)
    alone = installed(tmp_path / "alone", other_database, project)
    installation.refresh()
    alone.refresh()
    report = forget_in(installation, "repository", "quokkabase")
    assert report.is_gone
    assert report.found["git clones"] == 1
    assert report.still_configured == ["quokkabase"]
    for word in ("wombatx", "quokkabase"):
        assert places_of(installation, word) == []
    assert not [path for path in (tmp_path / "home" / "mirrors").iterdir() if "quokkabase" in path.name]
    assert everything(database) == everything(other_database)
    todo = installation.plan()
    assert any("quokkabase is forgotten" in reason for reason in todo.reasons)
    installation.run("2024-01-01", "2024-01-31")
    assert places_of(installation, "wombatx") == []
    undo_in(installation, "repository", "quokkabase")
    installation.refresh()
    assert "quokkabase:notes.md" in installation.documents()


@pytest.mark.slow
def test_a_forgotten_tenant_leaves_nothing_and_others_everything(tmp_path, database, other_database, project):
    both = [{"source": str(project.path), "name": "project", "tenant": tenant} for tenant in ("redfolk", "bluefolk")]
    installation = Installation(tmp_path / "home", database, both)
    alone = Installation(tmp_path / "alone", other_database, both[1:])
    installation.refresh()
    alone.refresh()
    report = forget_in(installation, "tenant", "redfolk", tenant="redfolk")
    assert report.is_gone
    assert report.found["git clones"] == 0  # The other tenant reads it, too.
    assert places_of(installation, "redfolk") == []
    assert everything(database) == everything(other_database)
    installation.run("2024-01-01", "2024-01-31")
    assert installation.documents(tenant="redfolk") == {}
    assert installation.documents(tenant="bluefolk") == alone.documents(tenant="bluefolk")
    assert verify_in(installation).is_gone
    undo_in(installation, "tenant", "redfolk", tenant="redfolk")
    installation.refresh()
    assert installation.documents(tenant="redfolk") == installation.documents(tenant="bluefolk")


@pytest.mark.slow
@pytest.mark.parametrize("step", ["_postings", "_vectors", "_failures", "_lake", "remove_from_part", "_inbox"])
def test_killed_between_any_two_steps_and_done_again_nothing_is_left(installation, never, monkeypatch, step):
    class Killed(BaseException):
        pass

    def die(*_: object, **__: object) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        if step == "remove_from_part":
            done = iter(range(99))
            real = forgetting_module.remove_from_part
            patched.setattr(forgetting_module, step, lambda *args: real(*args) if next(done) < 1 else die())
        else:
            patched.setattr(forgetting_module, step, die)
        with pytest.raises(Killed):
            forget_in(installation, "document", "docs/secret.md")
    installation.run("2024-01-03", "2024-01-09")
    assert [name for name in installation.documents() if "secret" in name] == []
    assert forget_in(installation, "document", "docs/secret.md").is_gone
    assert places_of(installation, "zanzibarx") == []
    installation.refresh()
    assert without_commits(everything(installation.database)) == without_commits(everything(never.database))


@pytest.mark.slow
def test_what_a_restored_lake_brings_back_the_index_refuses_and_maintenance_takes_out(installation, tmp_path):
    shutil.copytree(installation.home / "lake", tmp_path / "backup")
    forget_in(installation, "document", "docs/secret.md")
    shutil.rmtree(installation.home / "lake")
    shutil.copytree(tmp_path / "backup", installation.home / "lake")
    installation.run("2024-01-08", select=["documents", "chunks", "embeddings", "knowledge_index"])
    assert [name for name in installation.documents() if "secret" in name] == []
    assert not verify_in(installation).is_gone
    assert forgetting.retain_in(installation).is_gone
    assert places_of(installation, "zanzibarx") == []
    assert verify_in(installation).is_gone


def test_names_that_are_unknown_or_not_clear_are_refused(installation, project):
    with pytest.raises(SourceNotFound, match="no document of tenant 'default' is called"):
        forget_in(installation, "document", "docs/never.md")
    with pytest.raises(SourceNotFound, match="there is no repository 'other'"):
        forget_in(installation, "repository", "other")
    with pytest.raises(SourceNotFound, match="there is no tenant 'acme'"):
        forget_in(installation, "tenant", "acme", tenant="acme")
    twin = GitRepository(project.path.parent / "twin")
    twin.commit("2024-01-04T10:00", {"README.md": "# Twin\n\nAnother one.\n"})
    installation.repositories = [*installation.repositories, {"source": str(twin.path), "name": "twin"}]
    installation.refresh()
    with pytest.raises(ConfigError, match=r"'README.md' names 2 documents \(project:README.md, twin:README.md\)"):
        forget_in(installation, "document", "README.md")
    assert forget_in(installation, "document", "twin:README.md").is_gone


def test_what_is_older_than_its_type_is_kept_leaves_and_no_backfill_brings_it_back(installation):
    installation.more = {"retention": {"days": {"docs": 25}}}  # now is 2024-01-31: from the 6th on
    kept = {"project:docs/secret.md", "project:src/app.py"}
    report = forgetting.retain_in(installation)
    assert report.is_gone
    assert report.found["documents"] == 2
    assert set(installation.documents()) == kept
    assert places_of(installation, "how a rollback of") == []
    for first in ("2024-01-02", "2024-01-05", "2024-01-01"):
        installation.run(first, "2024-01-31" if first == "2024-01-01" else None)
    installation.refresh()
    assert set(installation.documents()) == kept
    installation.now += timedelta(days=7)
    assert set(installation.documents()) == kept
    assert forgetting.retain_in(installation).found["documents"] == 1
    assert set(installation.documents()) == {"project:src/app.py"}
    installation.more = {}
    forget_nothing = forgetting.retain_in(installation)
    assert forget_nothing.found == forget_nothing.left == {}
