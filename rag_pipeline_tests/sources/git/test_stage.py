"""The raw stage: repositories to one file per stage, repository and day."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from rag_pipeline.lake.schemas import items_of
from rag_pipeline.lake.store import Lake, Part
from rag_pipeline.model import DayRange, SourceItem
from rag_pipeline.settings import Repository, Settings
from rag_pipeline.sources import raw_parts
from rag_pipeline.sources.git import stage
from rag_pipeline.sources.git.stage import RawReport, read_git
from rag_pipeline_tests.git_repository import GitRepository
from rag_pipeline_tests.sources.git.reading import FIRST_DAY, NOW, day


class Raw:
    """A lake, and runs that fill it."""

    def __init__(self, home: Path, repository: Path) -> None:
        self.lake = Lake(str(home / "lake"))
        self.folder = home / "lake"
        self.now = NOW
        self.settings = Settings(
            home=home, start_date=FIRST_DAY,
            repositories=(Repository(source=str(repository), name="acme/project", tenant="acme"),),
        )  # fmt: skip

    def run(self, first: str = "01-01", last: str = "03-01", **options: object) -> RawReport:
        settings = self.settings
        if options:
            repository = settings.repositories[0].model_copy(update=options)
            settings = settings.model_copy(update={"repositories": (repository,)})
        self.now += timedelta(minutes=1)
        days = DayRange(first=day(first), last=day(last))
        return read_git(settings, self.lake, days, now=self.now, progress=lambda *_, **__: None)

    def files(self) -> dict[str, int]:
        """Stage and day of every file, with when it was written."""
        found = (path for path in self.folder.rglob("*") if path.is_file())
        return {f"{path.relative_to(self.folder).parts[0]} {path.stem[5:]}": path.stat().st_mtime_ns for path in found}

    def items(self, stage: str, date: str) -> dict[str | None, SourceItem]:
        part = Part(tenant="acme", repository="acme/project", day=day(date))
        return {item.path: item for batch in self.lake.read(stage, part) for item in items_of(batch)}


@pytest.fixture
def raw(tmp_path: Path, repository: GitRepository) -> Raw:
    repository.commit("2024-01-02", {"a.md": "a", "b.py": "b", "c.png": "c"})
    repository.commit("2024-01-04", {"d.md": "d"})
    repository.commit("2024-01-06", {"a.md": "a2", "e.py": "e", "node_modules/x.js": "x"})
    return Raw(tmp_path / "home", repository.path)


def test_each_day_has_a_file_for_docs_and_one_for_code(raw: Raw) -> None:
    report = raw.run()
    assert set(raw.files()) == {"raw_code 01-02", "raw_docs 01-04", "raw_docs 01-06", "raw_code 01-06"}
    assert raw.items("raw_docs", "01-06")["a.md"].content == b"a2"
    assert raw.items("raw_code", "01-06")["node_modules/x.js"].deleted
    assert (report.written_parts, report.fresh_parts, report.removed_parts) == (4, 0, 0)
    assert report.rows == {"docs": 2, "code": 3}
    assert report.rows_by_day["code"] == {"2024-01-02": 1, "2024-01-06": 2}
    (found,) = report.repositories
    assert (found.commits, found.empty, found.git.skipped) == (3, False, {"unsupported file type": 1, "vendored": 1})
    assert found.position is not None and found.position.at.date() == day("01-06")
    assert [item.path for item in report.preview["docs"]] == ["a.md", "d.md"]


def test_the_same_window_again_writes_nothing_and_reads_no_file(raw: Raw, monkeypatch: pytest.MonkeyPatch) -> None:
    raw.run()
    before = raw.files()
    monkeypatch.setattr(stage.GitReader, "items", lambda *_, **__: pytest.fail("read"))
    report = raw.run()
    assert raw.files() == before
    assert (report.written_parts, report.fresh_parts, report.bytes) == (0, 4, 0)


def test_a_window_of_one_day_gives_that_days_file(raw: Raw) -> None:
    raw.run("01-02", "01-02")
    assert set(raw.files()) == {"raw_docs 01-02", "raw_code 01-02"}
    raw.run("01-06", "01-06")
    raw.run("01-04", "01-04")
    assert raw.items("raw_docs", "01-02")["a.md"].content == b"a"
    assert raw.items("raw_docs", "01-06")["a.md"].content == b"a2"


def test_parts_read_through_another_window_keep_their_fingerprint_when_they_hold_the_same(raw: Raw) -> None:
    raw.run()
    part = Part(tenant="acme", repository="acme/project", day=day("01-06"))
    before = raw.lake.fingerprint("raw_docs", part)
    assert raw.run("01-05", "01-07").written_parts == 2
    assert raw.lake.fingerprint("raw_docs", part) == before


def test_days_on_which_nothing_changed_last_lose_their_files(raw: Raw, repository: GitRepository) -> None:
    raw.run()
    repository.commit("2024-01-08", {"d.md": "d2"})
    report = raw.run()
    assert report.removed_parts == 1
    assert set(raw.files()) == {"raw_code 01-02", "raw_docs 01-06", "raw_code 01-06", "raw_docs 01-08"}
    # A run looks at its own days only.
    repository.commit("2024-01-09", {"a.md": "a3"})
    raw.run("01-09", "01-09")
    assert "raw_docs 01-06" in raw.files()


def test_what_a_killed_run_left_is_completed(raw: Raw, monkeypatch: pytest.MonkeyPatch) -> None:
    flush = raw_parts._flush
    calls = []

    def killed(*args: object) -> None:
        calls.append(args)
        flush(*args)  # type: ignore[arg-type]
        if len(calls) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(raw_parts, "_flush", killed)
    with pytest.raises(KeyboardInterrupt):
        raw.run()
    monkeypatch.undo()
    assert not list(raw.folder.rglob("*.tmp"))
    kept = raw.files()
    assert 0 < len(kept) < 4
    assert raw.run().fresh_parts == len(kept)
    done = raw.files()
    assert len(done) == 4 and kept.items() <= done.items()
    damaged = next(raw.folder.rglob("2024-01-04.parquet"))
    damaged.write_bytes(damaged.read_bytes()[:-10])
    assert raw.run().written_parts == 1
    assert raw.items("raw_docs", "01-04")["d.md"].content == b"d"


def test_another_configuration_reads_the_days_again(raw: Raw) -> None:
    raw.run()
    report = raw.run(exclude=("*.py",))
    assert report.written_parts == 4
    assert raw.items("raw_code", "01-02")["b.py"].metadata["tombstone_reason"] == "excluded by configuration"


def test_a_later_start_date_gathers_what_is_older_and_drops_its_days(raw: Raw) -> None:
    raw.run()
    raw.run(start_date=day("01-05"))
    assert set(raw.files()) == {"raw_docs 01-05", "raw_code 01-05", "raw_docs 01-06", "raw_code 01-06"}


def test_an_empty_repository_is_reported(tmp_path: Path) -> None:
    raw = Raw(tmp_path / "home", GitRepository(tmp_path / "empty").path)
    report = raw.run()
    assert report.repositories[0].empty and report.repositories[0].position is None
    assert report.rows.total() == 0


def test_a_day_with_thousands_of_files_is_streamed(
    tmp_path: Path, repository: GitRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.commit("2024-01-02", {f"{n % 50}/{n}.md": f"text {n}\n" * 200 for n in range(5000)})
    raw = Raw(tmp_path / "home", repository.path)
    held: list[int] = []
    flush = raw_parts._flush

    def watched(writers: object, pending: dict[str, list[SourceItem]]) -> None:
        held.append(sum(map(len, pending.values())))
        flush(writers, pending)  # type: ignore[arg-type]

    monkeypatch.setattr(raw_parts, "_flush", watched)
    report = raw.run()
    assert report.rows["docs"] == 5000 and len(report.preview["docs"]) == 10
    assert max(held) <= 512
    assert len(raw.items("raw_docs", "01-02")) == 5000
