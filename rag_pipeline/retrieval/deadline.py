"""Work that is waited for only so long: on a thread that is left behind when it does not come back."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Final, TypeVar

R = TypeVar("R")

MOST_LEFT_BEHIND: Final = 64
"""Threads at work at once, those that nobody waits for any more included: what hangs must not pile up for ever."""
_free = threading.BoundedSemaphore(MOST_LEFT_BEHIND)


def within(timeout_s: float, work: Callable[[], R]) -> R:
    """What `work` returns or raises, unless that takes longer than `timeout_s` seconds.

    No thread can be stopped from outside: work that is given up on goes on until it ends by itself, so it should bound
    its own waits, too. It must be able to run on another thread than the caller's.

    Raises:
        TimeoutError: it took too long, or too many earlier ones have not come back yet.
    """
    free = _free
    if not free.acquire(blocking=False):
        raise TimeoutError(f"{MOST_LEFT_BEHIND} earlier calls have not come back yet")
    future: Future[R] = Future()
    context = contextvars.copy_context()  # what is logged or traced in there belongs to this request
    try:
        # A daemon: a process that wants to end must not wait for what hangs, as an executor's threads would make it.
        threading.Thread(target=context.run, args=(_run, work, future, free), name="within", daemon=True).start()
    except BaseException:
        free.release()
        raise
    try:
        return future.result(timeout=timeout_s)
    except TimeoutError:
        if future.done():
            return future.result()  # or its own TimeoutError
        raise TimeoutError(f"it took longer than {timeout_s:g} s") from None


def _run(work: Callable[[], R], future: Future[R], free: threading.BoundedSemaphore) -> None:
    try:
        result = work()
    except BaseException as error:
        free.release()
        future.set_exception(error)
    else:
        free.release()
        future.set_result(result)
