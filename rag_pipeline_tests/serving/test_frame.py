"""What surrounds all routes: one shape of errors, limits of bodies, headers, and a line in the log for each request."""

from __future__ import annotations

import io
import json
import logging
import socket
import time
from collections.abc import Iterator
from typing import Annotated

import httpx
import psycopg
import pytest
from fastapi import Query, Request
from pydantic import Field

from rag_pipeline.errors import ConfigError, DatabaseUnavailable, NothingIndexed, TransientError
from rag_pipeline.retrieval.query import SearchQuery
from rag_pipeline.serving.app import make_app
from rag_pipeline.serving.depends import Reader
from rag_pipeline.serving.fields import Question, Strict
from rag_pipeline.serving.logs import JsonLines
from rag_pipeline_tests.databases import new_database
from rag_pipeline_tests.embedded.servers import EmbeddedPostgres
from rag_pipeline_tests.serving.apps import Service, on_a_port, service

SECRET_WORDS = "what is the password of the vault"
RAISED: dict[str, Exception] = {
    "query": ConfigError("k is 0: choose a number of hits from 1 to 200"),
    "empty": NothingIndexed("nothing is indexed yet: run `rag-pipeline up`"),
    "database": DatabaseUnavailable("PostgreSQL at db.internal/rag does not answer"),
    "lost": psycopg.OperationalError("server closed the connection unexpectedly at db.internal"),
    "schema": psycopg.errors.UndefinedTable('relation "rag.api_keys" does not exist'),
    "transient": TransientError("the model is overloaded", retry_after_s=7),
    "bug": ZeroDivisionError(f"{SECRET_WORDS} rag_000000000000_secret"),
    "data": psycopg.errors.InvalidTextRepresentation(f"invalid input: {SECRET_WORDS}"),
}


class Asked(Strict):
    """A body."""

    question: Question
    k: Annotated[int, Field(ge=1, le=200)] = 5


def with_routes(app) -> None:
    """Routes that fail in every way there is."""

    @app.get("/v1/fail/{how}")
    async def fail(how: str, caller: Reader) -> None:
        raise RAISED[how]

    @app.post("/v1/asked")
    async def asked(body: Asked) -> int:
        return len(body.question)

    @app.get("/v1/asked")
    async def listed(query: Annotated[Asked, Query()]) -> int:
        return len(query.question)

    @app.put("/v1/read")
    async def read(request: Request) -> int:
        return len(await request.body())


@pytest.fixture(scope="module")
def frame(
    server: EmbeddedPostgres, corpus_template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Service]:
    with (
        new_database(server, "serving_frame", template=corpus_template) as url,
        service(url, tmp_path_factory.mktemp("home"), serving={"max_body_bytes": 100_000}) as running,
    ):
        with_routes(running.app)
        yield running


@pytest.fixture
def out() -> Iterator[io.StringIO]:
    """What stands on standard output."""
    logger, out = logging.getLogger("rag_pipeline"), io.StringIO()
    handler = logging.StreamHandler(out)
    handler.setFormatter(JsonLines())
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield out
    logger.removeHandler(handler)
    logger.setLevel(before)


def test_the_services_search_the_index_as_the_tenant_that_is_named(frame: Service) -> None:
    found = frame.services.search(SearchQuery(text="how to deploy", tenant="acme"))
    assert found.degraded == ""
    assert found.hits[0].text == "deploy with make deploy"
    assert not [hit for hit in found.hits if "rota" in hit.text or "vault" in hit.text]


@pytest.mark.parametrize(
    ("how", "status", "code", "retry"),
    [("query", 400, "bad_request", None), ("empty", 503, "unavailable", "5"), ("database", 503, "unavailable", "5"),
     ("lost", 503, "unavailable", "5"), ("schema", 503, "unavailable", "5"), ("transient", 503, "unavailable", "7"),
     ("bug", 500, "internal", None), ("data", 500, "internal", None)],
)  # fmt: skip
def test_what_rooms_below_raise_becomes_one_shape(
    frame: Service, out: io.StringIO, how: str, status: int, code: str, retry: str | None
) -> None:
    answer = frame.client.get(f"/v1/fail/{how}?question={SECRET_WORDS}")
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    assert answer.headers.get("Retry-After") == retry
    assert set(answer.json()) == {"error"}
    for secret in ("Traceback", "File", "db.internal", "rag.api_keys", SECRET_WORDS, ".py"):
        assert secret not in answer.text
    logged = [json.loads(line) for line in out.getvalue().splitlines()]
    if status == 500:
        # The answer names the line of the log that knows more: which error, and where; not what it said.
        assert answer.headers["X-Request-ID"] in answer.json()["error"]["message"]
        (crash,) = [line for line in logged if line["message"] == "unexpected"]
        assert crash["request_id"] == answer.headers["X-Request-ID"]
        assert type(RAISED[how]).__name__ in crash["error"]
        assert "test_frame.py" in crash["error"]
    assert SECRET_WORDS not in json.dumps(logged)
    assert "rag_000000000000" not in json.dumps(logged)
    assert logged[-1] | {"time": 0, "ms": 0, "request_id": 0} == {
        "time": 0, "level": "info", "logger": "rag_pipeline.serving.request_log", "message": "request", "request_id": 0,
        "method": "GET", "route": "/v1/fail/{how}", "status": status, "ms": 0, "tenant": "acme", "key_id": None,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("body", "field"),
    [({}, "body.question"), ({"question": ""}, "body.question"), ({"question": "x" * 4_001}, "body.question"),
     ({"question": "a\0b"}, "body.question"), ({"question": "x", "k": 0}, "body.k"),
     ({"question": "x", "k": "many"}, "body.k"), ({"question": "x", "unknown": 1}, "body.unknown"),
     ([], "body"), (None, "body")],
)  # fmt: skip
def test_a_body_that_is_not_as_it_must_be_is_told_where(frame: Service, body: object, field: str) -> None:
    answer = frame.client.post("/v1/asked", json=body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "invalid")
    assert field in [detail["field"] for detail in answer.json()["error"]["details"]]


@pytest.mark.parametrize(
    "content", [b"{", b'{"question": "\\ud800"}', b'{"question": "' + b"\xff" * 3 + b'"}', b"[" * 50_000, b"nul"]
)
def test_a_body_that_is_no_text_or_no_json_is_refused(frame: Service, content: bytes) -> None:
    answer = frame.client.post("/v1/asked", content=content, headers={"Content-Type": "application/json"})
    assert answer.status_code in (400, 422)
    assert set(answer.json()) == {"error"}


def test_what_was_sent_is_not_repeated_by_what_refuses_it(frame: Service) -> None:
    answer = frame.client.get("/v1/asked", params={"question": "x", "k": SECRET_WORDS, "html": "<script>"})
    assert answer.status_code == 422
    assert SECRET_WORDS not in answer.text
    assert "<script>" not in answer.text


def test_addresses_and_methods_that_do_not_exist_are_refused_in_one_shape(frame: Service) -> None:
    missing = frame.client.get("/v1/nothing/<script>")
    assert (missing.status_code, missing.json()["error"]["code"]) == (404, "not_found")
    wrong = frame.client.delete("/health/live")
    assert (wrong.status_code, wrong.json()["error"]["code"]) == (405, "method_not_allowed")
    assert wrong.headers["allow"] == "GET"
    for refused in (missing, wrong):
        assert "/openapi.json" in refused.json()["error"]["message"], "it says what to do"
    astray = frame.client.get("/v1/search/?q=x", headers={"Host": "evil.example"}, follow_redirects=False)
    assert astray.status_code == 404, "nobody is sent on to a name of their own choice"
    for page in ("/docs", "/redoc"):
        assert frame.client.get(page).status_code == 404, "they load scripts from elsewhere"


def test_a_request_keeps_its_id_if_that_is_one(frame: Service) -> None:
    assert (
        frame.client.get("/health/live", headers={"X-Request-ID": "abc-1.2_3"}).headers["X-Request-ID"] == "abc-1.2_3"
    )
    for odd in ("", "a b", "x" * 65, '"}{"', "<b>"):
        given = frame.client.get("/health/live", headers={"X-Request-ID": odd}).headers["X-Request-ID"]
        assert len(given) == 16
        assert given != odd


def test_browsers_are_told_to_load_nothing_from_elsewhere_and_to_keep_nothing(frame: Service) -> None:
    for path in ("/health/live", "/v1/fail/query", "/v1/fail/bug", "/nothing"):
        headers = frame.client.get(path).headers
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert "http" not in headers["Content-Security-Policy"]
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Cache-Control"] == "no-store"


def test_other_pages_may_not_ask_unless_they_are_named(frame: Service, tmp_path) -> None:
    asked = {"Origin": "https://wiki.example.com", "Access-Control-Request-Method": "GET"}
    assert "access-control-allow-origin" not in frame.client.options("/v1/asked", headers=asked).headers
    url = frame.services.settings.database_url
    with service(url, tmp_path, serving={"cors_origins": ["https://wiki.example.com"]}) as named:
        with_routes(named.app)
        assert (
            named.client.options("/v1/asked", headers=asked).headers["access-control-allow-origin"] == asked["Origin"]
        )
        shown = named.client.get("/v1/fail/query", headers={"Origin": asked["Origin"]})
        assert shown.headers["access-control-allow-origin"] == asked["Origin"]
        assert shown.status_code == 400, "a page that is named counts as this machine's"
        other = named.client.get("/v1/fail/query", headers={"Origin": "https://evil.example"})
        assert (other.status_code, "access-control-allow-origin" in other.headers) == (401, False)


def test_a_service_with_names_answers_to_no_other(frame: Service, tmp_path) -> None:
    with service(
        frame.services.settings.database_url, tmp_path, serving={"allowed_hosts": ["ask.example.com"]}
    ) as named:
        with_routes(named.app)
        for host, status in (("ask.example.com", 200), ("ASK.example.com:8080", 200), ("localhost", 400), ("", 400)):
            answer = named.client.post("/v1/asked", json={"question": "x"}, headers={"Host": host})
            assert answer.status_code == status, host
        assert named.client.get("/health/live", headers={"Host": "10.0.0.7"}).status_code == 200


# On a real port -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def port(frame: Service) -> Iterator[str]:
    app = make_app(frame.services, read_timeout_s=1.5)
    with_routes(app)
    with on_a_port(app, headers_timeout_s=1.5) as address:
        yield address


def connect(port: str) -> socket.socket:
    url = httpx.URL(port)
    return socket.create_connection((url.host, url.port or 80), timeout=10)


def everything(raw: socket.socket) -> bytes:
    """What comes until the other side hangs up."""
    received = b""
    while piece := raw.recv(65_536):
        received += piece
    return received


def test_a_body_that_is_too_large_is_refused_whether_or_not_it_says_so(port: str) -> None:
    large = b"x" * 10_000_000
    for method, path in (("POST", "/v1/asked"), ("PUT", "/v1/read"), ("GET", "/health/live"), ("POST", "/nothing")):
        for content in (large, (large[at : at + 65_536] for at in range(0, len(large), 65_536))):
            with httpx.Client(base_url=port, trust_env=False, timeout=20) as client:
                answer = client.request(method, path, content=content)
            assert (answer.status_code, answer.json()["error"]["code"]) == (413, "too_large"), (method, path)
    with httpx.Client(base_url=port, trust_env=False) as client:
        assert client.put("/v1/read", content=b"x" * 100_000).json() == 100_000
        assert client.put("/v1/read", content=b"x" * 100_001).status_code == 413
        pieces = (b"x" * 10_000 for _ in range(10))
        assert client.put("/v1/read", content=pieces).json() == 100_000


def test_a_body_that_does_not_arrive_is_given_up_and_so_is_one_that_drips(port: str) -> None:
    for drips in (False, True):
        with connect(port) as raw:
            raw.sendall(b"PUT /v1/read HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n\r\nx")
            if drips:
                for _ in range(4):
                    time.sleep(0.1)
                    raw.sendall(b"x")
            answer = everything(raw)
        assert answer.startswith(b"HTTP/1.1 408 "), answer
        assert b'"code":"request_timeout"' in answer


def test_headers_that_do_not_arrive_are_given_up_and_so_are_those_that_drip(port: str) -> None:
    for drips in (False, True):
        with connect(port) as raw:
            started = time.monotonic()
            raw.sendall(b"GET /health/live HTTP/1.1\r\nHost: local")
            if drips:
                for _ in range(4):
                    time.sleep(0.1)
                    raw.sendall(b"h")
            assert everything(raw) == b""
            assert time.monotonic() - started >= 1.4
    with connect(port) as raw:
        assert everything(raw) == b"", "a connection on which nothing is asked"


def test_a_slow_client_keeps_nobody_else_waiting_and_several_requests_go_over_one_connection(port: str) -> None:
    with connect(port) as slow, httpx.Client(base_url=port, trust_env=False) as client:
        slow.sendall(b"PUT /v1/read HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n\r\nx")
        for _ in range(3):
            assert client.get("/health/live").status_code == 200


def test_a_client_that_hangs_up_leaves_nothing_running(port: str, frame: Service) -> None:
    with connect(port) as raw:
        raw.sendall(b"PUT /v1/read HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n\r\nx")
    assert httpx.get(f"{port}/health/live", trust_env=False).status_code == 200
    assert frame.services.workers.busy == 0


def test_what_is_no_http_is_refused(port: str) -> None:
    with connect(port) as raw:
        raw.sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\r\n\r\n")
        assert everything(raw).startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize(
    "content",
    [
        b'{"question": "a", "scope": "user:ann", "scope": "user:bob"}',
        b'{"question": "a", "x": ' + b"[" * 150 + b"]" * 150 + b"}",
        b"[" * 5_000,
        b'{"question": "a", "k": NaN}',
        b'{"question": "a", "k": ' + b"7" * 5_000 + b"}",
    ],
)
def test_json_beyond_the_limits_is_refused_before_any_route(frame: Service, content: bytes) -> None:
    answer = frame.client.post("/v1/asked", content=content, headers={"Content-Type": "application/json"})
    assert answer.status_code == 422
    assert answer.json()["error"]["message"].startswith("the body ")
