"""What a run's log says of long work, and when; the clock is a number."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable

import pytest

from rag_pipeline.defs.run_log import LogProgress


class Run:
    """A run whose time passes when it is told."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.lines: list[str] = []
        self.progress = LogProgress(self.lines.append, clock=lambda: self.now)

    def after(self, seconds: float, done: int, total: int | None = 1000, stage: str = "documents") -> None:
        self.now += seconds
        self.progress(stage, done=done, total=total, unit="items")

    def facts(self) -> dict[str, str]:
        """The key=value part of the last line."""
        (found,) = re.findall(r"\[(.+)\]$", self.lines[-1])
        return {key: quoted or bare for key, quoted, bare in re.findall(r'(\w+)=(?:"([^"]*)"|(\S+))', found)}


@pytest.fixture
def run() -> Run:
    return Run()


def test_a_line_every_few_seconds_with_rate_and_time_left(run):
    run.after(0, 0)
    for done in range(1, 101):
        run.after(0.2, done)
    assert len(run.lines) == 4, "every five seconds, of a hundred tells in twenty"
    assert run.lines[-1].startswith("documents: 100 of 1,000 items, 5.0 per second, about 180 s left [")
    assert run.facts() == {
        "stage": "documents", "unit": "items", "done": "100", "total": "1000", "rate": "5.0", "eta_s": "180"
    }  # fmt: skip


def test_the_rate_is_of_what_was_seen(run):
    run.after(0, 900)
    run.after(10, 950)
    assert run.facts()["rate"] == "5.0", "the first 900 took no time that anybody knows of"


def test_without_a_total_there_is_no_time_left(run):
    run.after(0, 0, None)
    run.after(6, 60, None)
    assert run.lines == ['documents: 60 items, 10.0 per second [stage="documents" unit="items" done=60 rate=10.0]']


def test_each_unit_has_a_rate_of_its_own(run):
    run.progress("documents", done=6000, total=6000, unit="parts")
    run.after(0, 0)
    run.after(6, 60)
    assert run.facts()["rate"] == "10.0"


def test_what_it_is_at_is_a_fact_of_its_own(run):
    run.after(0, 1, stage="raw_docs: files of acme/app")
    run.after(6, 7, stage="raw_docs: files of acme/app")
    assert (run.facts()["stage"], run.facts()["at"]) == ("raw_docs", "files of acme/app")


def test_the_end_of_long_work_is_said_and_that_of_short_work_is_not(run):
    run.after(0, 1)
    run.after(4, 1000)
    assert run.lines == []
    run.after(1, 1, stage="chunks")
    run.after(5.5, 999, stage="chunks")
    run.after(0.1, 1000, stage="chunks")
    assert "done in 6 s" in run.lines[-1]


def test_silence_is_broken_with_what_the_run_is_at(run):
    run.after(0, 0, None, stage="knowledge_index: segments and graph")
    run.now += 9
    run.progress.break_silence()
    assert run.lines == []
    for _ in range(30):
        run.now += 1
        run.progress.break_silence()
    assert len(run.lines) == 3
    assert run.lines[0].startswith("still at work, nothing new for 10 s; knowledge_index: segments and graph: 0 items")
    run.after(1, 1)
    run.progress.break_silence()
    assert not run.lines[-1].startswith("still")


def test_it_speaks_by_itself_until_it_is_closed():
    said = threading.Event()
    moments = iter(range(0, 10_000_000, 20))
    progress = LogProgress(lambda _: said.set(), clock=_ticking(moments)).started()
    assert said.wait(30)
    progress.close()
    said.clear()
    progress.close()
    assert not [thread for thread in threading.enumerate() if thread.name == "run log"]


def _ticking(moments: object) -> Callable[[], float]:
    return lambda: float(next(moments))  # type: ignore[call-overload]
