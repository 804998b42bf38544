"""When to ask again: exponential backoff with full jitter, or what the other side asks for.

Full jitter: https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TypeVar

from rag_pipeline.errors import TransientError

R = TypeVar("R")

FIRST_WAIT_S = 0.5
LONGEST_BACKOFF_S = 30.0
LONGEST_RETRY_AFTER_S = 300.0
"""A service that asks for more is given up on: a run that sleeps for an hour helps nobody."""


def retrying(
    call: Callable[[], R],
    *,
    max_retries: int,
    sleep: Callable[[float], object],
    stopped: threading.Event,
    jitter: Callable[[], float] = random.random,
) -> R:
    """The result of `call`, repeated after each TransientError up to `max_retries` times, or until `stopped` is set.

    `jitter` gives numbers from 0 to 1. Waits `retry_after_s` of the error when it has one, plus a little, so that
    callers who were refused together do not return together.

    Raises:
        TransientError: the last one.
    """
    for attempt in range(max_retries + 1):
        try:
            return call()
        except TransientError as error:
            asked = error.retry_after_s
            if attempt == max_retries or stopped.is_set() or (asked or 0.0) > LONGEST_RETRY_AFTER_S:
                raise
            sleep(backoff_s(attempt, asked=asked, jitter=jitter))
            if stopped.is_set():
                raise
    raise AssertionError("unreachable: the last attempt returns or raises")


def backoff_s(attempt: int, *, asked: float | None, jitter: Callable[[], float]) -> float:
    """Seconds to wait after attempt `attempt` (from 0) has failed; `asked` is what the service wants, if anything."""
    if asked is not None:
        return asked + jitter() * FIRST_WAIT_S
    return jitter() * min(LONGEST_BACKOFF_S, FIRST_WAIT_S * 2.0**attempt)


def retry_after_s(headers: Mapping[str, str], *, now: datetime) -> float | None:
    """What `retry-after-ms` or `Retry-After` asks for (RFC 9110, 10.2.3: seconds or a date); None when neither does.

    `headers` must be looked up case-insensitively or hold lower-case names.
    """
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            return max(0.0, float(headers[name]) * unit)
        except (KeyError, ValueError):
            continue
    try:
        when = parsedate_to_datetime(headers["retry-after"])
    except (KeyError, ValueError, TypeError):
        return None
    return max(0.0, (when.replace(tzinfo=when.tzinfo or UTC) - now).total_seconds())
