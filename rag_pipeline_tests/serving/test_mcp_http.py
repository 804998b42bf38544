"""The tools over HTTP: who may come in, and as whom."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import httpx
import pytest

from rag_pipeline.embedded import EmbeddedPostgres
from rag_pipeline.index.api_keys import create_key, revoke_key
from rag_pipeline.index.database import connected
from rag_pipeline.serving.mcp_http import is_loopback, mcp_app
from rag_pipeline_tests.databases import new_database
from rag_pipeline_tests.serving.agents import MODES, call_over_http, knowledge_of, text_of
from rag_pipeline_tests.serving.apps import NOW, on_a_port, service

HEADERS = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}


@pytest.fixture(scope="module")
def indexed(server: EmbeddedPostgres, corpus_template: str) -> Iterator[str]:
    """The address of a database with `apps.CORPUS` in it; tests add keys to it, and nothing else."""
    with new_database(server, "agents_http", template=corpus_template) as url:
        yield url


def new_key(url: str, tenant: str, *scopes: str) -> str:
    with connected(url) as connection:
        return create_key(connection, tenant=tenant, name="agent", role="read", scopes=scopes, now=NOW)[1]


@pytest.fixture(scope="module")
def keys(indexed: str) -> dict[str, str]:
    """Of Ann, of somebody who may name everybody, and of another tenant."""
    return {
        "ann": new_key(indexed, "acme", "user:ann"), "everybody": new_key(indexed, "acme", "user:*"),
        "globex": new_key(indexed, "globex"),
    }  # fmt: skip


@contextmanager
def listening(
    url: str, home: Path, *, host: str = "127.0.0.1", scopes: tuple[str, ...] = (), **serving: object
) -> Iterator[str]:
    """The address of the tools, as if they listened on `host`."""
    with (
        service(url, home, is_local=is_loopback(host), serving=serving) as made,
        closing(knowledge_of(url, home, connect=made.services.pool.connection)) as knowledge,
        on_a_port(mcp_app(
            knowledge, made.services.settings.serving, admit=made.services.gate.admit, host=host, scopes=scopes,
        )) as address,
    ):  # fmt: skip
        yield address


@pytest.fixture(scope="module")
def address(indexed: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Tools on this machine."""
    with listening(indexed, tmp_path_factory.mktemp("home"), max_body_bytes=5_000) as address:
        yield address


def post(address: str, body: object = None, **headers: str) -> httpx.Response:
    sent = HEADERS | {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx.post(f"{address}/mcp", json=LIST if body is None else body, headers=sent, trust_env=False)


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


@pytest.mark.parametrize("mode", MODES)
def test_on_this_machine_the_configured_tenant_is_asked_without_a_key(address, mode):
    result = call_over_http(address, "search_knowledge", question="how do I deploy", k=1, mode=mode)
    assert result.structured_content["hits"][0]["source_id"] == "handbook:deploy.md"


@pytest.mark.parametrize("mode", MODES)
def test_a_key_decides_the_tenant_and_the_scopes(address, keys, mode):
    def documents(**headers: str) -> int:
        result = call_over_http(address, "list_sources", mode=mode, headers=headers)
        return sum(source["documents"] for source in result.structured_content["sources"])

    assert documents() == 2
    assert documents(**bearer(keys["ann"])) == 3
    assert documents(**bearer(keys["globex"])) == 1
    assert documents(**{"X-API-Key": keys["ann"]}) == 3
    # Who may name every scope has named none.
    assert documents(**bearer(keys["everybody"])) == 2


def test_scopes_of_the_command_line_are_for_those_without_a_key(indexed, tmp_path, keys):
    with listening(indexed, tmp_path, scopes=("user:ann",)) as address:
        asked = {"name": "get_document", "document": "handbook:oncall.md"}
        assert "rota of ann" in text_of(call_over_http(address, **asked))
        assert call_over_http(address, headers=bearer(keys["globex"]), **asked).is_error


def test_a_wrong_key_is_refused_before_anything_is_read(address, keys, indexed):
    wrong = keys["ann"][:-1] + ("a" if keys["ann"][-1] != "a" else "b")
    revoked = new_key(indexed, "globex")
    with connected(indexed) as connection:
        assert revoke_key(connection, revoked.split("_")[1], now=NOW)
    for headers in (bearer("rag_wrong"), bearer(wrong), bearer(revoked), {"X_API_Key": "x"}):
        answer = post(address, "not even JSON-RPC", **headers)
        assert (answer.status_code, answer.json()["error"]["code"]) == (401, "unauthorized")


def test_a_page_of_another_site_cannot_use_the_browser_of_somebody_here(address, keys):
    assert post(address).status_code == 200
    assert post(address, Origin=address).status_code == 200
    # DNS rebinding: the browser comes to us under the attacker's name.
    assert post(address, Host="evil.example").status_code == 401
    assert post(address, Host="evil.example", **bearer(keys["ann"])).status_code == 421
    for origin in ("https://evil.example", "http://localhost.evil.example", "null"):
        assert post(address, Origin=origin).status_code == 401
        assert post(address, Origin=origin, **bearer(keys["ann"])).status_code == 403
    # Through a proxy anybody may come.
    assert post(address, X_Forwarded_For="203.0.113.9").status_code == 401


def test_on_other_addresses_everybody_needs_a_key(indexed, tmp_path, keys):
    named = {"allowed_hosts": ("rag.example.com",), "cors_origins": ("https://wiki.example.com",)}
    with listening(indexed, tmp_path, host="0.0.0.0", **named) as address:
        assert post(address).status_code == 401
        assert post(address, Host="rag.example.com").status_code == 401
        assert post(address, **bearer(keys["ann"])).status_code == 421
        assert post(address, Host="rag.example.com:443", **bearer(keys["ann"])).status_code == 200
        for origin, status in (("https://wiki.example.com", 200), ("http://localhost", 403)):
            answer = post(address, Host="rag.example.com", Origin=origin, **bearer(keys["ann"]))
            assert answer.status_code == status
    with listening(indexed, tmp_path, host="0.0.0.0") as address:
        assert post(address).status_code == 401
        assert post(address, Host="any.example.com", **bearer(keys["ann"])).status_code == 200


def test_agents_are_counted_like_everybody(indexed, tmp_path):
    with listening(indexed, tmp_path, requests_per_minute=2) as address:
        answers = [post(address) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert answers[2].headers["Retry-After"]


def test_what_is_not_of_the_protocol_is_refused_without_a_trace(address):
    assert post(address, {"jsonrpc": "2.0", "id": 1, "method": "x" * 6_000}).status_code == 413
    for answer in (
        httpx.get(f"{address}/mcp", trust_env=False, headers={"Accept": "application/json"}),
        httpx.get(f"{address}/", trust_env=False),
        httpx.put(f"{address}/mcp", trust_env=False),
        post(address, [1, 2]),
        post(address, "text"),
        post(address, Content_Type="text/plain"),
        post(address, {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": 5}}),
    ):
        assert answer.status_code < 500
        assert "Traceback" not in answer.text


def test_where_the_database_is_stays_hidden_from_those_who_come_with_a_key(indexed, tmp_path, keys):
    nowhere = knowledge_of("postgresql://someone:hidden@127.0.0.1:9/private", tmp_path)
    with (
        service(indexed, tmp_path) as made,
        on_a_port(
            mcp_app(nowhere, made.services.settings.serving, admit=made.services.gate.admit, host="127.0.0.1")
        ) as address,
    ):
        theirs = call_over_http(address, "list_sources", headers=bearer(keys["globex"]))
        ours = call_over_http(address, "list_sources")
    assert (theirs.is_error, text_of(theirs)) == (True, "the index does not answer at the moment: ask again later")
    assert "127.0.0.1:9/private" in text_of(ours)
    assert "hidden" not in text_of(ours)
