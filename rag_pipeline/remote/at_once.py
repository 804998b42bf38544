"""Work on several things beside each other, as many at once as there are places for, and none of it left behind.

For what waits for somebody else (a fetch, a request): threads. Ctrl-C in the thread that asked ends the work of all.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Generic, TypeVar

from filelock import FileLock, Timeout

from rag_pipeline.errors import RagPipelineError

_POLL_S: Final = 0.05
_LOOK_S: Final = 0.5
T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Room for so many at once, in all processes that name this folder."""

    folder: Path
    count: int

    @contextmanager
    def one(self) -> Iterator[None]:
        """Hold a place, once one is free; it is free again when the process ends, however that comes."""
        self.folder.mkdir(parents=True, exist_ok=True)
        locks = [FileLock(self.folder / f"{number}.lock") for number in range(self.count)]
        while (held := next((lock for lock in locks if _is_taken(lock)), None)) is None:
            pause(_POLL_S)
        try:
            yield
        finally:
            held.release()


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome(Generic[T, R]):
    """What became of one thing: a result, or an error of ours."""

    thing: T
    result: R | None = None
    error: RagPipelineError | None = None


class _Stop:
    """Whether the work is to end, and what has to be ended for that."""

    def __init__(self) -> None:
        self.asked = threading.Event()
        self._lock = threading.Lock()
        self._ends: list[Callable[[], None]] = []

    def ask(self) -> None:
        with self._lock:
            self.asked.set()
            for end in self._ends:
                end()

    def add(self, end: Callable[[], None]) -> None:
        with self._lock:
            self._ends.append(end)
            if self.asked.is_set():
                end()

    def remove(self, end: Callable[[], None]) -> None:
        with self._lock:
            self._ends.remove(end)


_STOP: ContextVar[_Stop | None] = ContextVar("_STOP", default=None)
"""Of the thread that works on something; None: nobody but Ctrl-C stops it."""


def at_once(
    things: Sequence[T], work: Callable[[T], R], *, places: Places | None, told: Callable[[int], None] = lambda _: None
) -> list[Outcome[T, R]]:
    """What became of each thing, in their order; without `places` they are worked on one after the other.

    `told` hears in the calling thread how many are done. An error of ours stops nobody but itself; any other ends all
    work and is raised, as is Ctrl-C.
    """

    def placed(thing: T) -> Outcome[T, R]:
        with places.one() if places else nullcontext():
            go_on()
            try:
                return Outcome(thing=thing, result=work(thing))
            except RagPipelineError as error:
                return Outcome(thing=thing, error=error)

    if places is not None and min(len(things), places.count) > 1:
        return _in_threads(things, placed, most=places.count, told=told)
    found = []
    for thing in things:
        found.append(placed(thing))
        told(len(found))
    return found


def failures_of(outcomes: Sequence[Outcome[T, R]]) -> list[tuple[T, RagPipelineError]]:
    """The things that failed, each with its error."""
    return [(outcome.thing, outcome.error) for outcome in outcomes if outcome.error is not None]


def _in_threads(
    things: Sequence[T], work: Callable[[T], Outcome[T, R]], *, most: int, told: Callable[[int], None]
) -> list[Outcome[T, R]]:
    stop = _Stop()
    context = copy_context()
    context.run(_STOP.set, stop)
    with ThreadPoolExecutor(min(most, len(things)), thread_name_prefix="at once") as pool:
        started: list[Future[Outcome[T, R]]] = []
        try:
            started += [pool.submit(context.copy().run, work, thing) for thing in things]
            waiting, ended = set(started), 0
            while waiting:
                # In pieces: a signal that came just before a wait began would be heard at its end only.
                done, waiting = wait(waiting, timeout=_LOOK_S, return_when=FIRST_COMPLETED)
                for future in done:
                    future.result()
                    ended += 1
                    told(ended)
        except BaseException:
            for future in started:
                future.cancel()
            stop.ask()
            raise
        return [future.result() for future in started]


@contextmanager
def locked(path: Path, *, timeout_s: float) -> Iterator[None]:
    """Hold a file's lock, across processes; who waits for it goes on with the work or not at all.

    Raises:
        Timeout: somebody else held it for so long.
    """
    lock = FileLock(path)
    ends = time.monotonic() + timeout_s
    while not _is_taken(lock):
        if time.monotonic() > ends:
            raise Timeout(str(path))
        pause(_POLL_S)
    try:
        yield
    finally:
        lock.release()


def _is_taken(lock: FileLock) -> bool:
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return False
    return True


def go_on() -> None:
    """Does nothing, unless the work that this thread does is to end.

    Raises:
        KeyboardInterrupt: it is.
    """
    stop = _STOP.get()
    if stop is not None and stop.asked.is_set():
        raise KeyboardInterrupt


def pause(seconds: float) -> None:
    """Sleep, but not longer than the work goes on; raises as `go_on`."""
    stop = _STOP.get()
    (stop.asked if stop is not None else threading.Event()).wait(seconds)
    go_on()


@contextmanager
def ended_by(end: Callable[[], None]) -> Iterator[None]:
    """While this lasts, `end` is called when the work of this thread is to end: it waits for something else."""
    stop = _STOP.get()
    if stop is None:
        yield
        return
    stop.add(end)
    try:
        yield
    finally:
        stop.remove(end)
