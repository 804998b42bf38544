"""The benchmarks themselves, on a repository small enough for a test."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rag_pipeline_tests.bench import fan_out, limits, limits_load, scale, scale_corpus, search, startup
from rag_pipeline_tests.bench.__main__ import main
from rag_pipeline_tests.bench.report import Report
from rag_pipeline_tests.bench.scale import bench_scale
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
def test_growth_is_measured_and_drawn(history: GitRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(scale_corpus, "EDITED", 5)
    monkeypatch.setattr(scale_corpus, "ROUNDS", 2)
    monkeypatch.setattr(scale, "ROUNDS", 2)
    report, plot = Report(settings={}), tmp_path / "scale.svg"
    bench_scale(str(history.path), report, chunks=[600, 300], plot=plot)
    assert {"300 chunks: search, fused, p95", "600 chunks: disk of a chunk: lake"} <= {f.name for f in report.figures}
    assert [check.name for check in report.checks] == ["a refresh does not grow with the corpus"]
    assert "<svg" in plot.read_text()


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


@pytest.mark.slow
def test_each_stage_stands_beside_its_bound_and_a_fleet_is_fed(
    history: GitRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    for module, name, small in (
        (limits, "_TEXTS", 10), (limits, "_GEMM_S", 0.1), (limits_load, "_CHUNKS", 600), (fan_out, "_REQUESTS", {4: 8}),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, small)
    file = tmp_path / "figures.json"
    assert main(["--repo", str(history.path), "--only", "limits,fan_out", "--json", str(file)]) == 0
    found = json.loads(file.read_text())
    stages = ("raw", "documents", "chunks", "lake: write", "lake: read", "embeddings")
    wanted = {f"{stage}: of the bound" for stage in stages} | {"all: of COPY", "4 under way"}
    assert wanted <= {figure["name"] for figure in found["figures"] if figure["value"] > 0}
    assert found["checks"]


def test_the_work_of_the_model_is_that_of_its_matrices():
    # 10.6 million weights are multiplied and added for each token; looking at all others is little beside it.
    assert limits.floating_point_operations([1]) == 2 * 10_616_832 + 6 * 4 * 384
    assert limits.floating_point_operations([100, 100]) == 2 * limits.floating_point_operations([100])


@pytest.mark.slow
def test_starts_are_measured(
    history: GitRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(startup, "_TIMES", 1)
    file = tmp_path / "figures.json"
    assert main(["--repo", str(history.path), "--only", "startup", "--json", str(file)]) == 0
    found = {figure["name"]: figure["value"] for figure in json.loads(file.read_text())["figures"]}
    assert found["rag-pipeline search: CPU"] > found["python -c pass: CPU"]
    assert "BROKEN" not in capsys.readouterr().out


def test_an_unknown_benchmark_is_named(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as error:
        main(["--only", "speed"])
    assert error.value.code == 2
    assert "there is no benchmark 'speed'" in capsys.readouterr().err


@pytest.mark.slow
def test_partitions_are_measured_and_find_what_one_graph_finds(history: GitRepository, tmp_path: Path):
    file = tmp_path / "figures.json"
    command = ["--repo", str(history.path), "--only", "partitions", "--chunks", "1000", "--json", str(file)]
    assert main(command) == 0
    found = json.loads(file.read_text())
    names = {figure["name"] for figure in found["figures"]}
    assert {
        "1 partition: graphs built",
        "8 partitions: vector, p50",
        "4 partitions, little memory: graphs built",
    } <= names
    assert len(found["checks"]) == 9 and all(check["holds"] for check in found["checks"])
