"""Processes beside each other: results keep their order, little is held, and nothing is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import count, islice

import pytest

from rag_pipeline.errors import ItemError
from rag_pipeline.isolated_pool import IsolatedPool
from rag_pipeline.isolation import Isolated


@pytest.fixture
def pool() -> Iterator[IsolatedPool]:
    """Two processes, ten seconds for each call."""
    with IsolatedPool(2, timeout_s=10, memory_bytes=1 << 30) as pool:
        yield pool


def wait(seconds: float) -> int:
    time.sleep(seconds)
    return os.getpid()


def waited(isolated: Isolated, seconds: float) -> tuple[float, int]:
    return seconds, isolated.call(wait, seconds)


def assert_gone(pids: set[int]) -> None:
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_results_keep_the_order_of_their_tasks_and_both_processes_work(pool: IsolatedPool) -> None:
    seconds = [0.3, 0.0, 0.1, 0.0, 0.2, 0.0, 0.0]
    found = list(pool.map(waited, seconds, at_once=2))
    assert [task for task, _ in found] == seconds
    pids = {pid for _, pid in found}
    assert len(pids) == pool.running() == 2
    assert {pid for _, pid in pool.map(waited, [0.1] * 4, at_once=2)} <= pids, "the same ones go on"
    pool.close()
    assert_gone(pids)


def test_no_more_are_started_than_are_needed(pool: IsolatedPool) -> None:
    for _ in range(2):
        with pool.one() as isolated:
            isolated.call(wait, 0)
    assert pool.running() == 1
    assert len(list(pool.map(waited, [0.0] * 8, at_once=1))) == 8
    assert pool.running() == 1


def test_few_tasks_are_taken_before_their_results_are_fetched(pool: IsolatedPool) -> None:
    taken = 0

    def tasks() -> Iterator[int]:
        nonlocal taken
        for number in count():
            taken += 1
            yield number

    results = pool.map(lambda _, task: task, tasks(), at_once=2)
    for fetched, _ in enumerate(islice(results, 50), start=1):
        assert taken <= fetched + 6
    results.close()  # type: ignore[attr-defined]  # a generator


def test_what_a_task_raises_is_raised_and_ends_all(pool: IsolatedPool) -> None:
    pids = {pid for _, pid in pool.map(waited, [0.1] * 4, at_once=2)}

    def work(isolated: Isolated, task: int) -> int:
        if task == 3:
            raise KeyError("colour")
        return isolated.call(wait, 0 if task < 3 else 9)

    started = time.monotonic()
    with pytest.raises(KeyError, match="colour"):
        list(pool.map(work, range(9), at_once=2))
    assert time.monotonic() - started < 5
    pool.close()
    assert_gone(pids)
    with pool.one() as isolated, pytest.raises(ItemError, match="was ended"):
        isolated.call(wait, 0)


@pytest.mark.parametrize("how", ["stream", "closed", "block"])
def test_an_end_before_the_last_result_ends_all(how: str) -> None:
    def tasks() -> Iterator[float]:
        yield from [0.1, 0.1, 0.1, 0.1, 9, 9, 9]
        if how == "stream":
            raise OSError("the lake is gone")
        yield from [9] * 9

    started = time.monotonic()
    with IsolatedPool(2, timeout_s=20, memory_bytes=1 << 30) as pool:
        results = pool.map(waited, tasks(), at_once=2)
        pids = {pid for _, pid in islice(results, 1)}
        if how == "stream":
            with pytest.raises(OSError, match="the lake is gone"):
                list(results)
        elif how == "closed":
            results.close()  # type: ignore[attr-defined]  # a generator
    assert time.monotonic() - started < 8
    assert_gone(pids)


INTERRUPTED = """
import signal
from rag_pipeline.isolated_pool import IsolatedPool
from rag_pipeline_tests.test_isolated_pool import waited

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have switched it off for what runs behind it
with IsolatedPool(2, timeout_s=10, memory_bytes=1 << 30) as pool:
    try:
        print(*{pid for _, pid in pool.map(waited, [0.1] * 4, at_once=2)}, flush=True)
        list(pool.map(waited, [9.0] * 4, at_once=2))
    except KeyboardInterrupt:
        print("interrupted", flush=True)
"""


def test_an_interrupt_ends_all() -> None:
    """In a process of its own, as Ctrl-C reaches one: the tests' own process has other things to lose."""
    with subprocess.Popen([sys.executable, "-c", INTERRUPTED], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        pids = {int(pid) for pid in child.stdout.readline().split()}
        time.sleep(0.5)
        started = time.monotonic()
        child.send_signal(signal.SIGINT)
        said, _ = child.communicate(timeout=30)
    assert (said, child.returncode) == ("interrupted\n", 0)
    assert time.monotonic() - started < 5
    assert len(pids) == 2
    assert_gone(pids)
