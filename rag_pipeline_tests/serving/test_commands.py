"""`rag-pipeline keys` and `serve`, as they are typed."""

from __future__ import annotations

import json
import socket
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from rag_pipeline.cli.app import app
from rag_pipeline.cli.keys import expiry
from rag_pipeline.errors import ConfigError, UserError
from rag_pipeline.index.api_keys import key_of
from rag_pipeline.index.database import connected
from rag_pipeline.serving import server
from rag_pipeline.serving.server import is_loopback
from rag_pipeline_tests.databases import empty

NOW = datetime(2024, 6, 2, 12, tzinfo=UTC)


class Typed:
    """Runs commands against one database."""

    def __init__(self, url: str, home: Path) -> None:
        self.url = url
        self._environ = {"DATABASE_URL": url, "RAG_HOME": str(home)}

    def __call__(self, *words: str, fails: bool = False) -> Result:
        done = CliRunner().invoke(app, words, env=self._environ)
        assert (done.exit_code != 0) == fails, done.output
        return done


@pytest.fixture
def typed(reused_database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Typed:
    empty(reused_database)
    monkeypatch.chdir(tmp_path)
    return Typed(reused_database, tmp_path)


def test_a_key_is_shown_once_listed_without_its_secret_and_taken_back(typed: Typed) -> None:
    assert typed("keys", "list").stdout.startswith("there is no key")
    made = typed("keys", "create", "--name", "wiki", "--tenant", "acme", "--scope", "team:*", "--expires", "90d")
    text = made.stdout.strip()
    with connected(typed.url) as connection:
        key = key_of(connection, text, now=datetime.now(UTC))
    assert key is not None
    assert (key.tenant, key.name, key.role, key.scopes) == ("acme", "wiki", "read", ("team:*",))
    assert f"rag-pipeline keys revoke {key.key_id}" in made.stderr
    for shown in (typed("keys", "list").stdout, typed("keys", "list", "--json").stdout):
        assert key.key_id in shown
        assert "wiki" in shown
        assert text.removeprefix(f"rag_{key.key_id}_") not in shown
    assert json.loads(typed("keys", "list", "--tenant", "other", "--json").stdout) == []
    assert typed("keys", "list", "--tenant", "other").stdout.startswith("there is no key of tenant 'other'")
    assert typed("keys", "revoke", key.key_id).stdout == f"{key.key_id} is revoked\n"
    assert typed("keys", "revoke", key.key_id).stdout == f"{key.key_id} was revoked before\n"
    with connected(typed.url) as connection:
        assert key_of(connection, text, now=datetime.now(UTC)) is None
    assert json.loads(typed("keys", "list", "--json").stdout)[0]["state"] == "revoked"


def test_a_key_is_the_configured_tenants_unless_another_is_named(typed: Typed) -> None:
    made = json.loads(typed("keys", "create", "--name", "ci", "--role", "write", "--json").stdout)
    assert (made["tenant"], made["role"], made["expires_at"]) == ("default", "write", None)
    assert made["key"].startswith(f"rag_{made['key_id']}_")


def test_what_cannot_be_is_said(typed: Typed) -> None:
    assert isinstance(typed("keys", "revoke", "nobody", fails=True).exception, ConfigError)
    assert isinstance(typed("keys", "create", "--name", "x", "--scope", "*x", fails=True).exception, ConfigError)
    assert "Invalid value for '--role'" in typed("keys", "create", "--name", "x", "--role", "admin", fails=True).stderr


@pytest.mark.parametrize("command", ["serve", "mcp", "webhooks", "dev"])
@pytest.mark.parametrize("port", ["0", "65536", "99999", "-1"])
def test_what_is_no_port_is_refused(command: str, port: str) -> None:
    refused = CliRunner().invoke(app, [command, "--port", port])
    assert refused.exit_code == 2
    assert "Invalid value for '--port'" in refused.stderr


@pytest.mark.parametrize(
    ("text", "moment"),
    [("", None), ("1d", NOW + timedelta(days=1)), ("2024-06-02", datetime(2024, 6, 3, tzinfo=UTC)),
     ("2024-12-31", datetime(2025, 1, 1, tzinfo=UTC))],
)  # fmt: skip
def test_a_key_ends_with_a_day_or_after_some(text: str, moment: datetime | None) -> None:
    assert expiry(text, now=NOW) == moment


@pytest.mark.parametrize("text", ["tomorrow", "0x1d", "-1d", "2024-02-30", "9d ", "٣d", "99999999d"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="is no time"):
        expiry(text, now=NOW)


@pytest.mark.parametrize(
    ("host", "loopback"),
    [("localhost", True), ("127.0.0.1", True), ("127.8.8.8", True), ("::1", True), ("0.0.0.0", False), ("::", False),
     ("10.0.0.1", False), ("example.com", False), ("", False)],
)  # fmt: skip
def test_what_only_this_machine_reaches(host: str, loopback: bool) -> None:
    assert is_loopback(host) is loopback


def test_serve_says_where_and_who_needs_a_key(typed: Typed, monkeypatch: pytest.MonkeyPatch) -> None:
    served: list[tuple[str, int]] = []
    monkeypatch.setattr(server, "serve", lambda *_, host, port, **__: served.append((host, port)))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert isinstance(typed("serve", "--port", str(port), fails=True).exception, UserError)
    said = typed("serve", "--port", str(port)).stderr
    assert said == f"Serving on http://127.0.0.1:{port} (Ctrl-C stops it)\n"
    assert "every request needs a key" in typed("serve", "--host", "0.0.0.0", "--port", str(port)).stderr
    assert served == [("127.0.0.1", port), ("0.0.0.0", port)]
