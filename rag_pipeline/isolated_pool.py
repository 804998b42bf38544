"""Several processes of `isolation` beside each other, and a stream of tasks for them whose results keep their order.

Each has a thread that waits for it. What the tasks are, and what becomes of one that failed, is the caller's business.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice
from queue import LifoQueue
from types import TracebackType
from typing import Final, Self, TypeVar

from rag_pipeline.isolation import Isolated

_AHEAD: Final = 3
"""Tasks for each process that are under way or not yet fetched: one more than it needs, so that a long one at the
front does not stop the others at once."""

T = TypeVar("T")
R = TypeVar("R")


class IsolatedPool:
    """At most `count` processes, each started when it is needed first; all of them end with the block.

    For the use of one thread.
    """

    def __init__(self, count: int, *, timeout_s: float, memory_bytes: int) -> None:
        """`timeout_s`, `memory_bytes`: of each process, as `Isolated` has them."""
        self._all = [Isolated(timeout_s=timeout_s, memory_bytes=memory_bytes) for _ in range(count)]
        # The last one that was used is the first to be used again, so that none is started without need.
        self._idle: LifoQueue[Isolated] = LifoQueue()
        for isolated in self._all:
            self._idle.put(isolated)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    def __len__(self) -> int:
        return len(self._all)

    def running(self) -> int:
        """How many processes there are now."""
        return sum(isolated.is_running for isolated in self._all)

    @contextmanager
    def one(self) -> Iterator[Isolated]:
        """One of the processes, waited for where all are in use."""
        isolated = self._idle.get()
        try:
            yield isolated
        finally:
            self._idle.put(isolated)

    def map(self, work: Callable[[Isolated, T], R], tasks: Iterable[T], *, at_once: int) -> Iterator[R]:
        """What `work` returns for each task, in their order; it is called in threads, `at_once` at most.

        Tasks are taken from the stream as results are: so many are held, and no more. When a task raises, when the
        caller is interrupted, and when not all results are fetched, the processes are ended, and the pool is no more.
        """
        coming = iter(tasks)
        under_way: deque[Future[R]] = deque()
        with ThreadPoolExecutor(at_once, thread_name_prefix="isolated") as threads:

            def given(task: T) -> R:
                with self.one() as isolated:
                    return work(isolated, task)

            try:
                under_way.extend(threads.submit(given, task) for task in islice(coming, _AHEAD * at_once))
                while under_way:
                    result = under_way.popleft().result()
                    under_way.extend(threads.submit(given, task) for task in islice(coming, 1))
                    yield result
            except BaseException:
                for future in under_way:
                    future.cancel()
                self._stop()  # otherwise the threads, which are waited for, would wait for their processes
                raise

    def close(self) -> None:
        """End all processes."""
        self._stop()
        for isolated in self._all:
            isolated.close()

    def _stop(self) -> None:
        for isolated in self._all:
            isolated.stop()
