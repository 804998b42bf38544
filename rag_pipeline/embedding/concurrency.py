"""How many requests a service is given at once: as many as it takes without refusing any."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rag_pipeline.errors import TransientError


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """Leave for one request."""

    period: int
    """Between which two reductions of the limit it was given."""


class AdaptiveLimit:
    """A limit on requests under way that halves when the service is overloaded, and comes back one by one.

    Additive increase, multiplicative decrease (Chiu and Jain, 1989), as TCP does it: what was sent before the last
    reduction does not reduce it again, and it grows by one when as many requests were answered as it allows.
    """

    def __init__(self, most: int) -> None:
        """`most` is where it starts, and what it never exceeds."""
        self._most = self._now = most
        self._free = threading.Condition()
        self._under_way = 0
        self._answered = 0
        self._period = 0

    @property
    def now(self) -> int:
        """How many requests may be under way."""
        return self._now

    @contextmanager
    def slot(self, stopped: threading.Event) -> Iterator[Slot]:
        """Around one request; waits for its turn.

        Raises:
            TransientError: `stopped` was set (and `wake` called) before it was this one's turn.
        """
        with self._free:
            self._free.wait_for(lambda: self._under_way < self._now or stopped.is_set())
            if stopped.is_set():
                raise TransientError("not sent: another request has failed")
            self._under_way += 1
            given = Slot(period=self._period)
        try:
            yield given
        finally:
            with self._free:
                self._under_way -= 1
                self._free.notify_all()

    def refused(self, slot: Slot) -> None:
        """The service has too much to do: it gets half as much."""
        with self._free:
            if slot.period == self._period:
                self._now = max(1, self._now // 2)
                self._period += 1
                self._answered = 0

    def answered(self, slot: Slot) -> None:
        """The service answered, with whatever."""
        with self._free:
            if slot.period != self._period or self._now == self._most:
                return
            self._answered += 1
            if self._answered >= self._now:
                self._now, self._answered = self._now + 1, 0
                self._free.notify_all()

    def wake(self) -> None:
        """Let those who wait look at their `stopped`."""
        with self._free:
            self._free.notify_all()
