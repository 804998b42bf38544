"""Mirrors of GitHub and of git that are cut, empty, nonsense or folders, or have no room to grow."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from rag_pipeline.cli.complaints import in_words
from rag_pipeline.cli.runs import reason_of
from rag_pipeline_tests.embedded.servers import temporary_home
from rag_pipeline_tests.end_to_end.conftest import _not_drawn, forge, github, indexing
from rag_pipeline_tests.end_to_end.installation import Installation
from rag_pipeline_tests.faults.conftest import Record
from rag_pipeline_tests.faults.test_database import fill, small_disk
from rag_pipeline_tests.faults.test_lake import _cut, _emptied, _folder, _text
from rag_pipeline_tests.git_repository import GitRepository
from rag_pipeline_tests.github_server.generated import generate
from rag_pipeline_tests.github_server.model import Forge
from rag_pipeline_tests.github_server.nouns import Repository

__all__ = ["_not_drawn", "forge", "github"]

pytestmark = pytest.mark.faults


@pytest.fixture
def rocket(forge: Forge) -> Repository:
    return generate(forge, seed=3, issues=5, pulls=2, comments=1, reviews=1, days=8)


@pytest.fixture
def lander(forge: Forge) -> Repository:
    """Another one, which nobody hurts."""
    return generate(forge, full_name="acme/lander", seed=4, issues=3, pulls=1, comments=1, days=8)


@pytest.fixture
def sources(rocket: Repository, lander: Repository, repository: GitRepository) -> list[dict[str, object]]:
    """All that is read."""
    repository.commit("2024-04-23T10:00", {"guide.md": "# Guide\n\nThe first words.\n"})
    return [
        {"github": "acme/rocket", "name": "rocket"}, {"github": "acme/lander", "name": "lander"},
        {"source": str(repository.path), "name": "project"},
    ]  # fmt: skip


def _altered(path: Path) -> None:
    """The header is whole."""
    content = bytearray(path.read_bytes())
    for at in range(4096, len(content), 5):
        content[at] ^= 0xFF
    path.write_bytes(content)


def mirror_of(installation: Installation, repository: Repository) -> Path:
    (path,) = (installation.home / "mirrors").rglob(f"{repository.id}.sqlite")
    return path


def work(forge: Forge, rocket: Repository, lander: Repository, project: GitRepository) -> None:
    """Something new everywhere."""
    for thread in (rocket.issues()[0], lander.issues()[0]):
        forge.comment(thread, "Nobody has read this yet.", author="grace")
    project.commit(forge.now, {"guide.md": "# Guide\n\nThe second words.\n"})


def refreshed(installation: Installation) -> list[str]:
    """What a refresh, which must succeed, has put on record."""
    installation.refresh()
    return [reason for _, _, reason in installation.failures()]


@pytest.mark.parametrize(
    ("damage", "words"),
    [(_cut, "is damaged"), (_text, "is damaged"), (_altered, "is damaged"), (_folder, "cannot be used")],
    ids=["cut", "text", "altered", "folder"],
)
def test_a_damaged_mirror_is_named_and_stops_no_other_source(
    damage: Callable[[Path], None], words: str, forge, github, rocket, lander, repository, sources, tmp_path, database,
    other_database, outcome: Record,
):  # fmt: skip
    followed = indexing(github, tmp_path / "home", database, repositories=sources)
    followed.refresh()
    before = followed.shown()
    work(forge, rocket, lander, repository)
    path = mirror_of(followed, rocket)
    damage(path)
    (reason,) = refreshed(followed)
    assert f"{path} {words}" in reason
    said = {text for (_, source_id), row in followed.shown().items() for text in [f"{source_id} {row}"]}
    assert sum("Nobody has read this yet" in text for text in said) == 1, "of the two, the one that is whole"
    assert sum("The second words" in text for text in said) == 1
    hurt = {key: row for key, row in before.items() if f"/{rocket.id}#" in key[1]}
    assert {key: followed.shown()[key] for key in hurt} == hurt
    (row,) = [row for row in followed.reconcile(confirm=True) if row["repository"] == "rocket"]
    assert words in row["outcome"]
    # What it says to do is what helps.
    path.rmdir() if path.is_dir() else path.unlink()
    followed.refresh()
    followed.reconcile(confirm=True)
    cold = indexing(github, tmp_path / "cold", other_database, repositories=sources)
    cold.refresh()
    assert (followed.shown(), followed.failures()) == (cold.shown(), [])
    what = f"on record: {reason[-90:]}" if words == "cannot be used" else f"on record: {reason[reason.index(words) :]}"
    outcome(f"file {damage.__name__.strip('_')}", "mirror of GitHub", what[:100], rows=len(cold.shown()))


def test_an_empty_mirror_is_read_anew(
    forge, github, rocket, lander, repository, sources, tmp_path, database, other_database, outcome: Record
):
    followed = indexing(github, tmp_path / "home", database, repositories=sources)
    followed.refresh()
    work(forge, rocket, lander, repository)
    _emptied(mirror_of(followed, rocket))
    assert refreshed(followed) == []
    cold = indexing(github, tmp_path / "cold", other_database, repositories=sources)
    cold.refresh()
    assert followed.shown() == cold.shown()
    outcome("file emptied", "mirror of GitHub", "converged", rows=len(cold.shown()))


def test_a_disk_of_the_mirrors_that_is_full(
    forge, github, rocket, lander, repository, sources, tmp_path, database, other_database, outcome: Record
):
    """The lake lies elsewhere: it is SQLite and git that find no room, at first and when something is new."""
    with temporary_home() as folder, small_disk(folder / "disk", 4):
        more = {"lake": str(tmp_path / "lake")}
        followed = indexing(github, folder / "disk" / "home", database, repositories=sources, more=more)
        said = _without_room(followed, folder / "disk", left=0)
        assert refreshed(followed) == []
        work(forge, rocket, lander, repository)
        for left in (0, 40_000, 100_000, 150_000):
            said += _without_room(followed, folder / "disk", left=left)
        assert all("make room there" in words or "disk I/O error" in words for words in said), said
        assert any("git cannot be written: git says" in words for words in said), said
        assert any(".sqlite cannot be used: database or disk is full" in words for words in said), said
        assert refreshed(followed) == []
        cold = indexing(github, tmp_path / "cold", other_database, repositories=sources)
        cold.refresh()
        assert followed.shown() == cold.shown()
    outcome("disk full", "mirrors of GitHub and git", f"failed: {said[-1][-90:]}", rows=len(cold.shown()))


def _without_room(installation: Installation, disk: Path, *, left: int) -> list[str]:
    """Why a refresh failed, or what it put on record."""
    filler = fill(disk, but=left)
    try:
        todo = installation.plan()
        for days in todo.ranges:
            result, _ = installation.try_run(days.first, days.last, planned=todo)
            if not result.success:
                return [_in_words(reason_of(result))]
    except OSError as error:
        return [_in_words(error)]
    finally:
        filler.unlink()
    return [reason for _, _, reason in installation.failures()]


def _in_words(error: BaseException) -> str:
    found = in_words(error)
    assert found is not None and "\n" not in str(found), f"nobody foresaw it: {error!r}"
    return str(found)
