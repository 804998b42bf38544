"""How long a model is waited for, by a clock that jumps to the next event instead of waiting."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from typing import Any

import pytest

from rag_pipeline.answering.language_model import Piece
from rag_pipeline.answering.patience import patiently
from rag_pipeline.errors import PermanentError, TransientError


class _Jumping(selectors.DefaultSelector):
    """Time passes only while the loop has nothing to do, and then at once."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self.now += timeout or 0.0
        return super().select(0)


def timed(work: Callable[[], Coroutine[Any, Any, object]]) -> tuple[object, float]:
    """What the work returns, or raises, and how many seconds it took."""
    selector = _Jumping()
    loop = asyncio.SelectorEventLoop(selector)
    loop.time = lambda: selector.now  # type: ignore[method-assign]
    try:
        return loop.run_until_complete(work()), selector.now
    except TransientError as error:
        return error, selector.now
    finally:
        loop.close()


Step = float | str | Exception
"""Seconds to wait, a piece, or an error."""


def waited_for(
    *attempts: Sequence[Step], timeout_s: float = 10, max_retries: int = 2, jitter: float = 1
) -> tuple[object, float]:
    """The pieces of attempts that go as scripted, joined."""
    left = list(attempts)

    async def attempt() -> AsyncGenerator[Piece, None]:
        for step in left.pop(0):
            if isinstance(step, Exception):
                raise step
            if isinstance(step, str):
                yield Piece(text=step)
            else:
                await asyncio.sleep(step)

    async def work() -> str:
        pieces = patiently(
            attempt, who="it", timeout_s=timeout_s, max_retries=max_retries, sleep=asyncio.sleep,
            jitter=lambda: jitter,
        )  # fmt: skip
        return "".join([piece.text async for piece in pieces])

    return timed(work)


def test_each_piece_has_the_whole_time_again():
    assert waited_for([9.0, "a", 9.0, "b", 9.0, "c", 9.0]) == ("abc", 36.0)
    error, seconds = waited_for([9.0, "a", 9.0, "b", 11.0, "c"])
    assert str(error) == "it fell silent for 10 s"
    assert seconds == 28.0


def test_the_first_piece_has_one_time_for_all_attempts_and_the_waits_between():
    busy = TransientError("busy")
    assert waited_for([3.0, busy], [3.0, busy], ["a"]) == ("a", 7.5)  # waits of 0.5 and 1 s
    error, seconds = waited_for([3.0, busy], [3.0, busy], [3.0, "a"])
    assert str(error) == "it did not answer within 10 s; before that: busy"
    assert seconds == 10.0


def test_a_wait_is_as_long_as_asked_for_and_none_that_cannot_help_is_begun():
    assert waited_for([TransientError("busy", retry_after_s=4)], ["a"], jitter=0) == ("a", 4.0)
    error, seconds = waited_for([TransientError("busy", retry_after_s=10)], ["a"], jitter=0)
    assert (str(error), seconds) == ("busy", 0.0)


def test_attempts_are_counted():
    busy = TransientError("busy")
    assert waited_for([busy], [busy], ["a"], jitter=0) == ("a", 0.0)
    assert str(waited_for([busy], [busy], [busy], ["a"], jitter=0)[0]) == "busy"
    assert str(waited_for([busy], ["a"], max_retries=0)[0]) == "busy"


def test_what_asking_again_cannot_cure_is_not_asked_again():
    with pytest.raises(PermanentError):
        waited_for([PermanentError("no")], ["a"])
