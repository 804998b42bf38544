"""Blocking work beside the event loop: so many at once, so many more waiting, and for so long."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from rag_pipeline.serving.errors import refusal

R = TypeVar("R")
_COME_BACK_S = 1.0


class Workers:
    """Threads for what blocks.

    A place is free again when the work has really ended, not when somebody stopped waiting for it: a call that cannot
    be interrupted would otherwise be one thread more each time.
    """

    def __init__(self, *, max_concurrent: int, max_waiting: int, timeout_s: float) -> None:
        self._threads = ThreadPoolExecutor(max_workers=max_concurrent, thread_name_prefix="serving")
        self._most = max_concurrent + max_waiting
        self._timeout_s = timeout_s
        self._taken = 0
        self._lock = threading.Lock()

    @property
    def busy(self) -> int:
        """Calls at work and waiting."""
        return self._taken

    async def run(self, work: Callable[[], R], *, timeout_s: float | None = None) -> R:
        """What `work` returns or raises; it sees the context variables of whoever calls.

        Raises:
            HTTPException: 503, too many wait already; 504, it was not done after `timeout_s`, waiting included. What
                was not begun by then never is.
        """
        timeout_s = self._timeout_s if timeout_s is None else timeout_s
        begun = self._begin(work)
        try:
            return await asyncio.wait_for(asyncio.wrap_future(begun), timeout_s)
        except TimeoutError:
            # One of the work itself is the work's business.
            if begun.done() and not begun.cancelled():
                raise
            raise refusal(504, f"this took longer than {timeout_s:g} seconds: ask for less, or try again") from None

    def close(self) -> None:
        """Wait for what is at work; what waits is given up."""
        self._threads.shutdown(wait=True, cancel_futures=True)

    def _begin(self, work: Callable[[], R]) -> Future[R]:
        with self._lock:
            if self._taken >= self._most:
                raise refusal(503, "too many requests are waiting: try again in a moment", retry_after_s=_COME_BACK_S)
            self._taken += 1
        try:
            begun = self._threads.submit(contextvars.copy_context().run, work)
        except BaseException:
            self._leave()
            raise
        begun.add_done_callback(lambda _: self._leave())
        return begun

    def _leave(self) -> None:
        with self._lock:
            self._taken -= 1
