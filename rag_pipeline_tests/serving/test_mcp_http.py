"""The tools over HTTP: who may come in, and as whom."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from rag_pipeline.retrieval.knowledge import Knowledge
from rag_pipeline.serving.caller import Caller
from rag_pipeline.serving.errors import refusal
from rag_pipeline.serving.gate import Credentials, Gate
from rag_pipeline.serving.mcp_http import is_loopback, mcp_app
from rag_pipeline.settings import Serving, Settings
from rag_pipeline_tests.serving.agents import MODES, call_over_http, knowledge_of, text_of
from rag_pipeline_tests.serving.apps import on_a_port

KEYS = {
    "rag_ann": Caller(tenant="acme", role="read", scopes=("user:ann",), key_id="1"),
    "rag_everybody": Caller(tenant="acme", role="write", scopes=("user:*",), key_id="2"),
    "rag_globex": Caller(tenant="globex", role="read", key_id="3"),
}
HEADERS = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}


def admit(shown: Credentials) -> Caller:
    """Known keys; without one, as the gate has it that listens on this machine."""
    if shown.key is None:
        return Gate(Settings(tenant="acme"), is_local=True).admit(shown)
    if shown.key not in KEYS:
        raise refusal(401, "this key does not count")
    return KEYS[shown.key]


@pytest.fixture
def knowledge(indexed: str, tmp_path: Path) -> Iterator[Knowledge]:
    with closing(knowledge_of(indexed, tmp_path)) as knowledge:
        yield knowledge


@pytest.fixture
def address(knowledge: Knowledge) -> Iterator[str]:
    """A server on this machine."""
    serving = Serving(max_body_bytes=5_000)
    with on_a_port(mcp_app(knowledge, serving, admit=admit, host="127.0.0.1")) as address:
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
def test_a_key_decides_the_tenant_and_the_scopes(address, mode):
    def documents(**headers: str) -> int:
        result = call_over_http(address, "list_sources", mode=mode, headers=headers)
        return sum(source["documents"] for source in result.structured_content["sources"])

    assert documents() == 2
    assert documents(**bearer("rag_ann")) == 3
    assert documents(**bearer("rag_globex")) == 1
    assert documents(**{"X-API-Key": "rag_ann"}) == 3
    # Who may name every scope has named none.
    assert documents(**bearer("rag_everybody")) == 2


def test_scopes_of_the_command_line_are_for_those_without_a_key(knowledge):
    app = mcp_app(knowledge, Serving(), admit=admit, host="127.0.0.1", scopes=["user:ann"])
    with on_a_port(app) as address:
        asked = {"name": "get_document", "document": "handbook:oncall.md"}
        assert "rota of ann" in text_of(call_over_http(address, **asked))
        assert call_over_http(address, headers=bearer("rag_globex"), **asked).is_error


def test_a_wrong_key_is_refused_before_anything_is_read(address):
    for headers in (bearer("rag_wrong"), bearer("rag_Ann"), {"X_API_Key": "x"}):
        answer = post(address, "not even JSON-RPC", **headers)
        assert (answer.status_code, answer.json()["error"]["code"]) == (401, "unauthorized")


def test_a_page_of_another_site_cannot_use_the_browser_of_somebody_here(address):
    assert post(address).status_code == 200
    assert post(address, Origin="http://localhost:8010").status_code == 200
    # DNS rebinding: the browser comes to us under the attacker's name.
    assert post(address, Host="evil.example").status_code == 401
    assert post(address, Host="evil.example", **bearer("rag_ann")).status_code == 421
    for origin in ("https://evil.example", "http://localhost.evil.example", "null"):
        assert post(address, Origin=origin).status_code == 403
    # Through a proxy anybody may come.
    assert post(address, X_Forwarded_For="203.0.113.9").status_code == 401


def test_on_other_addresses_everybody_needs_a_key(knowledge):
    gate = Gate(Settings(tenant="acme"), is_local=is_loopback("0.0.0.0"))

    def guarded(shown: Credentials) -> Caller:
        return KEYS[shown.key] if shown.key in KEYS else gate.admit(shown)

    serving = Serving(allowed_hosts=("rag.example.com",), cors_origins=("https://wiki.example.com",))
    with on_a_port(mcp_app(knowledge, serving, admit=guarded, host="0.0.0.0")) as address:
        assert post(address).status_code == 401
        assert post(address, Host="rag.example.com").status_code == 401
        assert post(address, **bearer("rag_ann")).status_code == 421
        assert post(address, Host="rag.example.com:443", **bearer("rag_ann")).status_code == 200
        for origin, status in (("https://wiki.example.com", 200), ("http://localhost", 403)):
            assert post(address, Host="rag.example.com", Origin=origin, **bearer("rag_ann")).status_code == status
    with on_a_port(mcp_app(knowledge, Serving(), admit=guarded, host="0.0.0.0")) as address:
        assert post(address).status_code == 401
        assert post(address, Host="any.example.com", **bearer("rag_ann")).status_code == 200


@pytest.mark.parametrize(
    ("host", "expected"),
    [("127.0.0.1", True), ("127.8.0.1", True), ("::1", True), ("[::1]", True), ("localhost", True), ("0.0.0.0", False),
     ("::", False), ("10.0.0.1", False), ("localhost.example.com", False), ("", False)],
)  # fmt: skip
def test_which_addresses_are_of_this_machine_alone(host, expected):
    assert is_loopback(host) is expected


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


def test_where_the_database_is_stays_hidden_from_those_who_come_with_a_key(tmp_path):
    nowhere = knowledge_of("postgresql://someone:hidden@127.0.0.1:9/private", tmp_path)
    with on_a_port(mcp_app(nowhere, Serving(), admit=admit, host="127.0.0.1")) as address:
        theirs = call_over_http(address, "list_sources", headers=bearer("rag_globex"))
        ours = call_over_http(address, "list_sources")
    assert (theirs.is_error, text_of(theirs)) == (True, "the index does not answer at the moment: ask again later")
    assert "127.0.0.1:9/private" in text_of(ours)
    assert "hidden" not in text_of(ours)
