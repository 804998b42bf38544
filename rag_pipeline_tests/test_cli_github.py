"""The commands around GitHub as a user meets them: what they do, and what is said when something is wrong."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from rag_pipeline_tests.embedded.servers import temporary_home
from rag_pipeline_tests.github_server.model import Forge
from rag_pipeline_tests.github_server.nouns import Repository
from rag_pipeline_tests.github_server.server import GitHubServer
from rag_pipeline_tests.test_cli import Shell

TOKEN = "ghp_0123456789abcdefghijklmnopqrstuvwxyz"


@pytest.fixture(scope="module")
def forge() -> Forge:
    return Forge(now=datetime.now(UTC) - timedelta(hours=3))


@pytest.fixture(scope="module")
def rocket(forge: Forge) -> Repository:
    repository = forge.add_repository("acme/rocket")
    issue = forge.open_issue(repository, title="Login fails", body="The login page shows an error.")
    forge.comment(issue, "It was the cookie that had expired.", author="grace")
    forge.open_issue(repository, title="Typo", body="There is a typo in the guide.")
    return repository


@pytest.fixture(scope="module")
def github(forge: Forge, rocket: Repository) -> Iterator[GitHubServer]:
    with GitHubServer(forge, tokens=[TOKEN]) as server:
        yield server


def configure(shell: Shell, github: GitHubServer, *names: str, more: str = "") -> None:
    """Repositories on the emulated GitHub."""
    repositories = "".join(f'[[repositories]]\ngithub = "acme/{name}"\n' for name in names)
    retries = f"max_retries = 0\n{more}[quality]\nin_refresh = false\n"
    (shell.folder / "rag_pipeline.toml").write_text(f'{repositories}[github]\nbase_url = "{github.url}"\n{retries}')


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory, github: GitHubServer) -> Iterator[Shell]:
    """A shell after the first refresh."""
    with temporary_home() as home:
        shell = Shell(tmp_path_factory.mktemp("cli"), home)
        shell.environ.pop("GITHUB_TOKEN", None)
        configure(shell, github, "rocket")
        done = shell("materialize", "--json", GITHUB_TOKEN=TOKEN)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["items"] == 2
        yield shell


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    """A shell in an empty folder; nothing is started by what fails early."""
    with temporary_home() as home:
        shell = Shell(tmp_path, home)
        for name in ("GITHUB_TOKEN", "GITHUB_WEBHOOK_SECRET"):
            shell.environ.pop(name, None)
        yield shell


def test_threads_are_found_and_link_to_their_comments(used):
    (hit,) = json.loads(used("search", "expired cookie", "-k", "1", "--json").stdout)
    assert hit["url"].startswith("https://github.com/acme/rocket/issues/1#issuecomment-")
    assert (hit["location"], hit["title"]) == ("acme/rocket#1", "Login fails")


@pytest.mark.slow
def test_reconcile_removes_what_is_gone_and_says_so(used, forge, rocket):
    forge.delete_issue(rocket.threads[2])
    (row,) = json.loads(used("reconcile", "--json", GITHUB_TOKEN=TOKEN).stdout)
    assert (row["repository"], row["threads_removed"], row["outcome"]) == ("acme/rocket", 1, "complete")


@pytest.mark.slow
def test_a_refused_token_is_named_and_never_printed(used):
    message = used.fails("reconcile", GITHUB_TOKEN="ghp_wrong0123456789")
    assert "Bad credentials" in message and "GITHUB_TOKEN" in message
    assert "ghp_wrong" not in message


@pytest.mark.slow
def test_reconcile_names_the_repositories_there_are(used):
    message = used.fails("reconcile", "--repository", "rockets")
    assert "there is no repository 'rockets'" in message and "acme/rocket" in message


@pytest.mark.slow
def test_a_repository_that_cannot_be_compared_is_named_after_the_others_are_done(used, github):
    configure(used, github, "rocket", "gone")
    done = used("reconcile", GITHUB_TOKEN=TOKEN)
    assert done.returncode == 1
    assert "complete" in done.stdout and "threads removed" in done.stdout
    message = done.stderr.splitlines()[-1]
    assert message.startswith("error: acme/gone: GitHub repository acme/gone does not exist")
    assert message.endswith("the other repositories are compared")


@pytest.mark.slow
@pytest.mark.parametrize("left", [0, 2])
def test_a_reconciliation_that_the_quota_ends_ends_well(used, github, left):
    """Whether it ends it before it began, or in the middle."""
    configure(used, github, "rocket", more="max_wait_s = 1\n")
    github.quota.limit, github.quota.remaining, github.quota.resets_at = 10, left, None
    try:
        done = used("reconcile", GITHUB_TOKEN=TOKEN)
    finally:
        github.quota.limit = github.quota.remaining = 5000
        configure(used, github, "rocket")
    assert done.returncode == 0, done.stderr
    assert "left to the next run" in done.stdout and "rate limit is reached until" in " ".join(done.stdout.split())
    done = used("reconcile", GITHUB_TOKEN=TOKEN)
    assert done.returncode == 0 and "left to the next run" not in done.stdout


def test_reconcile_without_a_repository_on_github_says_what_to_configure(shell):
    (shell.folder / "rag_pipeline.toml").write_text('[[repositories]]\nsource = "."\n')
    assert "no repository has `github` set" in shell.fails("reconcile")
    assert not (shell.home / "postgres").exists()


def test_webhooks_without_a_secret_says_where_it_belongs(shell):
    assert "GITHUB_WEBHOOK_SECRET is not set" in shell.fails("webhooks")
    (shell.folder / "rag_pipeline.toml").write_text('[webhooks]\nsecret_env = "OUR_SECRET"\n')
    assert "OUR_SECRET is not set" in shell.fails("webhooks", OUR_SECRET="  ")


def test_webhooks_on_a_busy_port_names_it(shell):
    with socket.socket() as busy:
        busy.bind(("127.0.0.1", 0))
        busy.listen()
        port = busy.getsockname()[1]
        message = shell.fails("webhooks", "--port", str(port), GITHUB_WEBHOOK_SECRET="secret")
    assert f"port {port} on 127.0.0.1 cannot be used" in message


def test_an_address_that_cannot_be_listened_at_is_named(shell):
    message = shell.fails("webhooks", "--host", "192.0.2.1", GITHUB_WEBHOOK_SECRET="secret")
    assert "port 8008 on 192.0.2.1 cannot be used" in message


@pytest.mark.parametrize(
    ("command", "options"),
    [("reconcile", ("--confirm-removals", "--repository", "--json")), ("webhooks", ("--host", "--port"))],
)
def test_help_explains_every_option(shell, command, options):
    done = shell(command, "--help")
    assert done.returncode == 0
    assert all(option in done.stdout for option in options)
    assert f"\n  {command} " in shell("--help").stdout


def test_wrong_options_are_refused_without_a_traceback(shell):
    done = shell("webhooks", "--port", "many")
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)
