"""The decisions about GitHub's rate limits, for any headers and any pair of clocks."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_pipeline.sources.github import limits

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
NAMES = ("x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset", "retry-after", "date")
any_value = st.one_of(
    st.text(max_size=30),
    st.integers(-10, 10**20).map(str),
    st.floats().map(str),
    st.datetimes(timezones=st.just(UTC)).map(lambda when: format_datetime(when, usegmt=True)),
)
any_headers = st.fixed_dictionaries({}, optional=dict.fromkeys(NAMES, any_value))
any_time = st.integers(631_152_000, 4_102_444_800).map(lambda seconds: datetime.fromtimestamp(seconds, UTC))
skews = st.integers(-(10**9), 10**9).map(lambda seconds: timedelta(seconds=seconds))
seconds = st.integers(0, 3600)


def headers_of(*, limit=5000, remaining=0, resets_in_s=600.0, server=NOW, **more):
    return {
        "date": format_datetime(server, usegmt=True),
        "x-ratelimit-limit": str(limit),
        "x-ratelimit-remaining": str(remaining),
        "x-ratelimit-reset": str(int(server.timestamp() + resets_in_s)),
        **more,
    }


@given(any_headers, any_time, st.integers(200, 599), st.text(max_size=50), st.integers(0, 10**6), st.floats(0, 0.99))
def test_no_headers_break_anything_and_no_wait_is_longer_than_a_day(headers, now, status, message, refusals, share):
    refusal_s = limits.refusal_wait_s(status, headers, message, refusals=refusals, now=now)
    assert refusal_s is None or 0 <= refusal_s <= 86_400
    quota = limits.read_quota(headers, now=now)
    assert quota is None or 0 <= limits.pause_s(quota, share_left=share, now=now) <= limits.WINDOW_S
    asked_s = limits.retry_after_s(headers, now=now)
    assert asked_s is None or 0 <= asked_s <= 86_400


@given(skews, st.integers(0, 100), seconds, st.floats(0, 0.99))
def test_waits_do_not_depend_on_what_this_machine_takes_for_the_time(skew, remaining, resets_in_s, share):
    headers = headers_of(remaining=remaining, limit=100, resets_in_s=resets_in_s)
    right, wrong = limits.read_quota(headers, now=NOW), limits.read_quota(headers, now=NOW + skew)
    assert limits.pause_s(wrong, share_left=share, now=NOW + skew) == limits.pause_s(right, share_left=share, now=NOW)
    assert right.resets_at == wrong.resets_at == NOW + timedelta(seconds=resets_in_s)
    assert limits.refusal_wait_s(403, headers, "", refusals=0, now=NOW + skew) == limits.refusal_wait_s(
        403, headers, "", refusals=0, now=NOW
    )


@given(skews)
def test_without_the_servers_time_a_wrong_clock_costs_an_hour_at_most(skew):
    headers = headers_of()
    del headers["date"]
    assert 0 <= limits.refusal_wait_s(403, headers, "", refusals=0, now=NOW + skew) <= limits.WINDOW_S


@given(st.integers(1, 10_000), st.integers(0, 10_000), seconds, st.floats(0, 0.99))
def test_the_pause_lasts_to_the_reset_exactly_when_the_share_for_others_is_reached(
    limit, remaining, resets_in_s, share
):
    quota = limits.read_quota(headers_of(limit=limit, remaining=remaining, resets_in_s=resets_in_s), now=NOW)
    expected = resets_in_s if remaining <= limit * share else 0
    assert limits.pause_s(quota, share_left=share, now=NOW) == expected


@given(st.integers(0, 7200))
def test_time_that_passes_shortens_the_pause_and_after_the_reset_there_is_none(passed_s):
    quota = limits.read_quota(headers_of(resets_in_s=3600), now=NOW)
    later = NOW + timedelta(seconds=passed_s)
    assert limits.pause_s(quota, share_left=0.1, now=later) == max(0, 3600 - passed_s)


@given(seconds, st.sampled_from([403, 429]), st.text(max_size=20), any_time)
def test_retry_after_comes_before_everything_else(asked_s, status, message, now):
    headers = headers_of(**{"retry-after": str(asked_s)})
    assert limits.refusal_wait_s(status, headers, message, refusals=3, now=now) == asked_s


@given(seconds, skews)
def test_retry_after_may_be_a_date_of_the_servers_clock(asked_s, skew):
    headers = headers_of(**{"retry-after": format_datetime(NOW + timedelta(seconds=asked_s), usegmt=True)})
    assert limits.retry_after_s(headers, now=NOW + skew) == asked_s


@given(seconds, st.sampled_from([403, 429]))
def test_a_used_up_quota_is_waited_for_until_its_reset(resets_in_s, status):
    headers = headers_of(remaining=0, resets_in_s=resets_in_s)
    assert limits.refusal_wait_s(status, headers, "API rate limit exceeded", refusals=0, now=NOW) == max(1, resets_in_s)


@given(
    st.integers(0, 9), st.sampled_from(["You have exceeded a secondary rate limit", "abuse detection", "Rate-Limit"])
)
def test_a_secondary_limit_is_waited_for_a_minute_and_twice_as_long_each_time(refusals, message):
    headers = headers_of(remaining=4000)
    first = limits.refusal_wait_s(403, headers, message, refusals=refusals, now=NOW)
    assert first == 60 * 2**refusals
    assert limits.refusal_wait_s(429, {}, "", refusals=refusals, now=NOW) == first


@given(st.integers(1, 5000), st.sampled_from([200, 304, 401, 404, 422, 500, 503]))
def test_only_403_and_429_are_rate_limits(remaining, status):
    headers = headers_of(remaining=remaining)
    assert limits.refusal_wait_s(status, headers, "secondary rate limit", refusals=0, now=NOW) is None
    assert limits.refusal_wait_s(403, headers, "Resource not accessible", refusals=0, now=NOW) is None


@pytest.mark.parametrize("name", ["x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"])
@pytest.mark.parametrize("value", [None, "", "-1", "many", "1e3", "99999999999999999999", "0x10", "٣"])
def test_a_quota_with_a_header_that_is_missing_or_wrong_is_no_quota(name, value):
    headers = headers_of()
    headers |= {name: value} if value is not None else {}
    if value is None:
        del headers[name]
    assert limits.read_quota(headers, now=NOW) is None


def test_a_limit_of_none_is_no_quota():
    assert limits.read_quota(headers_of(limit=0), now=NOW) is None


@given(st.integers(1, 10**6), st.floats(0, 1))
def test_backoff_is_full_jitter_under_a_doubling_bound_of_at_most_a_minute(failures, fraction):
    bound = min(60, 2.0 ** min(failures - 1, 10))
    assert limits.backoff_s(failures, jitter=lambda: fraction) == pytest.approx(fraction * bound)
