"""How many requests a tenant may send in a minute, to one process: a moving window."""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from limits import RateLimitItemPerMinute
from limits.storage import MemoryStorage
from limits.strategies import MovingWindowRateLimiter

_SWEPT_EVERY: Final = 1_000  # hits


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """What a tenant may still ask for, this request included."""

    is_granted: bool
    limit: int
    """Requests a minute."""
    remaining: int
    reset_s: int
    """Until one more is free."""

    def headers(self) -> dict[str, str]:
        """For the answer, as draft-ietf-httpapi-ratelimit-headers had them when clients learnt them."""
        return {
            "RateLimit-Limit": str(self.limit),
            "RateLimit-Remaining": str(self.remaining),
            "RateLimit-Reset": str(self.reset_s),
        }


class RateLimits:
    """Counts the requests of each tenant; may be used from several threads. `clock` gives seconds."""

    def __init__(self, *, per_minute: int, clock: Callable[[], float]) -> None:
        self._limit = RateLimitItemPerMinute(per_minute)
        self._clock = clock
        self._limiter = MovingWindowRateLimiter(_Windows(clock))

    def hit(self, tenant: str) -> Allowance:
        """Count a request, if it may be."""
        is_granted = self._limiter.hit(self._limit, tenant)
        window = self._limiter.get_window_stats(self._limit, tenant)
        return Allowance(
            is_granted=is_granted, limit=self._limit.amount, remaining=max(0, window.remaining),
            reset_s=max(0, math.ceil(round(window.reset_time - self._clock(), 3))),
        )  # fmt: skip


class _Windows(MemoryStorage):
    """The library's, with the moments of each key in a deque, our clock, and no thread that sweeps."""

    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__()
        self._now = clock
        self._moments: dict[str, deque[float]] = {}
        self._busy = threading.Lock()
        self._hits = 0

    def acquire_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        with self._busy:
            now = self._now()
            self._hits += 1
            if self._hits % _SWEPT_EVERY == 0:
                for known in list(self._moments):
                    if not self._within(known, now - expiry):
                        del self._moments[known]
            moments = self._within(key, now - expiry)
            if len(moments) + amount > limit:
                return False
            moments.extend([now] * amount)
            self._moments[key] = moments
            return True

    def get_moving_window(self, key: str, limit: int, expiry: int) -> tuple[float, int]:
        del limit
        with self._busy:
            now = self._now()
            moments = self._within(key, now - expiry)
            return (moments[0] if moments else now), len(moments)

    def _within(self, key: str, since: float) -> deque[float]:
        moments = self._moments.get(key, deque())
        while moments and moments[0] <= since:
            moments.popleft()
        return moments
