"""What a run's log says of long work: every few seconds how far it is, in words and as key=value for machines."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

_LOG_EVERY_S = 5.0
_SILENCE_S = 10.0
"""So long a stage may report nothing, as inside one long statement or while it waits, before its log says so."""


@dataclass(slots=True, kw_only=True)
class _Stretch:
    """Work in one unit: rates of others would be meaningless."""

    started: float
    first: int
    """How much was done when it was first heard of."""


class LogProgress:
    """Writes how far a stage is into the run's log, every few seconds, with rate and time left.

    `started()` also lets it speak when nothing is reported, from a thread of its own, until `close()`.
    """

    def __init__(self, log: Callable[[str], None], *, clock: Callable[[], float] = time.monotonic) -> None:
        self._log = log
        self._clock = clock
        self._stretches: dict[tuple[str, str], _Stretch] = {}
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None
        self._last_said = self._last_heard = clock()
        self._doing = ""

    def __call__(self, stage: str, *, done: int, total: int | None, unit: str) -> None:
        """See `Progress`."""
        now = self._clock()
        with self._lock:
            known = self._stretches.get((stage, unit))
            if known is None or done < known.first:
                known = self._stretches[stage, unit] = _Stretch(started=now, first=done)
            self._last_heard = now
            self._doing = f"{stage}: {_amount(done, total, unit)}"
            finished = done == total and now - known.started >= _LOG_EVERY_S
            if not finished and (now - self._last_said < _LOG_EVERY_S or done == 0):
                return
            self._last_said = now
        self._log(_line(stage, known, done=done, total=total, unit=unit, now=now))

    def started(self) -> "LogProgress":
        """This, listening to itself from now on."""
        self._thread = threading.Thread(target=self._listen, daemon=True, name="run log")
        self._thread.start()
        return self

    def close(self) -> None:
        """Say nothing more."""
        self._closed.set()
        if self._thread is not None:
            self._thread.join()

    def break_silence(self) -> None:
        """Say that the work goes on, if nothing was said for a while."""
        now = self._clock()
        with self._lock:
            if now - self._last_said < _SILENCE_S or now - self._last_heard < _SILENCE_S:
                return
            self._last_said = now
            quiet, doing = now - self._last_heard, self._doing or "it has not begun to count"
        self._log(f"still at work, nothing new for {quiet:.0f} s; {doing} [quiet_s={quiet:.0f}]")

    def _listen(self) -> None:
        while not self._closed.wait(1.0):
            self.break_silence()


def _amount(done: int, total: int | None, unit: str) -> str:
    return f"{done:,}{f' of {total:,}' if total is not None else ''} {unit}"


def _line(stage: str, known: _Stretch, *, done: int, total: int | None, unit: str, now: float) -> str:
    took = max(now - known.started, 1e-9)
    # What was done before it was first heard of took no time that we know of.
    rate = (done - known.first) / took
    said = f"{stage}: {_amount(done, total, unit)}, {rate:,.1f} per second"
    whole, _, at = stage.partition(": ")
    facts = [f'stage="{whole}"', *([f'at="{at}"'] if at else []), f'unit="{unit}"', f"done={done}"]
    if total is not None:
        facts.append(f"total={total}")
    facts.append(f"rate={rate:.1f}")
    if total is not None and done < total and rate > 0:
        left = (total - done) / rate
        said += f", about {left:,.0f} s left"
        facts.append(f"eta_s={left:.0f}")
    elif done == total:
        said += f", done in {took:,.0f} s"
    return f"{said} [{' '.join(facts)}]"
