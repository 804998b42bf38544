"""What GitHub's rate limits and refusals mean: how long to wait before the next request, if at all.

Pure: headers and times come in, seconds go out. Nothing here sends, sleeps or raises.
Rules: https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api
and https://docs.github.com/en/rest/using-the-rest-api/best-practices-for-using-the-rest-api
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

FIRST_BACKOFF_S = 1.0
LONGEST_BACKOFF_S = 60.0
FIRST_SECONDARY_WAIT_S = 60.0
SHORTEST_RESET_WAIT_S = 1.0
"""After a refusal: a reset that has just passed may not have reached every server."""
WINDOW_S = 3600.0
"""GitHub counts by the hour: a reset farther away than this is a wrong clock, not a long limit."""
LONGEST_ASKED_S = 86_400.0
_LAST_SECOND = 253_402_300_799  # of the year 9999
_SPEAKS_OF_A_LIMIT = re.compile(r"\brate.?limit|\babuse", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """What is left of the primary rate limit."""

    limit: int
    remaining: int
    resets_at: datetime
    """As GitHub says."""
    free_at: datetime
    """The same moment on this machine's clock."""


def read_quota(headers: Mapping[str, str], *, now: datetime) -> Quota | None:
    """What an answer's headers say of the quota; None when they say nothing usable.

    `headers` must be looked up case-insensitively or hold lower-case names, here and below.
    """
    limit, remaining = _count(headers, "x-ratelimit-limit"), _count(headers, "x-ratelimit-remaining")
    reset, wait_s = _count(headers, "x-ratelimit-reset"), until_reset_s(headers, now=now)
    if not limit or remaining is None or reset is None or wait_s is None:
        return None
    return Quota(
        limit=limit,
        remaining=remaining,
        resets_at=datetime.fromtimestamp(reset, UTC),
        free_at=now + timedelta(seconds=wait_s),
    )


def pause_s(quota: Quota, *, share_left: float, now: datetime) -> float:
    """Seconds to wait before the next request, so that `share_left` of the quota is left to others; 0: go on."""
    if quota.remaining > quota.limit * share_left:
        return 0.0
    return _between(0.0, (quota.free_at - now).total_seconds(), WINDOW_S)


def refusal_wait_s(
    status: int, headers: Mapping[str, str], message: str, *, refusals: int, now: datetime
) -> float | None:
    """Seconds to wait after an answer that a rate limit gave; None when it was no rate limit.

    `refusals` is how often the same request was refused for a rate limit before.
    """
    if status not in (403, 429):
        return None
    asked_s = retry_after_s(headers, now=now)
    if asked_s is not None:
        return asked_s
    used_up = _count(headers, "x-ratelimit-remaining") == 0
    reset_s = until_reset_s(headers, now=now)
    if used_up and reset_s is not None:
        return max(SHORTEST_RESET_WAIT_S, reset_s)
    if used_up or status == 429 or _SPEAKS_OF_A_LIMIT.search(message):
        return min(LONGEST_ASKED_S, FIRST_SECONDARY_WAIT_S * 2.0 ** min(refusals, 20))
    return None


def until_reset_s(headers: Mapping[str, str], *, now: datetime) -> float | None:
    """Seconds until `x-ratelimit-reset`, by the server's clock where it tells it; None when there is no such time."""
    reset = _count(headers, "x-ratelimit-reset")
    if reset is None or reset > _LAST_SECOND:
        return None
    return _between(0.0, reset - server_time(headers, now=now).timestamp(), WINDOW_S)


def retry_after_s(headers: Mapping[str, str], *, now: datetime) -> float | None:
    """What `Retry-After` asks for (RFC 9110, 10.2.3: seconds or a date); None when it does not."""
    seconds = _count(headers, "retry-after")
    if seconds is not None:
        return min(float(seconds), LONGEST_ASKED_S)
    when = _date(headers, "retry-after")
    if when is None:
        return None
    return _between(0.0, (when - server_time(headers, now=now)).total_seconds(), LONGEST_ASKED_S)


def server_time(headers: Mapping[str, str], *, now: datetime) -> datetime:
    """The time of an answer by the clock of who sent it; `now` when it does not tell."""
    return _date(headers, "date") or now


def backoff_s(failures: int, *, jitter: Callable[[], float]) -> float:
    """Seconds to wait after so many failures (from 1) of one request: exponential, with full jitter.

    `jitter` gives numbers from 0 to 1. https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/
    """
    return jitter() * min(LONGEST_BACKOFF_S, FIRST_BACKOFF_S * 2.0 ** min(failures - 1, 20))


def _count(headers: Mapping[str, str], name: str) -> int | None:
    text = headers.get(name, "").strip()
    return int(text) if re.fullmatch(r"[0-9]{1,15}", text) else None


def _date(headers: Mapping[str, str], name: str) -> datetime | None:
    try:
        when = parsedate_to_datetime(headers.get(name, ""))
        return when.replace(tzinfo=when.tzinfo or UTC).astimezone(UTC)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def _between(least: float, value: float, most: float) -> float:
    return max(least, min(value, most))
