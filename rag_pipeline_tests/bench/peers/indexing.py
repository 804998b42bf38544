"""The same corpus through the pipeline and through what users would pick instead, in one run, side by side."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rag_pipeline.cli.console import err
from rag_pipeline.embedding import bfloat16, make_embedder
from rag_pipeline.errors import ConfigError
from rag_pipeline.settings import Embedding
from rag_pipeline_tests.bench.peers.corpora import Corpus, corpus_of_packages, corpus_of_repository, removed_text
from rag_pipeline_tests.bench.peers.index_worker import SHORT, TAKE_SHORT, VARIANTS
from rag_pipeline_tests.bench.peers.killing import killed_and_run_again
from rag_pipeline_tests.bench.peers.models import Fake
from rag_pipeline_tests.bench.peers.side_by_side import COLD, NOTHING, REMOVED, SHARE, WORDS, Measured, show
from rag_pipeline_tests.bench.peers.systems import (
    IN_INT8,
    INT8_MODEL,
    LAYOUTS,
    LONG,
    LONG_CHUNKS,
    OURS,
    K,
    OtherLibrary,
    OurPipeline,
    Question,
    Refreshed,
    System,
)
from rag_pipeline_tests.bench.place import place_beside
from rag_pipeline_tests.bench.report import Report

_PYTHON: Final = Path(".venv/peers/bin/python")
_FILES: Final = 3_000
_SHORT_UP_TO: Final = 5_000
"""Files: LlamaIndex holds all chunks in memory, 5 GB of 20,000 files in long ones, and takes a quarter of an hour."""
PARTS: Final = ("model", "repository", "packages")
"""The repository with the local model, the repository without one, files of installed packages without one."""


def bench_peers(
    repository: str, report: Report, *, start_date: date | None = None, files: int = _FILES,
    packages: Path | None = None, peers: Sequence[str] = (), parts: Sequence[str] = (),
) -> None:  # fmt: skip
    """All `PARTS`, or some, for all or some of the systems.

    `start_date` is not used: everyone indexes the newest state.

    Raises:
        ConfigError: the other libraries are not installed, or what is named is unknown.
        CommandFailed: one of the systems ended with an error.
    """
    python = Path(os.environ.get("RAG_PEERS_PYTHON", _PYTHON)).absolute()
    if not python.exists():
        raise ConfigError("the other libraries are not installed: run the benchmark with `make bench-peers`")
    if unknown := set(peers) - {*LAYOUTS, OURS}:
        raise ConfigError(f"--peers: there is no {min(unknown)!r}: choose from {OURS}, {', '.join(LAYOUTS)}")
    if unknown := set(parts) - set(PARTS):
        raise ConfigError(f"--parts: there is no {min(unknown)!r}: choose from {', '.join(PARTS)}")
    wanted = set(parts or PARTS)
    bench = _Bench(report=report, chosen=list(peers) or [OURS, *LAYOUTS], python=python)
    if "model" in wanted:
        with corpus_of_repository(repository) as corpus:
            bench.with_model(corpus)
    if "repository" in wanted:
        with corpus_of_repository(repository) as corpus:
            bench.without_model(corpus, kill=True)
    if "packages" in wanted:
        with corpus_of_packages(files, packages) as corpus:
            bench.without_model(corpus, kill=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bench:
    report: Report
    chosen: Sequence[str]
    python: Path

    def with_model(self, corpus: Corpus) -> None:
        section = f"{corpus.name}, with the local model"
        _say(f"{section}: {len(corpus.files):,} files, {corpus.megabytes:.1f} MB")
        with TemporaryDirectory(prefix="rag-bench-memory-") as memory:
            found = self._systems(corpus, "plain", memory=Path(memory))
            embedder = make_embedder(Embedding(), environ=os.environ)
            quantised = OURS in self.chosen and bfloat16.multiplies_int8()
            with self._ours_in(corpus, "plain", IN_INT8, INT8_MODEL, first_load_only=True, wanted=quantised) as int8:
                found[1:1] = int8
                _measure(corpus, found, embedder.embed_query, after_cold=lambda: self._lend(corpus, found))
            embedder.close()
        show(self.report, section, found, fake=False)

    def without_model(self, corpus: Corpus, *, kill: bool) -> None:
        section = f"{corpus.name}, everything but the model"
        _say(f"{section}: {len(corpus.files):,} files, {corpus.megabytes:.1f} MB")
        found = self._systems(corpus, "fake")
        if len(corpus.files) <= _SHORT_UP_TO:
            found += self._short(corpus)
        # Where there is somebody to compare it with.
        both = {OURS, "LlamaIndex"} <= set(self.chosen)
        with self._ours_in(corpus, "fake", LONG, LONG_CHUNKS, wanted=both) as long:
            found[1:1] = long
            _measure(corpus, found, _fake_question())
        for measured in found if kill else ():
            if not getattr(measured.system, "variant", ""):
                _say(f"  {measured.name}: killed, and run again")
                measured.survived = killed_and_run_again(corpus, measured.system, self.python)
        show(self.report, section, found, fake=True)

    @contextmanager
    def _ours_in(
        self, corpus: Corpus, model: str, variant: str, more: str, *, wanted: bool, first_load_only: bool = False
    ) -> Iterator[list[Measured]]:
        """Ours once more, with these sections in its configuration; nothing where it is not wanted."""
        if not wanted:
            yield []
            return
        with place_beside(corpus.place, more=corpus.place.more + more) as place:
            place.server.start()
            ours = OurPipeline(corpus, model=model, place=place, variant=variant)
            ours.create()
            yield [Measured(system=ours, first_load_only=first_load_only)]

    def _short(self, corpus: Corpus) -> list[Measured]:
        """Others in chunks as short as ours, where ours is chosen: their first load, and what their index finds."""
        chosen = [peer for peer in TAKE_SHORT if {OURS, peer} <= set(self.chosen)]
        return [
            Measured(system=self._other(peer, corpus, variant=SHORT, model="fake"), first_load_only=True)
            for peer in chosen
        ]

    def _other(
        self, peer: str, corpus: Corpus, *, variant: str, model: str, memory: Path | None = None, tag: str = ""
    ) -> OtherLibrary:
        other = OtherLibrary(
            peer, corpus, python=self.python, variant=variant, model=model, memory=memory, tag=tag
        )  # fmt: skip
        other.create()
        return other

    def _systems(self, corpus: Corpus, model: str, *, memory: Path | None = None) -> list[Measured]:
        found = []
        corpus.place.server.start()
        if OURS in self.chosen:
            ours = OurPipeline(corpus, model=model)
            ours.create()
            found.append(Measured(system=ours))
        for peer in (name for name in self.chosen if name in LAYOUTS):
            for variant in VARIANTS[peer]:
                remembered = memory / f"{peer}.npz" if memory else None
                other = self._other(peer, corpus, variant=variant, model=model, memory=remembered)
                remembers = bool(variant) and memory is not None
                found.append(Measured(system=other, remembers=remembers, first_load_only=remembers))
        return found

    def _lend(self, corpus: Corpus, found: Sequence[Measured]) -> None:
        """One more first load by the fastest of the others, with the model run as the pipeline runs it."""
        whole = [m for m in found if isinstance(m.system, OtherLibrary) and not m.first_load_only]
        if not whole:
            return
        fastest = min(whole, key=lambda measured: measured.steps[COLD].wall_s)
        assert isinstance(fastest.system, OtherLibrary)
        other = self._other(fastest.system.peer, corpus, variant="", model="lent", tag="_lent")
        fastest.lent = _refreshed(other, "cold, with our embedder")


Embed = Callable[[str], NDArray[np.float32]]


def _fake_question() -> Embed:
    fake = Fake()
    return lambda text: np.asarray(fake.vectors([text])[0][0])


def _measure(
    corpus: Corpus, found: Sequence[Measured], embed: Embed, *, after_cold: Callable[[], None] = lambda: None
) -> None:
    """All states of the corpus, one after the other, and in each of them all systems."""
    _step(found, COLD)
    after_cold()
    questions = [Question(text=text, vector=embed(text)) for text in corpus.questions()]
    for measured in found:
        _say(f"  {measured.name}: questions")
        _ask(measured, questions)
    whole = [measured for measured in found if not measured.first_load_only]
    _step(whole, NOTHING)
    for step, change in ((SHARE, corpus.change_a_share), (WORDS, corpus.edit_words)):
        before = [measured.system.embedded() for measured in whole]
        change()
        _step(whole, step)
        for measured, texts in zip(whole, before, strict=True):
            measured.least[step] = len(measured.system.embedded() - texts)
    _remove(corpus, whole, embed)


def _step(found: Sequence[Measured], step: str) -> None:
    for measured in found:
        measured.steps[step] = _refreshed(measured.system, step)


def _refreshed(system: System, step: str) -> Refreshed:
    refreshed = system.refresh()
    _say(f"  {system.name}: {step}: {refreshed.wall_s:.1f} s, own work {refreshed.own_s:.2f} s")
    if refreshed.stages:
        _say("    " + ", ".join(f"{stage} {seconds:.2f}" for stage, seconds in refreshed.stages.items()))
    system.settle()
    return refreshed


def _ask(measured: Measured, questions: Sequence[Question]) -> None:
    system = measured.system
    measured.rows = len(system.rows())
    exact = system.exact(questions)
    measured.answers = system.ask(questions)
    if isinstance(system, OurPipeline):
        measured.both, measured.answers = measured.answers, system.ask(questions, legs="vector")
    # Rows as near as the tenth count alike.
    shares = [
        sum(text in right for _, text in hits) / K
        for hits, right in zip(measured.answers.hits, exact, strict=True)
    ]  # fmt: skip
    measured.recall = float(np.mean(shares))


def _remove(corpus: Corpus, found: Sequence[Measured], embed: Embed) -> None:
    before = [measured.system.rows() for measured in found]
    gone = corpus.remove()
    _step(found, REMOVED)
    for measured, rows in zip(found, before, strict=True):
        measured.rows_left = sum(path in gone for path, _ in measured.system.rows())
        texts = removed_text(rows, gone)
        asked = [Question(text=text, vector=embed(text)) for text in texts.values()]
        answers = measured.system.ask(asked)
        measured.still_found = sum(
            any(path == removed for path, _ in hits) for removed, hits in zip(texts, answers.hits, strict=True)
        )


def _say(what: str) -> None:
    err.print(what, markup=False)
