"""Working ahead: jobs on threads while the caller stores what is finished, and a clock of when any of them ran."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from itertools import islice
from typing import TypeVar

J = TypeVar("J")
R = TypeVar("R")


def run_ahead(
    pool: ThreadPoolExecutor,
    work: Callable[[J], R],
    jobs: Iterable[J],
    *,
    ahead: int,
    on_error: Callable[[], None] = lambda: None,
) -> Iterator[R]:
    """Results of the jobs as they finish, with at most `ahead` of them submitted and not yet yielded.

    After the first error `on_error` is called, no job is started any more, those that are running still yield their
    results, and then the error is raised. Closing the iterator early also calls `on_error` and drops what waits.
    """
    waiting = iter(jobs)
    pending = {pool.submit(work, job) for job in islice(waiting, ahead)}
    failure: BaseException | None = None
    try:
        while pending:
            done, pending = wait(pending, return_when=FIRST_COMPLETED)
            if failure is None:
                pending |= {pool.submit(work, job) for job in islice(waiting, len(done))}
            for future in done:
                if future.cancelled():
                    continue
                if (error := future.exception()) is None:
                    yield future.result()
                elif failure is None:
                    failure = error
                    on_error()
                    _cancel(pending)
        if failure is not None:
            raise failure
    finally:
        if pending:
            on_error()
            _cancel(pending)


def _cancel(futures: Iterable[Future[R]]) -> None:
    for future in futures:
        future.cancel()


class BusyClock:
    """Adds up the wall-clock time during which at least one thread was inside `running()`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running = 0
        self._since = 0.0
        self._total = 0.0

    @property
    def seconds(self) -> float:
        """Up to now, the running ones included."""
        with self._lock:
            return self._total + (time.perf_counter() - self._since if self._running else 0.0)

    @contextmanager
    def running(self) -> Iterator[None]:
        with self._lock:
            if self._running == 0:
                self._since = time.perf_counter()
            self._running += 1
        try:
            yield
        finally:
            with self._lock:
                self._running -= 1
                if self._running == 0:
                    self._total += time.perf_counter() - self._since
