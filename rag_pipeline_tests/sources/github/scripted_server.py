"""A GitHub on a loopback socket that answers as a test scripts it, and a client on it that never really waits."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlsplit

import pytest

from rag_pipeline.settings import GitHub
from rag_pipeline.sources.github.client import GitHubClient, make_client

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
TOKEN = "ghp_0123456789abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    """Lower-case names."""
    client_port: int
    """Tells connections apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    status: int = 200
    body: object = None
    """Sent as it is when it is bytes, else as JSON."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """A `Date` among them takes the place of the server's own."""
    missing_bytes: int = 0
    """So many fewer are sent than Content-Length says, and the connection is closed."""
    delay_s: float = 0.0


Script = Callable[[Request], Reply]

OK = Reply(body=[{"id": 1}])
ISSUES = "/repos/o/r/issues"
SECONDARY = "You have exceeded a secondary rate limit"


class Clock:
    """A time that passes only while someone sleeps."""

    def __init__(self, now: datetime = NOW) -> None:
        self.now = now
        self.slept: list[float] = []

    def __call__(self) -> datetime:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += timedelta(seconds=seconds)


@dataclass(slots=True)
class ScriptedServer:
    """What came in, and the time by its own clock."""

    url: str
    script: Script
    clock: Callable[[], datetime]
    requests: list[Request] = field(default_factory=list)

    @property
    def paths(self) -> list[str]:
        return [request.path for request in self.requests]


def in_turn(*replies: Reply | Script) -> Script:
    """Each reply once, in this order; afterwards the last one again and again."""
    waiting = list(replies)

    def script(request: Request) -> Reply:
        reply = waiting.pop(0) if len(waiting) > 1 else waiting[0]
        return reply(request) if callable(reply) else reply

    return script


def quota(*, remaining: int | str, limit: int | str = 5000, resets_in_s: float = 600, at: datetime = NOW) -> dict:
    """Rate-limit headers as GitHub sends them."""
    reset = int(at.timestamp() + resets_in_s)
    return {
        "X-RateLimit-Limit": str(limit), "X-RateLimit-Remaining": str(remaining), "X-RateLimit-Reset": str(reset),
        "X-RateLimit-Resource": "core",
    }  # fmt: skip


def refused(status: int, message: str, **headers: str) -> Reply:
    return Reply(status=status, body={"message": message}, headers={k.replace("_", "-"): v for k, v in headers.items()})


@contextmanager
def scripted_server(script: Script, *, clock: Callable[[], datetime] = lambda: NOW) -> Iterator[ScriptedServer]:
    http = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    http.daemon_threads = True
    server = ScriptedServer(url=f"http://127.0.0.1:{http.server_port}", script=script, clock=clock)
    http.scripted = server
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.005}, daemon=True)
    thread.start()
    try:
        with pytest.MonkeyPatch.context() as environment:
            environment.setenv("NO_PROXY", "127.0.0.1")
            yield server
    finally:
        http.shutdown()
        http.server_close()
        thread.join()


@contextmanager
def client_on(
    script: Script | Reply,
    *,
    environ: Mapping[str, str] | None = None,
    clock: Clock | None = None,
    server_clock: Callable[[], datetime] | None = None,
    prefix: str = "",
    token_env: str = "",
    **settings: object,
) -> Iterator[tuple[GitHubClient, ScriptedServer, Clock]]:
    """A client with a token on a scripted server; `prefix` is the path of its base URL, as GHES has one."""
    clock = clock or Clock()
    script = script if callable(script) else in_turn(script)
    with scripted_server(script, clock=server_clock or clock) as server:
        client = make_client(
            GitHub.model_validate({"base_url": server.url + prefix} | settings),
            token_env=token_env,
            repository="o/r",
            environ={"GITHUB_TOKEN": TOKEN} if environ is None else environ,
            clock=clock,
            sleep=clock.sleep,
        )
        with client:
            yield client, server, clock


def error_of(
    expected: type[Exception], script: Script | Reply, *, path: str = ISSUES, **options: object
) -> tuple[Exception, list[float]]:
    """The error that a GET ends with, and what was waited for."""
    with client_on(script, **options) as (client, _, clock), pytest.raises(expected) as caught:
        client.get(path)
    return caught.value, clock.slept


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # or each answer waits 40 ms for the client's acknowledgement

    def do_GET(self) -> None:  # the name that http.server calls
        server: ScriptedServer = self.server.scripted
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        parts = urlsplit(self.path)
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(
            method=self.command, path=parts.path, query=dict(parse_qsl(parts.query)), headers=headers,
            client_port=self.client_address[1],
        )  # fmt: skip
        server.requests.append(request)
        self._send(server.script(request), date=server.clock())

    do_POST = do_GET  # noqa: N815 # likewise

    def _send(self, reply: Reply, *, date: datetime) -> None:
        time.sleep(reply.delay_s)
        content = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
        content = b"" if reply.status == 304 else content
        headers = {"Content-Length": str(len(content)), "Date": format_datetime(date, usegmt=True)} | reply.headers
        self.send_response_only(reply.status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        try:
            self.wfile.write(content[: len(content) - reply.missing_bytes])
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True
        if reply.missing_bytes or int(headers["Content-Length"]) != len(content):
            self.close_connection = True

    def log_message(self, *_: object) -> None:
        pass
