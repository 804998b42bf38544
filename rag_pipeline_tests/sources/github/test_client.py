"""The GitHub client on real sockets: what it sends, where to, and what it makes of each answer."""

from __future__ import annotations

import traceback

import pytest

from rag_pipeline.errors import ConfigError, PermanentError, ResourceGone
from rag_pipeline.settings import GitHub
from rag_pipeline.sources.github.client import make_client
from rag_pipeline_tests.sources.github.scripted_server import (
    ISSUES,
    OK,
    TOKEN,
    Clock,
    Reply,
    client_on,
    error_of,
    in_turn,
    quota,
    refused,
    scripted_server,
)

# What is sent, and what a page is.


def test_a_page_is_the_json_with_its_etag_and_where_it_came_from():
    reply = Reply(body=[{"title": "Ünï"}], headers={"ETag": 'W/"abc"'})
    with client_on(reply) as (client, server, _):
        page = client.get(ISSUES, params={"state": "all", "per_page": 100})
    assert (page.status, page.data, page.etag, page.next) == (200, [{"title": "Ünï"}], 'W/"abc"', None)
    assert page.url == f"{server.url}{ISSUES}?state=all&per_page=100"
    assert server.requests[0].query == {"state": "all", "per_page": "100"}


def test_requests_name_the_version_the_format_and_the_program():
    with client_on(OK) as (client, server, _):
        client.get(ISSUES)
    headers = server.requests[0].headers
    assert headers["x-github-api-version"] == "2022-11-28"
    assert headers["accept"] == "application/vnd.github+json"
    assert headers["user-agent"] == "rag-pipeline"
    assert headers["authorization"] == f"token {TOKEN}"


def test_an_etag_makes_the_request_conditional_and_304_has_no_data():
    with client_on(Reply(status=304, headers={"ETag": '"a"'})) as (client, server, _):
        page = client.get(ISSUES, etag='"a"')
    assert server.requests[0].headers["if-none-match"] == '"a"'
    assert (page.status, page.data, page.next, page.etag) == (304, None, None, '"a"')
    assert (client.usage.requests, client.usage.not_modified) == (1, 1)


def test_nothing_is_cached_between_requests():
    with client_on(Reply(body=[], headers={"ETag": '"a"', "Cache-Control": "max-age=60"})) as (client, server, _):
        client.get(ISSUES)
        client.get(ISSUES)
    assert ["if-none-match" in request.headers for request in server.requests] == [False, False]


def test_the_next_page_is_where_the_link_header_says():
    with client_on(OK) as (client, server, _):
        link = f'<{server.url}/repositories/1/issues?page=1>; rel="prev", '
        link += f'<{server.url}/repositories/1/issues?page=3&state=all>; rel="next"'
        server.script = in_turn(Reply(body=[2], headers={"Link": link}), Reply(body=[3]))
        second = client.get(ISSUES)
        third = client.get(second.next)
    assert second.next == third.url == f"{server.url}/repositories/1/issues?page=3&state=all"
    assert (third.data, third.next) == ([3], None)


def test_a_relative_next_link_becomes_an_address():
    with client_on(Reply(body=[], headers={"Link": '</x?page=2>; rel="next"'})) as (client, server, _):
        assert client.get(ISSUES).next == f"{server.url}/x?page=2"


def test_paths_are_below_the_path_of_an_enterprise_servers_api():
    with client_on(OK, prefix="/api/v3/") as (client, server, _):
        assert client.get(ISSUES).url == f"{server.url}/api/v3{ISSUES}"


def test_one_connection_serves_all_requests_of_a_client():
    with client_on(OK) as (client, server, _):
        assert [client.get(ISSUES).status for _ in range(3)] == [200] * 3
    assert len({request.client_port for request in server.requests}) == 1


@pytest.mark.parametrize(
    "address", ["http://elsewhere.test/x", "http://127.0.0.1:1/x", "https://127.0.0.1/x", "ftp://a/b", "http://[bad"]
)
def test_addresses_of_another_origin_are_not_asked(address):
    with client_on(OK) as (client, server, _):
        with pytest.raises(PermanentError):
            client.get(address)
        with pytest.raises(PermanentError, match="not asked") as caught:
            client.get(server.url.replace("//", "//user:secret@") + "/x")
    assert server.requests == []
    assert "secret" not in str(caught.value)


# Redirects.


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_redirects_are_followed_within_the_same_origin(status):
    moved = Reply(status=status, headers={"Location": "/repositories/7/issues?state=all"})
    with client_on(in_turn(moved, OK)) as (client, server, _):
        page = client.get(ISSUES, params={"state": "all"}, etag='"a"')
    assert page.url == f"{server.url}/repositories/7/issues?state=all"
    assert [request.headers["if-none-match"] for request in server.requests] == ['"a"', '"a"']
    assert all(request.headers["authorization"] for request in server.requests)


def test_a_redirect_to_another_host_gets_no_token_and_is_gone():
    with scripted_server(in_turn(OK)) as other:
        moved = Reply(status=301, headers={"Location": f"{other.url}/repositories/7"})
        error_of(ResourceGone, moved)
        assert other.requests == []


def test_a_redirect_in_circles_ends():
    with (
        client_on(Reply(status=302, headers={"Location": ISSUES})) as (client, server, _),
        pytest.raises(PermanentError, match="more than 5 times"),
    ):
        client.get(ISSUES)
    assert len(server.requests) == 6


def test_a_redirect_to_nowhere_is_permanent():
    error, slept = error_of(PermanentError, Reply(status=301))
    assert "does not say where" in str(error)
    assert slept == []


# What refusals mean.


def test_401_names_the_variable_and_never_the_token():
    error, slept = error_of(ConfigError, refused(401, f"Bad credentials: {TOKEN}"))
    assert "GITHUB_TOKEN" in str(error)
    assert "Bad credentials: ***" in str(error)
    assert TOKEN not in "".join(traceback.format_exception(error))
    assert slept == []


@pytest.mark.parametrize("variable", ["GITHUB_TOKEN", ""])
def test_401_without_a_token_says_where_to_put_one(variable):
    options = {} if variable else {"token_env": ""}
    with scripted_server(in_turn(refused(401, "Requires authentication"))) as server:
        settings = GitHub.model_validate({"base_url": server.url} | options)
        with (
            make_client(settings, repository="o/r", environ={}, clock=Clock()) as client,
            pytest.raises(ConfigError, match=variable or "github.token_env"),
        ):
            client.get(ISSUES)


@pytest.mark.parametrize("status", [404, 410, 451])
def test_what_is_not_there_is_gone(status):
    error, slept = error_of(ResourceGone, refused(status, "Not Found"))
    assert ISSUES in str(error)
    assert slept == []


@pytest.mark.parametrize(
    ("headers", "hint"),
    [
        ({}, "read access to metadata"),
        ({"X_Accepted_GitHub_Permissions": "issues=read"}, "issues=read"),
        ({"X_Accepted_OAuth_Scopes": "repo"}, "repo"),
        ({"X_GitHub_SSO": "required; url=https://github.com/orgs/o/sso?authorization_request=A"}, "single sign-on"),
    ],
)
def test_403_that_is_no_rate_limit_says_what_the_token_lacks(headers, hint):
    error, slept = error_of(ConfigError, refused(403, "Resource not accessible", **headers, **quota(remaining=3)))
    assert "Resource not accessible" in str(error)
    assert "GITHUB_TOKEN" in str(error)
    assert hint in str(error)
    assert slept == []


def test_other_refusals_are_permanent_and_say_why():
    reply = Reply(status=422, body={"message": "Validation Failed", "errors": [{"field": "since"}]})
    error, slept = error_of(PermanentError, reply)
    assert "Validation Failed" in str(error)
    assert "since" in str(error)
    assert slept == []


@pytest.mark.parametrize("reply", [Reply(status=204), Reply(status=304), Reply(status=300), Reply(status=400)])
def test_an_answer_that_makes_no_sense_is_permanent(reply):
    error_of(PermanentError, reply)
