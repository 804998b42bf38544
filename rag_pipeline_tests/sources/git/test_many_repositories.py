"""Many repositories in one run: read beside each other, and what comes of it is what one after the other gives."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from rag_pipeline.index.database import connected
from rag_pipeline.lake.derive import fingerprints_of
from rag_pipeline.lake.store import Lake
from rag_pipeline.model import DayRange
from rag_pipeline.remote.at_once import locked
from rag_pipeline.settings import Repository, Settings
from rag_pipeline.settings.pools import Pools
from rag_pipeline.sources.git.mirror import mirror_of
from rag_pipeline.sources.git.stage import RawReport, read_git
from rag_pipeline_tests.bench.stages import run_stages
from rag_pipeline_tests.git_repository import GitRepository
from rag_pipeline_tests.sources.git.reading import FIRST_DAY, NOW, day

DAYS = DayRange(first=day("01-01"), last=day("03-01"))


def made(folder: Path, count: int) -> list[Path]:
    """So many small repositories, no two alike."""
    repositories = []
    for number in range(count):
        repository = GitRepository(folder / f"project-{number}")
        about = f"# Project {number}\n\nWhat it is"
        repository.commit("2024-01-02", {"README.md": f"{about}.\n", "app.py": f"n = {number}\n"})
        repository.commit("2024-01-04", {"README.md": f"{about} for.\n", f"more{number}.md": "x"})
        repositories.append(repository.path)
    return repositories


def settings_of(home: Path, sources: Sequence[Path], *, at_once: int) -> Settings:
    return Settings(
        home=home, start_date=FIRST_DAY, pools=Pools(git=at_once),
        repositories=tuple(Repository(source=str(s), name=s.name, tenant="acme") for s in sources),
    )  # fmt: skip


class Watched:
    """What a run tells of itself."""

    def __init__(self) -> None:
        self.told: list[tuple[str, int, int | None, str]] = []

    def __call__(self, stage: str, *, done: int, total: int | None, unit: str) -> None:
        self.told.append((stage, done, total, unit))


def read(settings: Settings, *, watch: Watched | None = None) -> RawReport:
    return read_git(settings, Lake(settings.lake_url), DAYS, now=NOW, progress=watch or Watched())


def held(settings: Settings) -> dict[object, str]:
    lake = Lake(settings.lake_url)
    return {(stage, part): value for stage in ("raw_docs", "raw_code")
            for part, value in fingerprints_of(lake, stage, DAYS).items()}  # fmt: skip


def test_read_at_once_they_give_what_they_give_one_after_the_other(tmp_path: Path) -> None:
    sources = made(tmp_path, 5)
    alone, beside = (settings_of(tmp_path / f"home{n}", sources, at_once=n) for n in (1, 3))
    one, three = read(alone), read(beside)
    assert held(alone) == held(beside)
    assert [r.repository for r in three.repositories] == list(beside.repositories)
    for name in ("rows_by_day", "items", "tombstones", "fresh_parts", "written_parts", "removed_parts", "fingerprints"):
        assert getattr(one, name) == getattr(three, name), name
    assert [i.source_id for i in one.preview["docs"]] == [i.source_id for i in three.preview["docs"]]
    again = read(beside)
    assert (again.written_parts, again.fresh_parts) == (0, three.written_parts)


def test_progress_counts_every_repository_and_every_file(tmp_path: Path) -> None:
    settings, watch = settings_of(tmp_path / "home", made(tmp_path, 4), at_once=4), Watched()
    report = read(settings, watch=watch)
    counted = [(done, total) for _, done, total, unit in watch.told if unit == "repositories" and total]
    assert counted == [(1, 4), (2, 4), (3, 4), (4, 4)]
    files = [(done, total) for _, done, total, unit in watch.told if unit == "files"]
    assert files[-1] == (sum(report.rows.values()), sum(report.rows.values()))


def test_one_that_cannot_be_read_stops_no_other_and_is_on_record(tmp_path: Path) -> None:
    sources = made(tmp_path, 4)
    settings = settings_of(tmp_path / "home", [*sources[:2], tmp_path / "away", *sources[2:]], at_once=3)
    report = read(settings)
    (failure,) = report.failures
    assert (failure.source_id, failure.source_type, failure.stage) == ("away", "repository", "raw")
    assert {part.repository for _, part in held(settings)} == {source.name for source in sources}


def test_a_slow_one_holds_up_no_other(tmp_path: Path) -> None:
    settings = settings_of(tmp_path / "home", made(tmp_path, 5), at_once=2)
    slow = mirror_of(settings.repositories[0], home=settings.home)
    slow.path.parent.mkdir(parents=True)
    others_are_read = threading.Event()

    def watch(stage: str, *, done: int, total: int | None, unit: str) -> None:
        if unit == "repositories" and (done, total) == (4, 5):
            others_are_read.set()

    found: list[RawReport] = []
    run = threading.Thread(
        target=lambda: found.append(read_git(settings, Lake(settings.lake_url), DAYS, now=NOW, progress=watch))
    )
    with locked(Path(f"{slow.path}.lock"), timeout_s=0):
        run.start()
        assert others_are_read.wait(30)
    run.join(30)
    assert len(found[0].repositories) == 5 and found[0].written_parts == 2 * 5


@pytest.mark.slow
def test_the_index_of_fifty_repositories_is_the_one_that_they_give_one_after_the_other(
    tmp_path: Path, database: str, other_database: str
) -> None:
    sources = made(tmp_path, 50)
    indexes = []
    for place, count in ((database, 1), (other_database, 4)):
        settings = settings_of(tmp_path / f"home{count}", sources, at_once=count)
        with connected(place) as connection:
            run_stages(settings, DAYS, connection=connection)
            indexes.append(connection.execute(
                "SELECT d.repository, d.path, d.state_hash, d.deleted, c.position, c.text FROM rag.documents AS d"
                " LEFT JOIN rag.chunks AS c USING (document_id) ORDER BY 1, 2, 5"
            ).fetchall())  # fmt: skip
    assert indexes[0] == indexes[1]
    assert len({row[0] for row in indexes[1]}) == 50
