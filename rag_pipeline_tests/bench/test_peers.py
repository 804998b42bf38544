"""The comparison with other libraries, as far as it needs none of them."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest

from rag_pipeline.errors import ConfigError
from rag_pipeline_tests.bench.__main__ import main
from rag_pipeline_tests.bench.peers.corpora import EDITED, REMOVED, corpus_of_packages
from rag_pipeline_tests.bench.peers.killing import Survived
from rag_pipeline_tests.bench.peers.models import DIMENSIONS, Counted, Fake, Remembering, Vectors
from rag_pipeline_tests.bench.peers.side_by_side import COLD, NOTHING, SHARE, STEPS, WORDS, Measured, show
from rag_pipeline_tests.bench.peers.systems import Answers, Refreshed
from rag_pipeline_tests.bench.report import Report

QUICK = Refreshed(wall_s=4, own_s=1, peak_mb=100, calls=1, texts=0, characters=0, tokens=0, model_s=0)
TEXT = "\n".join(f"this line tells something about subject number {n} of the file" for n in range(9))


@dataclass
class Named:
    """A system of which only the name is asked."""

    name: str
    model: str = "fake"
    asked: list[str] = field(default_factory=list)


class Slow:
    """A model that counts how often it is asked."""

    clock = staticmethod(time.perf_counter)

    def __init__(self) -> None:
        self.asked = 0

    def vectors(self, texts: Sequence[str]) -> tuple[Vectors, int]:
        self.asked += len(texts)
        return np.ones((len(texts), DIMENSIONS), dtype=np.float32), len(texts)


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    """A folder that looks like site-packages."""
    for number in range(60):
        target = tmp_path / "packages" / f"library_{number % 3}" / f"module_{number}.py"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(f'"""{TEXT}"""\nvalue = {number}\n', encoding="utf-8")
    (tmp_path / "packages" / "picture.png").write_bytes(b"\x89PNG")
    return tmp_path / "packages"


def measured(name: str, own_s: float, *, embedded: int = 3) -> Measured:
    steps = {step: replace(QUICK, own_s=own_s, wall_s=own_s + 3) for step in STEPS}
    steps |= {step: replace(QUICK, texts=embedded) for step in (SHARE, WORDS)}
    found = Measured(system=Named(name), steps=steps, least={SHARE: 3, WORDS: 3}, rows=10)  # type: ignore[arg-type]
    found.answers = Answers(hits=[], ms=[1.0, 2.0])
    found.rows_left = found.still_found = 0
    return found


def test_chunks_of_one_length_are_held_against_each_other_and_what_each_has_by_itself_too(
    capsys: pytest.CaptureFixture[str],
):
    report = Report(settings={})
    others = [measured("LlamaIndex, HNSW", 5.0), measured("CocoIndex", 3.0)]
    for name, own_s in (("LlamaIndex, HNSW, 160 tokens", 14.0), ("CocoIndex, HNSW, 160 tokens", 2.5)):
        short = measured(name, own_s)
        short.steps = {COLD: short.steps[COLD]}
        others.append(short)
    show(report, "all", [measured("ours", 2.0), measured("ours, 512 tokens", 0.9), *others], fake=True)
    said = capsys.readouterr().out
    for line in (
        "index built, each in chunks of its own length: at least 2 times as fast as the fastest other: 2.00 s, "
        "CocoIndex 3.00",
        "MISSED  all but the model, index built, all in chunks of 160 tokens, ours: at least 2 times as fast as the "
        "fastest other: 2.00 s, CocoIndex, HNSW, 160 tokens 2.50",
        "holds   all but the model, index built, both in chunks of 512 tokens, LlamaIndex's: at least 2 times as fast "
        "as the fastest other: 0.90 s, LlamaIndex, HNSW 5.00",
        "nothing new, own work: at least 10 times as fast as the fastest other: 2.00 s, CocoIndex 3.00",
    ):
        assert line in said


def test_a_target_that_is_reached_is_shown_with_the_fastest_of_the_others(capsys: pytest.CaptureFixture[str]):
    report = Report(settings={})
    others = [measured("LlamaIndex, HNSW", 12.0), measured("CocoIndex", 11.0), measured("LangChain", 0.5)]
    show(report, "all", [measured("ours", 1.0), *others], fake=True)
    said = capsys.readouterr().out
    # LangChain builds no index by default, so that it is none to compare a first load with.
    assert (
        "index built, each in chunks of its own length: at least 2 times as fast as the fastest other: 1.00 s, "
        "CocoIndex 11.00" in said
    )
    assert (
        "MISSED  nothing new, own work: at least 10 times as fast as the fastest other: 1.00 s, LangChain 0.50" in said
    )
    assert [figure.over for figure in report.figures if figure.at_most is not None] == [False, True]
    assert not report.failed(strict=False) and report.failed(strict=True)


def test_a_text_embedded_without_need_is_a_broken_check(capsys: pytest.CaptureFixture[str]):
    report = Report(settings={})
    show(report, "all", [measured("ours", 1.0, embedded=4), measured("CocoIndex", 9.0)], fake=False)
    assert report.failed(strict=False)
    assert f"BROKEN  {SHARE}: as few texts embedded as can be: 4 embedded, 3 changed" in capsys.readouterr().out


def test_rows_that_a_kill_left_twice_are_a_broken_check(capsys: pytest.CaptureFixture[str]):
    report, ours = Report(settings={}), measured("ours", 1.0)
    ours.survived = Survived(kills=2, twice=7, lost=0, drifted=0)
    show(report, "all", [ours], fake=True)
    assert "BROKEN  killed and run again" in capsys.readouterr().out


def test_a_library_with_bookkeeping_of_our_own_sets_no_target(capsys: pytest.CaptureFixture[str]):
    others = [measured("Haystack, own bookkeeping", 0.1), measured("CocoIndex", 90.0)]
    show(Report(settings={}), "all", [measured("ours", 1.0), *others], fake=True)
    assert "CocoIndex 90.00 s, 90.0 times" in capsys.readouterr().out


def test_the_fake_model_is_deterministic_and_puts_like_texts_near_each_other():
    one, again, other, far = Fake().vectors([TEXT, TEXT, TEXT + " more", "wholly different words stand here"])[0]
    assert np.array_equal(one, again) and np.linalg.norm(one) == pytest.approx(1)
    assert not np.array_equal(one, other)
    assert one @ other > 0.5 > one @ far


def test_what_is_asked_of_a_model_is_counted():
    model = Counted(Fake())
    model.passages(["one", "four"])
    model.passages([])
    model.question("not counted")
    assert (model.counts.calls, model.counts.texts, model.counts.characters) == (1, 2, 7)


def test_a_library_that_is_measured_computes_what_another_set_up_of_it_only_remembers(tmp_path: Path):
    slow = Slow()
    for texts in (["a", "b"], ["b", "c"]):
        writing = Remembering(slow, tmp_path / "kept.npz", recalls=False)
        writing.vectors(texts)
        writing.save()
    assert slow.asked == 4
    vectors, tokens = Remembering(slow, tmp_path / "kept.npz", recalls=True).vectors(["a", "b", "c", "d"])
    assert (slow.asked, tokens, vectors.shape) == (5, 1, (4, DIMENSIONS))


def test_a_corpus_of_packages_is_the_same_in_the_repository_and_in_the_folder(packages: Path):
    with corpus_of_packages(55, packages) as corpus:

        def both() -> tuple[dict[str, bytes], dict[str, bytes]]:
            found = [
                {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*.*")
                 if path.is_file() and ".git" not in path.parts}
                for root in (corpus.folder, corpus.place.clone)
            ]  # fmt: skip
            return found[0], found[1]

        first, cloned = both()
        assert first == cloned == corpus.files and len(first) == 55
        assert corpus.change_a_share() == 1
        assert corpus.edit_words() == EDITED
        edited, cloned = both()
        assert edited == cloned == corpus.files
        assert sum(edited[path] != first[path] for path in first) == 1 + EDITED
        gone = corpus.remove()
        left, cloned = both()
        assert left == cloned == corpus.files and len(gone) == REMOVED and not left.keys() & set(gone)
        assert corpus.place.git("status", "--porcelain") == ""
        assert len(corpus.questions()) > 0


def test_too_few_files_are_said_to_be_too_few(packages: Path):
    with pytest.raises(ConfigError, match="has 60 files to index, not 61"), corpus_of_packages(61, packages):
        pass


def test_libraries_that_are_not_installed_and_names_that_nobody_has_are_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("RAG_PEERS_PYTHON", str(tmp_path / "none"))
    assert main(["--only", "peers"]) == 1
    monkeypatch.setenv("RAG_PEERS_PYTHON", "/bin/sh")
    assert main(["--only", "peers", "--peers", "ours,Nobody"]) == 1
    said = capsys.readouterr().err
    assert "make bench-peers" in said and "there is no 'Nobody'" in said


@pytest.mark.slow
def test_ours_is_measured_without_the_others(
    packages: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("RAG_PEERS_PYTHON", "/bin/sh")
    file = tmp_path / "figures.json"
    options = ["--peers", "ours", "--parts", "packages", "--files", "60", "--packages", str(packages)]
    assert main(["--only", "peers", *options, "--json", str(file)]) == 0, capsys.readouterr().out
    found = json.loads(file.read_text("utf-8"))
    assert {f"ours: {COLD}: time", f"ours: {NOTHING}: own work", "ours: recall@10"} <= {
        f["name"] for f in found["figures"]
    }
    assert len(found["checks"]) == 4 and all(check["holds"] for check in found["checks"])
