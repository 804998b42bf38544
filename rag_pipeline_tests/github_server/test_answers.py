"""Credentials, quota, conditional requests, faults and records of the server."""

from __future__ import annotations

import base64
import http.client
import json
import threading
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import pytest

from rag_pipeline_tests.github_server.client import Client
from rag_pipeline_tests.github_server.faults import Fault, Kind
from rag_pipeline_tests.github_server.model import Forge
from rag_pipeline_tests.github_server.nouns import Repository
from rag_pipeline_tests.github_server.quota import Quota
from rag_pipeline_tests.github_server.server import GitHubServer

AT = "/repos/acme/rocket"


def jwt(claims: Mapping[str, object], *, algorithm: str = "RS256") -> str:
    """A JSON web token with a signature that nobody made."""
    parts = ({"alg": algorithm, "typ": "JWT"}, claims)
    encoded = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts]
    return ".".join([*encoded, "c2lnbmF0dXJl"])


def lasting(seconds: float) -> dict[str, object]:
    """The claims of an app that end so much later."""
    return {"iat": int(time.time()) - 60, "exp": int(time.time() + seconds), "iss": "12345"}


# Credentials


def test_a_private_repository_exists_only_for_those_who_may_see_it(
    forge: Forge, rocket: Repository, github: GitHubServer, client: Client, member: Client
) -> None:
    rocket.private = True
    assert (client.get(f"{AT}/issues").status, member.get(f"{AT}/issues").status) == (404, 200)
    assert client.get(f"/repositories/{rocket.id}").status == 404
    assert member.get(AT).json["private"] is True
    forge.rename_repository(rocket, "acme/shuttle")
    assert (client.get(AT).status, member.get(AT).status) == (404, 301)
    github.tokens.clear()
    assert member.get("/repos/acme/shuttle").json["message"] == "Bad credentials"


def test_a_bad_token_is_refused_everywhere(rocket: Repository, client: Client) -> None:
    got = client.get(AT, authorization="token wrong")
    assert (got.status, got.json["message"]) == (401, "Bad credentials")
    assert client.get(AT, authorization="token secret").status == 200
    basic = base64.b64encode(b"x-access-token:secret").decode()
    assert client.get(AT, authorization=f"Basic {basic}").status == 200
    assert client.get("/rate_limit", authorization="Bearer wrong").status == 401


def test_an_app_exchanges_its_jwt_for_a_token_of_one_hour(
    forge: Forge, rocket: Repository, github: GitHubServer, client: Client
) -> None:
    rocket.private, rocket.installation = True, 77
    other = forge.add_repository("other/private", private=True)
    app = {"authorization": f"Bearer {jwt(lasting(500))}"}
    found = client.get(f"{AT}/installation", **app)
    assert (found.status, found.json["id"]) == (200, 77)
    given = client.request("POST", "/app/installations/77/access_tokens", **app)
    assert given.status == 201
    assert given.json["permissions"]["issues"] == "read"
    left = datetime.fromisoformat(given.json["expires_at"]) - datetime.now(UTC)
    assert timedelta(minutes=59) < left <= timedelta(hours=1)
    installed = {"authorization": f"token {given.json['token']}"}
    assert client.get(AT, **installed).status == 200
    assert client.get(f"/repos/{other.full_name}", **installed).status == 404
    assert client.get(AT, **app).status == 403
    github.access.expire()
    assert client.get(AT, **installed).status == 401


@pytest.mark.parametrize(
    ("seconds", "changed", "algorithm", "message"),
    [
        (500, {}, "none", "could not be decoded"),
        (-5, {}, "RS256", "('exp') must be"),
        (3600, {}, "RS256", "('exp') is too far in the future"),
        (500, {"iat": None}, "RS256", "('iat') must be"),
    ],
)
def test_a_wrong_jwt_is_refused(
    rocket: Repository, client: Client, seconds: int, changed: dict[str, object], algorithm: str, message: str
) -> None:
    rocket.installation = 77
    claims = {**lasting(seconds), **changed}
    got = client.get(f"{AT}/installation", authorization=f"Bearer {jwt(claims, algorithm=algorithm)}")
    assert got.status == 401
    assert message in got.json["message"]


def test_an_installation_is_asked_for_with_a_jwt_only(rocket: Repository, client: Client, member: Client) -> None:
    app = f"Bearer {jwt(lasting(500))}"
    assert client.get(f"{AT}/installation", authorization=app).status == 404
    assert (client.get(f"{AT}/installation").status, member.get(f"{AT}/installation").status) == (401, 401)
    assert client.request("POST", "/app/installations/5/access_tokens", authorization=app).status == 404


# Conditional requests and quota


def test_an_unchanged_answer_is_not_sent_again_and_costs_nothing(
    forge: Forge, rocket: Repository, client: Client
) -> None:
    issue = forge.open_issue(rocket)
    first = client.get(f"{AT}/issues/1")
    assert first.headers["etag"].startswith('W/"')
    again = client.get(f"{AT}/issues/1", if_none_match=first.headers["etag"])
    assert (again.status, again.body, again.headers["etag"]) == (304, b"", first.headers["etag"])
    assert again.headers["x-ratelimit-remaining"] == first.headers["x-ratelimit-remaining"] == "4999"
    forge.edit_thread(issue, title="Another")
    changed = client.get(f"{AT}/issues/1", if_none_match=f'"x", {first.headers["etag"]}')
    assert (changed.status, changed.headers["x-ratelimit-remaining"]) == (200, "4998")


def test_a_used_up_quota_refuses_until_it_resets(rocket: Repository, github: GitHubServer, client: Client) -> None:
    now = datetime(2024, 5, 1, tzinfo=UTC)
    github.clock = lambda: now
    github.quota = Quota(limit=3, remaining=1, resets_at=now + timedelta(seconds=30))
    assert client.get(AT).headers["x-ratelimit-remaining"] == "0"
    refused = client.get(AT)
    assert (refused.status, refused.headers["x-ratelimit-remaining"]) == (403, "0")
    assert refused.headers["x-ratelimit-reset"] == str(int(now.timestamp()) + 30)
    assert "API rate limit exceeded" in refused.json["message"]
    core = client.get("/rate_limit").json["resources"]["core"]
    assert core == {"limit": 3, "remaining": 0, "used": 3, "reset": int(now.timestamp()) + 30}
    github.clock = lambda: now + timedelta(seconds=30)
    assert client.get(AT).headers["x-ratelimit-remaining"] == "2"


# Faults


@pytest.mark.parametrize("status", [500, 502, 503])
def test_a_status_comes_as_often_as_it_was_asked_for(
    rocket: Repository, github: GitHubServer, client: Client, status: int
) -> None:
    fault = github.faults.add(Fault(match=r"/issues\?state", kind="status", status=status, times=2, after=1))
    answers = [client.get(f"{AT}/issues?state=all").status for _ in range(4)]
    assert answers == [200, status, status, 200]
    assert (client.get(f"{AT}/issues").status, fault.hits) == (200, 2)


def test_rate_limits_say_how_long_to_wait(rocket: Repository, github: GitHubServer, client: Client) -> None:
    github.faults.add(Fault(match="", kind="secondary", status=429, retry_after=7))
    github.faults.add(Fault(match="", kind="secondary", retry_after=None))
    github.faults.add(Fault(match="", kind="primary", seconds=9))
    soon, later, used_up = client.get(AT), client.get(AT), client.get(AT)
    assert (soon.status, soon.headers["retry-after"]) == (429, "7")
    assert (later.status, "retry-after" in later.headers) == (403, False)
    assert "You have exceeded a secondary rate limit" in later.json["message"]
    assert later.headers["x-ratelimit-remaining"] == "5000"
    assert (used_up.status, used_up.headers["x-ratelimit-remaining"]) == (403, "0")
    assert 0 < int(used_up.headers["x-ratelimit-reset"]) - time.time() <= 9
    assert client.get(AT).headers["x-ratelimit-remaining"] == "4999"


@pytest.mark.parametrize(
    ("kind", "error"), [("close", http.client.RemoteDisconnected), ("cut", http.client.IncompleteRead)]
)
def test_a_connection_breaks_before_or_within_the_body(
    rocket: Repository, github: GitHubServer, client: Client, kind: Kind, error: type[Exception]
) -> None:
    github.faults.add(Fault(match="", kind=kind))
    with pytest.raises(error):
        client.get(AT)
    client.close()
    assert client.get(AT).status == 200
    assert [(request.status, request.fault) for request in github.requests] == [
        (0 if kind == "close" else 200, kind),
        (200, None),
    ]


def test_a_body_may_be_half_a_json_or_none_or_a_lie(rocket: Repository, github: GitHubServer, client: Client) -> None:
    for kind in ("truncated", "html", "body"):
        github.faults.add(Fault(match="", kind=kind))
    half, page, empty = client.get(AT), client.get(AT), client.get(f"{AT}/issues")
    with pytest.raises(ValueError, match=r"Expecting|Unterminated"):
        half.json  # noqa: B018 - reading it is the test
    assert (half.status, half.headers["content-length"]) == (200, str(len(half.body)))
    assert (page.status, page.headers["content-type"]) == (502, "text/html")
    assert (empty.status, empty.json) == (200, [])


def test_something_may_happen_between_two_pages(
    forge: Forge, rocket: Repository, github: GitHubServer, client: Client
) -> None:
    for _ in range(4):
        forge.open_issue(rocket)
    newest = rocket.threads[4]
    github.faults.add(Fault(match="&page=2", kind="act", action=lambda: forge.delete_issue(newest)))
    # Number 2 slips to the first page while the second is asked for: a crawl by page number misses it.
    assert [each["number"] for each in client.all(f"{AT}/issues?per_page=2")] == [4, 3, 1]


# Records


def test_requests_are_recorded_with_what_they_carried(
    rocket: Repository, github: GitHubServer, client: Client, member: Client
) -> None:
    etag = client.get(f"/repositories/{rocket.id}/issues?state=all").headers["etag"]
    member.get(f"{AT}/issues?state=all", if_none_match=etag)
    first, second = github.requests
    assert (first.method, first.path, dict(first.query)) == (
        "GET",
        f"/repositories/{rocket.id}/issues",
        {"state": "all"},
    )
    assert (first.status, first.authorization, first.if_none_match) == (200, None, None)
    assert (second.status, second.authorization, second.if_none_match) == (304, "Bearer secret", etag)
    assert (github.count(r"issues\?state=all"), github.count(status=304), github.count("pulls")) == (2, 1, 0)
    github.clear_requests()
    assert (github.requests, github.count()) == ([], 0)


def test_it_is_known_how_many_came_at_once(rocket: Repository, github: GitHubServer) -> None:
    github.faults.add(Fault(match="", kind="slow", seconds=0.3, times=None))
    threads = [threading.Thread(target=Client(github).get, args=(AT,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert github.max_concurrency == 3


def test_a_client_without_a_name_is_refused(rocket: Repository, github: GitHubServer) -> None:
    connection = http.client.HTTPConnection(github.url.removeprefix("http://"))
    connection.request("GET", AT)
    assert connection.getresponse().status == 403
    connection.close()


def test_a_mistake_of_the_server_fails_the_test_that_meets_it(forge: Forge, rocket: Repository) -> None:
    with pytest.raises(TypeError), GitHubServer(forge) as server:
        forge.open_issue(rocket, title=object())  # type: ignore[arg-type]
        assert Client(server).get(f"{AT}/issues").status == 500
