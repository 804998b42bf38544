"""A blocking iterator on a thread, its events on the event loop: until it ends, or nobody wants them any more."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import suppress
from dataclasses import dataclass
from threading import Event
from typing import Final, Generic, TypeVar

from rag_pipeline.serving.workers import Workers

E = TypeVar("E")
LONGEST_S: Final = 600.0
"""So long an answer may take to be written; whoever still waits is told that it failed."""


@dataclass(frozen=True, slots=True)
class _Came(Generic[E]):
    event: E


async def pumped(
    workers: Workers, start: Callable[[], Generator[E, None, None]], *, tick_s: float
) -> AsyncGenerator[E | None, None]:
    """The events that `start` gives, made on one thread of `workers`; None whenever `tick_s` passed without one.

    What it raises is raised here, behind the events that came before. When this generator is closed, the iterator is
    closed on its thread as soon as it gives its next event.
    """
    loop, unwanted = asyncio.get_running_loop(), Event()
    waiting: asyncio.Queue[_Came[E]] = asyncio.Queue()

    def pump() -> None:
        events = start()
        try:
            for event in events:
                if unwanted.is_set():
                    return
                loop.call_soon_threadsafe(waiting.put_nowait, _Came(event))
        finally:
            events.close()

    work = asyncio.ensure_future(workers.run(pump, timeout_s=LONGEST_S))
    try:
        while True:
            come = asyncio.ensure_future(waiting.get())
            try:
                done, _ = await asyncio.wait({come, work}, timeout=tick_s, return_when=asyncio.FIRST_COMPLETED)
            finally:
                if not come.done():
                    come.cancel()
            if come in done:
                yield come.result().event
            elif work in done:
                break
            else:
                yield None
        # Nothing that came before the end is lost, whichever of the two was seen first.
        while not waiting.empty():
            yield waiting.get_nowait().event
        work.result()
    finally:
        unwanted.set()
        if not work.done():
            work.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await work
