"""Calls in a process of their own: answers come back, and what goes wrong there ends there."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator

import pytest

from rag_pipeline.errors import ItemError
from rag_pipeline.isolation import Isolated


@pytest.fixture
def isolated() -> Iterator[Isolated]:
    """Half a second and 600 MB for each call."""
    with Isolated(timeout_s=0.5, memory_bytes=600 << 20) as isolated:
        yield isolated


def double(text: str, *, times: int = 2) -> tuple[str, int]:
    return text * times, os.getpid()


def refuse(reason: str) -> None:
    raise ItemError(reason)


def stumble() -> None:
    raise KeyError("colour")


def hang() -> None:
    # Inside C, where no exception of Python's could stop it.
    sum(range(10**12))


def grow() -> int:
    return len(bytearray(2 << 30))


def crash() -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def chatter() -> str:
    print("printed to standard output")
    return "answer"


def test_answers_come_from_one_other_process(isolated: Isolated) -> None:
    first, there = isolated.call(double, "ab")
    second, there_again = isolated.call(double, "x" * 3_000_000, times=3)
    assert (first, len(second)) == ("abab", 9_000_000)
    assert there == there_again != os.getpid()
    assert isolated.call(chatter) == "answer"


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (hang, "took longer than 0.5 s: leave it out, or raise documents.timeout_s"),
        (grow, "needs more memory"),
        (crash, "ended the process that read it"),
        (stumble, "KeyError: 'colour'"),
    ],
)
def test_what_goes_wrong_is_said_and_the_next_call_is_answered(isolated: Isolated, function, reason) -> None:
    for _ in range(2):
        with pytest.raises(ItemError, match=reason):
            isolated.call(function)
        assert isolated.call(double, "a")[0] == "aa"


def test_an_error_of_ours_keeps_its_words(isolated: Isolated) -> None:
    with pytest.raises(ItemError, match=r"^page 3 has no title$"):
        isolated.call(refuse, "page 3 has no title")


def test_time_is_counted_for_each_call_alone(isolated: Isolated) -> None:
    isolated.call(double, "a")
    for _ in range(3):
        isolated.call(time.sleep, 0.3)
    time.sleep(0.7)  # between calls nobody waits
    assert isolated.call(double, "a")[0] == "aa"


def test_nothing_is_left_behind() -> None:
    isolated = Isolated(timeout_s=5, memory_bytes=600 << 20)
    there = isolated.call(double, "a")[1]
    isolated.close()
    with pytest.raises(ProcessLookupError):
        os.kill(there, 0)
    isolated.close()
