"""Working ahead: jobs on threads while the caller stores what is finished, and a clock of when any of them ran."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager
from typing import Protocol, TypeVar

J = TypeVar("J")
R = TypeVar("R")


class Pool(Protocol):
    """Threads that jobs are given to."""

    def submit(self, work: Callable[[J], R], job: J, /) -> Future[R]:
        """Do it on one of the threads."""


def run_ahead(
    pool: Pool,
    work: Callable[[J], R],
    jobs: Iterable[J],
    *,
    ahead: int,
    on_error: Callable[[], None] = lambda: None,
) -> Iterator[R]:
    """Results of the jobs as they finish, with at most `ahead` of them submitted and not yet taken by the caller.

    The next job is read and submitted only when the caller comes back for more, so after it has stored what it got.
    After the first error, of a job or of reading the next one, `on_error` is called and no job is started any more;
    those that are running still yield their results, and then the error is raised. Closing the iterator early also
    calls `on_error` and drops what waits.
    """
    waiting = iter(jobs)
    pending: set[Future[R]] = set()
    failure: BaseException | None = None
    more = True
    try:
        while True:
            while more and failure is None and len(pending) < ahead:
                try:
                    pending.add(pool.submit(work, next(waiting)))
                except StopIteration:
                    more = False
                except Exception as broken:
                    failure = broken
                    on_error()
                    pending = _running(pending)
            if not pending:
                break
            finished = next(iter(wait(pending, return_when=FIRST_COMPLETED).done))
            pending.remove(finished)
            if (error := finished.exception()) is None:
                yield finished.result()
            elif failure is None:
                failure = error
                on_error()
                pending = _running(pending)
        if failure is not None:
            raise failure
    finally:
        if pending:
            on_error()
            _running(pending)


def _running(futures: Iterable[Future[R]]) -> set[Future[R]]:
    """Those that cannot be cancelled any more, after the others were."""
    return {future for future in futures if not future.cancel()}


class Workers:
    """Threads for calls that may hang for minutes: they end with the process instead of keeping it alive.

    The threads of a ThreadPoolExecutor are waited for when Python exits, so that Ctrl-C would end a run only when the
    last server has answered.
    """

    def __init__(self, most: int, *, name: str) -> None:
        """At most so many threads, started when they are first needed."""
        self._most = most
        self._name = name
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._threads = 0
        self._closed = False
        self._when_ended: Callable[[], None] = lambda: None

    def submit(self, work: Callable[[J], R], job: J, /) -> Future[R]:
        """Do it on one of the threads; raises RuntimeError after `close`."""
        future: Future[R] = Future()
        with self._lock:
            if self._closed:
                raise RuntimeError("these threads are closed")
            if self._threads < self._most:
                self._threads += 1
                threading.Thread(target=self._run, name=f"{self._name}-{self._threads}", daemon=True).start()
            self._jobs.put(lambda: _do(future, work, job))
        return future

    def close(self, *, then: Callable[[], None]) -> None:
        """Take no more jobs, and wait for none: `then` is called when the last thread has ended, here or there."""
        with self._lock:
            if self._closed:
                return
            self._closed, self._when_ended = True, then
            for _ in range(self._threads):
                self._jobs.put(None)
            if self._threads:
                return
        then()

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()
        with self._lock:
            self._threads -= 1
            if self._threads:
                return
        self._when_ended()


def _do(future: Future[R], work: Callable[[J], R], job: J) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        future.set_result(work(job))
    except BaseException as error:  # whoever asks for the result gets it
        future.set_exception(error)


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
