"""Asynchronous work for callers that wait: an event loop on a thread of its own.

Why a loop: only a cancelled task gives a connection up at once and in every phase, also while the other side sends
headers byte by byte; a blocking socket gives its time limit anew to every read.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Coroutine, Iterator
from concurrent.futures import CancelledError
from contextlib import aclosing, suppress
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

from rag_pipeline.errors import TransientError

R = TypeVar("R")


class _Over(Generic[R]):
    """The end of a stream: as it should be, or with what went wrong."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error


class Background:
    """Runs coroutines for any number of threads; the loop starts with the first one."""

    def __init__(self, *, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._is_closed = False

    def run(self, work: Coroutine[Any, Any, R]) -> R:
        """The result of the work; what it raises is raised here. An interrupted caller ends it."""
        try:
            loop = self._running()
        except TransientError:
            work.close()
            raise
        future = asyncio.run_coroutine_threadsafe(work, loop)
        try:
            return future.result()
        except CancelledError:
            raise TransientError(f"{self._name} was closed while it was asked") from None
        finally:
            future.cancel()

    def iterate(self, items: AsyncGenerator[R, None]) -> Iterator[R]:
        """The items as they come; closing the iterator ends the work."""
        queue: SimpleQueue[R | _Over[R]] = SimpleQueue()
        loop = self._running()
        future = asyncio.run_coroutine_threadsafe(_into(queue, items), loop)
        try:
            while not isinstance(item := queue.get(), _Over):
                yield item
            if isinstance(item.error, asyncio.CancelledError):
                raise TransientError(f"{self._name} was closed while it was asked")
            if item.error is not None:
                raise item.error
        finally:
            future.cancel()

    def close(self, last: Coroutine[Any, Any, object]) -> None:
        """End what is under way, do the last work, and end the thread."""
        with self._lock:
            loop, thread, self._is_closed = self._loop, self._thread, True
            self._loop = self._thread = None
        if loop is None or thread is None:
            last.close()
            return
        asyncio.run_coroutine_threadsafe(_ended(last), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._is_closed:
                raise TransientError(f"{self._name} is closed")
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                # A daemon: a program that ends without `close` does not wait for an answer.
                self._thread = threading.Thread(target=self._loop.run_forever, name=self._name, daemon=True)
                self._thread.start()
            return self._loop


async def _into(queue: SimpleQueue[R | _Over[R]], items: AsyncGenerator[R, None]) -> None:
    try:
        async with aclosing(items):
            async for item in items:
                queue.put(item)
    except BaseException as error:
        queue.put(_Over(error))
        if not isinstance(error, Exception):
            raise
    else:
        queue.put(_Over())


async def _ended(last: Coroutine[Any, Any, object]) -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    with suppress(Exception):  # a connection that cannot even be closed
        await last
