"""The benchmarks themselves, on a repository small enough for a test."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rag_pipeline_tests.bench import search
from rag_pipeline_tests.bench.__main__ import main
from rag_pipeline_tests.git_repository import GitRepository

PROSE = "\n\n".join(
    f"## Part {n}\n\nThis part is about subject{n}, and it says enough about subject{n} that people find it useful\n"
    f"when they read about it. Another sentence about topic{n} follows here, so that the part is a chunk."
    for n in range(9)
)  # fmt: skip


@pytest.fixture
def history(repository: GitRepository) -> GitRepository:
    """Nine days with an edit, a deletion and a rename."""
    repository.commit("2026-01-02T10:00", {"README.md": "# Project\n\nWhat it is.\n", "guide.md": PROSE})
    code = "\n\n".join(f"def function_{n}(value):\n    return value + {n}\n" for n in range(9))
    repository.commit("2026-01-03T10:00", {"src/app.py": code, "old.md": "# Old\n\nThis will go away.\n"})
    repository.commit("2026-01-05T10:00", {"README.md": "# Project\n\nWhat it is for.\n", "src/more.py": "more = 1\n"})
    repository.commit("2026-01-08T10:00", {"old.md": None, "notes.txt": "Some notes about deployment.\n"})
    repository.move("notes.txt", "docs/notes.txt")
    repository.commit("2026-01-10T10:00")
    return repository


@pytest.mark.slow
@pytest.mark.parametrize("benchmark", ["refresh", "orders", "github", "cutting", "edits"])
def test_a_benchmark_measures_and_its_checks_hold(
    benchmark: str, history: GitRepository, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    file = tmp_path / "figures.json"
    code = main(["--repo", str(history.path), "--only", benchmark, "--json", str(file)])
    found = json.loads(file.read_text())
    assert code == 0, found["checks"]
    assert found["figures"] and found["checks"]
    assert "BROKEN" not in capsys.readouterr().out


@pytest.mark.slow
def test_checks_are_measured_and_find_nothing_in_what_is_right(tmp_path: Path):
    file = tmp_path / "figures.json"
    assert main(["--only", "checks", "--chunks", "2000", "--json", str(file)]) == 0
    found = json.loads(file.read_text())
    assert {f["name"] for f in found["figures"]} >= {"2,000 chunks: chunks", "2,000 chunks: all stages"}
    assert all(check["holds"] for check in found["checks"]) and found["checks"]


@pytest.mark.slow
def test_searches_are_measured(
    history: GitRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(search, "_LOAD_S", 2.0)
    file = tmp_path / "figures.json"
    assert main(["--repo", str(history.path), "--only", "search", "--chunks", "3000", "--json", str(file)]) == 0
    found = json.loads(file.read_text())
    assert {"3,000 chunks: fused, p95", "3,000 chunks: postings"} <= {figure["name"] for figure in found["figures"]}
    assert "BROKEN" not in capsys.readouterr().out


def test_an_unknown_benchmark_is_named(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as error:
        main(["--only", "speed"])
    assert error.value.code == 2
    assert "there is no benchmark 'speed'" in capsys.readouterr().err
