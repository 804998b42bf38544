"""When the GitHub client asks again, how long it waits before, and when it gives up."""

from __future__ import annotations

import gzip
from dataclasses import asdict
from datetime import timedelta

import pytest

from rag_pipeline.errors import PermanentError, QuotaExhausted, TransientError
from rag_pipeline.settings import GitHub
from rag_pipeline.sources.github import auth
from rag_pipeline.sources.github.client import make_client
from rag_pipeline_tests.sources.github.scripted_server import (
    ISSUES,
    NOW,
    OK,
    SECONDARY,
    Clock,
    Reply,
    client_on,
    error_of,
    in_turn,
    quota,
    refused,
    scripted_server,
)

# What passes by itself.


@pytest.mark.parametrize(
    "bad",
    [
        Reply(status=500),
        Reply(status=502, body=b"<html>Bad gateway</html>"),
        Reply(status=202, body={}),
        Reply(body=b"<html>Unicorn!</html>"),
        Reply(body=b'[{"id": 1}, {"id"'),
        Reply(body=b"\xff\xfe["),
        Reply(body=b""),
        Reply(body=b"[" * 100_000),
        Reply(body=[1, 2, 3], missing_bytes=3),
        Reply(body=b"no gzip", headers={"Content-Encoding": "gzip"}),
        Reply(body=gzip.compress(b"[" + b"1, " * 9999 + b"1]")[:40], headers={"Content-Encoding": "gzip"}),
    ],
)
def test_what_may_pass_by_itself_is_tried_again(bad):
    with client_on(in_turn(bad, bad, OK)) as (client, _, clock):
        assert client.get(ISSUES).data == OK.body
    assert len(clock.slept) == 2
    assert 0 <= clock.slept[0] <= 1
    assert 0 <= clock.slept[1] <= 2
    assert (client.usage.requests, client.usage.retries) == (3, 2)
    assert client.usage.waited_s == sum(clock.slept)


def test_after_the_last_retry_the_failure_is_transient():
    for retries in (0, 3):
        error, slept = error_of(TransientError, refused(503, "Busy"), max_retries=retries)
        assert "Busy" in str(error)
        assert len(slept) == retries


def test_a_server_error_may_say_how_long_to_wait():
    with client_on(in_turn(refused(503, "Busy", Retry_After="9"), OK)) as (client, _, clock):
        client.get(ISSUES)
    assert clock.slept == [9]
    error, slept = error_of(TransientError, refused(503, "Busy", Retry_After="301"))
    assert (error.retry_after_s, slept) == (301, [])


def test_an_answer_that_does_not_come_in_time_is_tried_again():
    with client_on(in_turn(Reply(body=[], delay_s=5), OK), timeout_s=2) as (client, _, clock):
        assert client.get(ISSUES).data == OK.body
    assert len(clock.slept) == 1
    error, _ = error_of(TransientError, Reply(body=[], delay_s=0.3), timeout_s=0.05, max_retries=0)
    assert "did not answer within 0.05 s" in str(error)


def test_a_server_that_is_not_there_is_transient():
    with scripted_server(in_turn(OK)) as server:
        url = server.url
    clock = Clock()
    settings = GitHub.model_validate({"base_url": url, "max_retries": 2})
    with (
        make_client(settings, repository="o/r", environ={}, clock=clock, sleep=clock.sleep) as client,
        pytest.raises(TransientError, match="cannot reach"),
    ):
        client.get(ISSUES)
    assert len(clock.slept) == 2


@pytest.mark.parametrize(
    "reply",
    [
        Reply(body=[1] * 1000),
        Reply(body=b"[]", headers={"Content-Length": "300000000"}),
        Reply(status=403, body=b"x" * 1001),
        Reply(body=gzip.compress(b"[" + b" " * 10_000 + b"]"), headers={"Content-Encoding": "gzip"}),
    ],
)
def test_an_answer_that_is_too_large_is_not_read(monkeypatch, reply):
    monkeypatch.setattr(auth, "MOST_BYTES", 1000)
    error, slept = error_of(PermanentError, reply)
    assert "more than 1,000 bytes" in str(error)
    assert slept == []


# Rate limits.


def test_retry_after_is_waited_for():
    with client_on(in_turn(refused(403, SECONDARY, Retry_After="17"), OK)) as (client, _, clock):
        assert client.get(ISSUES).status == 200
    assert clock.slept == [17]
    assert (client.usage.waited_s, client.usage.retries) == (17, 1)


def test_after_retry_after_the_reset_is_not_waited_for_too():
    limited = refused(403, SECONDARY, Retry_After="17", **quota(remaining=0, resets_in_s=600))
    with client_on(in_turn(limited, OK)) as (client, _, clock):
        assert client.get(ISSUES).status == 200
    assert clock.slept == [17]


@pytest.mark.parametrize("status", [403, 429])
def test_a_used_up_quota_is_waited_for_until_the_reset(status):
    limited = refused(status, "API rate limit exceeded", **quota(remaining=0, resets_in_s=120))
    with client_on(in_turn(limited, OK)) as (client, _, clock):
        assert client.get(ISSUES).status == 200
    assert clock.slept == [120]


@pytest.mark.parametrize("reply", [refused(403, SECONDARY), refused(429, "Slow down"), refused(403, "abuse detection")])
def test_a_secondary_limit_is_waited_for_a_minute_then_longer(reply):
    with client_on(in_turn(reply, reply, OK)) as (client, _, clock):
        client.get(ISSUES)
    assert clock.slept == [60, 120]


def test_a_secondary_limit_may_be_a_web_page():
    page = Reply(status=403, body=b"<html>Whoa there! You have exceeded a secondary rate limit.</html>")
    with client_on(in_turn(page, OK)) as (client, _, clock):
        client.get(ISSUES)
    assert clock.slept == [60]


def test_a_limit_that_lasts_longer_than_we_may_wait_ends_the_reading():
    limited = refused(403, "API rate limit exceeded", **quota(remaining=0, resets_in_s=1800))
    error, slept = error_of(QuotaExhausted, limited)
    assert (error.retry_after_s, slept) == (1800, [])
    assert "until 2026-03-01 12:30:00 UTC, for 1800 s" in str(error)
    assert "API rate limit exceeded" in str(error)


def test_a_limit_that_does_not_end_is_given_up():
    error, slept = error_of(QuotaExhausted, refused(429, "Slow down", Retry_After="1"))
    assert slept == [1] * 5
    assert error.retry_after_s == 1


def test_limits_do_not_count_as_failures():
    script = in_turn(refused(429, "Slow down", Retry_After="1"), Reply(status=502), OK)
    with client_on(script, max_retries=1) as (client, _, clock):
        assert client.get(ISSUES).status == 200
    assert len(clock.slept) == 2


def test_before_the_share_for_others_is_touched_the_reset_is_waited_for():
    low = Reply(body=[1], headers=quota(remaining=500, resets_in_s=200))
    with client_on(in_turn(low, OK)) as (client, server, clock):
        client.get(ISSUES)
        assert clock.slept == []
        client.get(ISSUES)
        client.get(ISSUES)
    assert clock.slept == [200]
    assert len(server.requests) == 3


def test_while_there_is_enough_left_nothing_is_waited_for():
    with client_on(Reply(body=[], headers=quota(remaining=501))) as (client, _, clock):
        client.get(ISSUES)
        client.get(ISSUES)
    assert clock.slept == []


def test_when_the_reset_is_too_far_away_the_share_for_others_is_left_to_them():
    with client_on(Reply(body=[], headers=quota(remaining=500, resets_in_s=301))) as (client, server, clock):
        client.get(ISSUES)
        with pytest.raises(QuotaExhausted, match="500 of 5000") as caught:
            client.get(ISSUES)
        assert caught.value.retry_after_s == 301
        assert len(server.requests) == 1
        clock.now += timedelta(seconds=301)
        client.get(ISSUES)
    assert clock.slept == []


def test_the_share_is_left_to_others_on_retries_and_redirects_too():
    low = quota(remaining=10, resets_in_s=100)
    moved = Reply(status=301, headers={"Location": "/x"} | low)
    with client_on(in_turn(moved, OK)) as (client, _, clock):
        client.get(ISSUES)
    assert clock.slept == [100]


def test_304_shows_the_quota_too():
    low = Reply(status=304, headers=quota(remaining=1, resets_in_s=50))
    with client_on(in_turn(low, OK)) as (client, _, clock):
        client.get(ISSUES, etag='"a"')
        client.get(ISSUES)
    assert clock.slept == [50]


def test_usage_tells_what_github_last_said():
    with client_on(in_turn(Reply(body=[], headers=quota(remaining=4321)), OK)) as (client, _, _):
        client.get(ISSUES)
        client.get(ISSUES)
    assert asdict(client.usage) == {
        "requests": 2, "not_modified": 0, "retries": 0, "waited_s": 0.0,
        "limit": 5000, "remaining": 4321, "resets_at": NOW + timedelta(seconds=600),
    }  # fmt: skip


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"X-RateLimit-Remaining": "0"},
        quota(remaining=0, limit=0),
        quota(remaining="none"),
        quota(remaining=0, limit="-5"),
        quota(remaining=0) | {"X-RateLimit-Reset": "soon"},
        quota(remaining=0) | {"X-RateLimit-Reset": "99999999999999"},
        quota(remaining=0, resets_in_s=-5),
    ],
)
def test_rate_headers_that_are_missing_or_wrong_change_nothing(headers):
    with client_on(Reply(body=[], headers=headers)) as (client, _, clock):
        client.get(ISSUES)
        assert client.get(ISSUES).status == 200
    assert clock.slept == []


@pytest.mark.parametrize("hours", [-1000, -2, 2, 1000])
def test_a_clock_that_is_wrong_makes_no_wait_longer(hours):
    clock, server_clock = Clock(NOW + timedelta(hours=hours)), Clock()
    limited = refused(403, "API rate limit exceeded", **quota(remaining=0, resets_in_s=20))
    low = Reply(body=[], headers=quota(remaining=0, resets_in_s=30))
    with client_on(in_turn(limited, low, OK), clock=clock, server_clock=server_clock) as (client, _, _):
        client.get(ISSUES)
        client.get(ISSUES)
    assert clock.slept == [20, 30]


@pytest.mark.parametrize("date", ["", "yesterday", "Thu, 99 Foo 2026"])
def test_without_the_servers_time_our_own_is_taken(date):
    limited = refused(403, "API rate limit exceeded", Date=date, **quota(remaining=0, resets_in_s=20))
    with client_on(in_turn(limited, OK)) as (client, _, clock):
        client.get(ISSUES)
    assert clock.slept == [20]


def test_what_is_waited_for_is_told_and_for_how_long():
    told = []
    limited, broken = refused(403, SECONDARY, **{"Retry-After": "7"}), Reply(status=500, headers={"Retry-After": "3"})
    with client_on(in_turn(broken, limited, OK)) as (client, _, _):
        client._progress = lambda stage, *, done, total, unit: told.append((stage, total, unit))
        client.get(ISSUES)
    (after, after_s, _), (limit, limit_s, _) = [each for each in told if each[2] == "seconds"]
    assert "waiting to ask again, after" in after and "500" in after and after_s == 3
    assert "rate limit" in limit and limit_s == 7
