"""A backup in the order of docs/operations.md is restored into a new home, and costs no model anything."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import psycopg
import pytest

from rag_pipeline.embedded import EmbeddedPostgres
from rag_pipeline.embedded.account import Account
from rag_pipeline.embedded.binaries import programs
from rag_pipeline.embedding.stage import EmbeddingsReport
from rag_pipeline.index.stage import IndexReport
from rag_pipeline_tests.end_to_end.installation import Installation, WordEmbedder
from rag_pipeline_tests.faults.site import index_of
from rag_pipeline_tests.git_repository import GitRepository

pytestmark = pytest.mark.slow
DAYS = ("2024-01-01", "2024-01-31")
FOLDERS = ("inbox", "lake", "mirrors")
"""Of RAG_HOME, in the order in which they are copied: after the database."""


def _program(server: EmbeddedPostgres, name: str) -> Path:
    return programs(Account(uid=server._account.uid, gid=server._account.gid)) / name


def _dump(server: EmbeddedPostgres, url: str, file: Path) -> None:
    subprocess.run([_program(server, "pg_dump"), "--file", file, url], check=True, capture_output=True)


def _restore(server: EmbeddedPostgres, url: str, file: Path) -> None:
    command = [_program(server, "psql"), "--quiet", "--set", "ON_ERROR_STOP=1", "--file", file, url]
    subprocess.run(command, check=True, capture_output=True)


def _refresh(installation: Installation) -> tuple[int, int]:
    """How many texts a refresh has embedded, and how many rows it has written."""
    embedded = written = 0
    for pipeline in installation.refresh():
        embeddings, index = pipeline.reports["embeddings"], pipeline.reports["knowledge_index"]
        assert isinstance(embeddings, EmbeddingsReport) and isinstance(index, IndexReport)
        embedded, written = embedded + embeddings.embedded, written + index.written.rows
    return embedded, written


@pytest.fixture
def old(tmp_path: Path, database: str, repository: GitRepository) -> Installation:
    repository.commit("2024-01-02T10:00", {f"{n}.md": f"# Page {n}\n\nWords of page {n}.\n" for n in range(4)})
    repository.commit("2024-01-05T10:00", {"0.md": None, "1.md": "# Page 1\n\nOther words.\n"})
    made = Installation(tmp_path / "old", database, [{"source": str(repository.path), "name": "project"}])
    made.drop("note.md", "# A note\n\nIt was dropped.\n")
    made.run(*DAYS)
    return made


def _new(old: Installation, tmp_path: Path, database: str) -> Installation:
    return Installation(tmp_path / "new", database, old.repositories, embedder=WordEmbedder(), now=old.now)


def _copy(old: Installation, new: Installation, folders: tuple[str, ...] = FOLDERS) -> None:
    for name in folders:
        if (old.home / name).exists():
            shutil.copytree(old.home / name, new.home / name)


@pytest.mark.parametrize("folders", [FOLDERS, ("inbox", "lake")], ids=["all", "without mirrors"])
def test_a_restored_backup_embeds_and_writes_nothing(
    old, server, tmp_path, other_empty_database, folders
):  # fmt: skip
    _dump(server, old.database, tmp_path / "rag.sql")
    new = _new(old, tmp_path, other_empty_database)
    _copy(old, new, folders)
    _restore(server, new.database, tmp_path / "rag.sql")
    before = index_of(old.database)
    assert index_of(new.database) == before
    assert _refresh(new) == (0, 0)
    assert index_of(new.database) == before
    # Days that are run again from the restored lake change nothing either.
    assert new.run(*DAYS).reports["embeddings"].embedded == 0
    assert index_of(new.database) == before


def test_what_a_run_did_between_the_dump_and_the_copies_is_there(
    old, server, tmp_path, other_empty_database, repository
):  # fmt: skip
    """The lake holds more than the database: its vectors are given back, and no text is embedded again."""
    _dump(server, old.database, tmp_path / "rag.sql")
    repository.commit("2024-01-20T10:00", {"late.md": "# Late\n\nLate words.\n"})
    old.drop("late.md", "# A late note\n\nIt was dropped late.\n")
    old.run(*DAYS)
    new = _new(old, tmp_path, other_empty_database)
    _copy(old, new)
    _restore(server, new.database, tmp_path / "rag.sql")
    embedded, written = _refresh(new)
    assert embedded == 0 and written > 0
    assert index_of(new.database) == index_of(old.database)


def test_an_index_is_made_again_from_the_lake_alone(old, tmp_path, other_database):
    new = _new(old, tmp_path, other_database)
    _copy(old, new)
    embedded, written = _refresh(new)
    assert embedded == 0 and written > 0
    assert index_of(new.database) == index_of(old.database)


def test_a_lost_lake_is_made_again_but_for_the_drops(old, server, tmp_path, other_empty_database):
    """The index keeps them, and so does the inbox."""
    _dump(server, old.database, tmp_path / "rag.sql")
    new = _new(old, tmp_path, other_empty_database)
    _copy(old, new, ("inbox",))
    _restore(server, new.database, tmp_path / "rag.sql")
    before = index_of(old.database)
    new.run(*DAYS)
    assert new.embedder.embedded == []
    assert index_of(new.database) == before
    with psycopg.connect(new.database) as connection:
        held = connection.execute("SELECT count(*) FROM rag.documents WHERE repository = 'inbox'").fetchone()
    assert held == (1,)
