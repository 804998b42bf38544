"""Whom the GitHub client is: a token, a GitHub App or nobody; and that secrets stay secret."""

from __future__ import annotations

import logging
import subprocess
import sys
import traceback
from datetime import UTC, datetime, timedelta

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from rag_pipeline.errors import ConfigError, TransientError
from rag_pipeline.settings import GitHub
from rag_pipeline.sources.github import auth
from rag_pipeline.sources.github.client import make_client
from rag_pipeline_tests.sources.github.scripted_server import (
    ISSUES,
    OK,
    SECONDARY,
    TOKEN,
    Clock,
    Reply,
    client_on,
    in_turn,
    quota,
    refused,
)

# Whom it is.


def test_the_repositorys_own_token_comes_first():
    environ = {"OWN": "own-token\n", "GITHUB_TOKEN": TOKEN}
    with client_on(OK, token_env="OWN", environ=environ, app_id="1") as (client, server, _):
        client.get(ISSUES)
    assert server.requests[0].headers["authorization"] == "token own-token"


@pytest.mark.parametrize("environ", [{}, {"GITHUB_TOKEN": "  "}])
def test_without_the_default_variable_github_is_asked_without_a_token(environ):
    with client_on(OK, environ=environ) as (client, server, _):
        client.get(ISSUES)
    assert "authorization" not in server.requests[0].headers


@pytest.mark.parametrize("options", [{"token_env": "MINE"}, {"settings": {"token_env": "MINE"}}])
def test_a_variable_that_was_named_must_be_set(options):
    settings = GitHub.model_validate(options.get("settings", {}))
    with pytest.raises(ConfigError, match="MINE"):
        make_client(
            settings, token_env=options.get("token_env", ""), repository="o/r", environ={"MINE": ""}, clock=Clock()
        )


def test_a_token_that_cannot_be_sent_is_not_repeated():
    with pytest.raises(ConfigError, match="GITHUB_TOKEN") as caught:
        make_client(GitHub(), repository="o/r", environ={"GITHUB_TOKEN": "two\nwords"}, clock=Clock())
    assert "words" not in str(caught.value)


@pytest.mark.parametrize("base_url", ["https://me:secret@host", "ftp://host", "host/api", "https://host?a=secret"])
def test_a_base_url_that_is_none_is_a_mistake_and_not_repeated(base_url):
    with pytest.raises(ConfigError, match="base URL") as caught:
        make_client(GitHub(), base_url=base_url, repository="o/r", environ={}, clock=Clock())
    assert "secret" not in str(caught.value)


def test_githubkit_is_imported_only_when_a_client_is_made():
    code = "import sys, rag_pipeline.sources.github.client; assert not {'githubkit', 'httpx'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


# A GitHub App.


@pytest.fixture(scope="module")
def key():
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@pytest.fixture(scope="module")
def pem(key):
    return pem_of(key)


def pem_of(key):
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    ).decode()


def token_reply(number=1, *, lasts_s=3600):
    # githubkit measures by the real time.
    expires = (datetime.now(UTC) + timedelta(seconds=lasts_s)).strftime("%Y-%m-%dT%H:%M:%SZ")
    return Reply(status=201, body={"token": f"ghs_{number}", "expires_at": expires})


def app_script(*, token=token_reply, answer=OK, installation=None):
    made = []

    def script(request):
        if request.path.endswith("/access_tokens"):
            made.append(request)
            return token(len(made))
        if request.path.endswith("/installation"):
            return installation or Reply(body={"id": 42})
        return answer(request) if callable(answer) else answer

    return script


def app_client(script, key_text, **options):
    return client_on(script, environ={"GITHUB_APP_PRIVATE_KEY": key_text}, app_id="123", **options)


def test_an_app_finds_its_installation_and_reads_with_its_token_all_below_the_base_url(key, pem):
    with app_client(app_script(), pem, prefix="/api/v3") as (client, server, _):
        client.get(ISSUES)
        client.get(ISSUES)
    looked_up, asked, first, second = server.requests
    assert (looked_up.method, looked_up.path) == ("GET", "/api/v3/repos/o/r/installation")
    assert (asked.method, asked.path) == ("POST", "/api/v3/app/installations/42/access_tokens")
    for request in (looked_up, asked):
        scheme, _, token = request.headers["authorization"].partition(" ")
        assert scheme == "Bearer"
        assert jwt.decode(token, key.public_key(), algorithms=["RS256"])["iss"] == "123"
    assert first.headers["authorization"] == second.headers["authorization"] == "token ghs_1"
    assert client.usage.requests == 3


def test_an_installation_that_is_named_is_not_looked_up(pem):
    with app_client(app_script(), pem, app_installation_id=7) as (client, server, _):
        client.get(ISSUES)
    assert server.paths == ["/app/installations/7/access_tokens", ISSUES]


def test_the_installation_of_a_renamed_repository_is_found(pem):
    moved = Reply(status=301, headers={"Location": "/repositories/9/installation"})
    script = app_script(installation=None)
    with app_client(lambda r: moved if r.path == "/repos/o/r/installation" else script(r), pem) as (client, server, _):
        client.get(ISSUES)
    assert server.paths[:2] == ["/repos/o/r/installation", "/repositories/9/installation"]
    assert server.requests[1].headers["authorization"].startswith("Bearer ")


def test_a_token_that_expires_is_renewed_in_time(pem):
    script = app_script(token=lambda number: token_reply(number, lasts_s=30))
    with app_client(script, pem) as (client, server, _):
        client.get(ISSUES)
        client.get(ISSUES)
    used = [request.headers["authorization"] for request in server.requests if request.path == ISSUES]
    assert used == ["token ghs_1", "token ghs_2"]


def test_a_token_that_was_revoked_is_renewed_once(pem):
    def answer(request):
        return OK if request.headers["authorization"] != "token ghs_1" else refused(401, "Bad credentials")

    with app_client(app_script(answer=answer), pem) as (client, _, clock):
        assert client.get(ISSUES).status == 200
    assert clock.slept == []
    with (
        app_client(app_script(answer=refused(401, "Bad credentials")), pem) as (client, server, _),
        pytest.raises(ConfigError, match="GITHUB_APP_PRIVATE_KEY"),
    ):
        client.get(ISSUES)
    assert server.paths.count(ISSUES) == 2


def test_two_githubs_do_not_share_the_tokens_of_an_app(pem):
    for _ in range(2):
        with app_client(app_script(), pem, app_installation_id=7) as (client, server, _):
            client.get(ISSUES)
        assert "/app/installations/7/access_tokens" in server.paths


def test_an_app_that_is_not_installed_is_the_users_to_put_right(pem):
    with pytest.raises(ConfigError, match="123 is not installed on o/r"):
        app_client(app_script(installation=refused(404, "Not Found")), pem).__enter__()


@pytest.mark.parametrize(("status", "what"), [(404, "installation"), (401, "clock"), (403, "installation")])
def test_an_app_that_gets_no_token_is_the_users_to_put_right_and_nothing_is_gone(pem, status, what):
    script = app_script(token=lambda _: refused(status, "No"))
    with app_client(script, pem, app_installation_id=7) as (client, _, _), pytest.raises(ConfigError, match=what):
        client.get(ISSUES)


def test_a_server_error_or_limit_when_asking_for_the_apps_token_is_waited_for(pem):
    replies = iter([Reply(status=502), refused(403, SECONDARY, Retry_After="7"), token_reply(3)])
    with app_client(app_script(token=lambda _: next(replies)), pem) as (client, _, clock):
        assert client.get(ISSUES).data == OK.body
    assert clock.slept[1] == 7


def test_the_quota_of_the_app_itself_is_not_taken_for_that_of_its_token(pem):
    replies = iter([Reply(status=502, headers=quota(remaining=0, resets_in_s=200)), token_reply()])
    with app_client(app_script(token=lambda _: next(replies)), pem, app_installation_id=7) as (client, _, clock):
        client.get(ISSUES)
    assert max(clock.slept) <= 1
    assert client.usage.remaining is None


def test_what_should_have_been_an_apps_token_is_not_repeated(pem):
    script = app_script(token=lambda _: Reply(body={"token": "ghs_secret"}))
    with app_client(script, pem, max_retries=1) as (client, _, clock), pytest.raises(TransientError) as caught:
        client.get(ISSUES)
    assert len(clock.slept) == 1
    assert "ghs_secret" not in "".join(traceback.format_exception(caught.value))


def test_the_key_may_be_a_file_or_have_escaped_line_ends(pem, tmp_path):
    file = tmp_path / "app.pem"
    file.write_text(pem)
    for value in (str(file), pem.replace("\n", "\\n")):
        with app_client(app_script(), value) as (client, _, _):
            assert client.get(ISSUES).status == 200


def test_a_key_that_is_none_is_the_users_to_put_right_and_not_repeated(pem, tmp_path):
    wrong = ["", "MIIEsecret", str(tmp_path), pem[:200], pem_of(ec.generate_private_key(ec.SECP256R1()))]
    for value in wrong:
        with pytest.raises(ConfigError, match="GITHUB_APP_PRIVATE_KEY") as caught:
            app_client(app_script(), value).__enter__()
        assert not value or value not in "".join(traceback.format_exception(caught.value))


def test_secrets_are_in_no_repr_and_no_log(pem, caplog):
    caplog.set_level(logging.DEBUG)
    with client_on(in_turn(Reply(status=502), OK)) as (client, _, _):
        client.get(ISSUES)
    with app_client(app_script(), pem) as (app, _, _):
        app.get(ISSUES)
    login = auth.choose_login(GitHub(), token_env="", environ={"GITHUB_TOKEN": TOKEN})
    shown = caplog.text + repr([login, client, app, vars(client), vars(app)])
    assert TOKEN not in shown
    assert "ghs_1" not in shown
    assert "PRIVATE KEY" not in shown
