"""An emulated GitHub on a real socket: HTTP/1.1 with keep-alive, a thread for each connection.

    forge = Forge()
    repository = forge.add_repository("acme/rocket")
    with GitHubServer(forge) as server:
        …  # requests to f"{server.url}/repos/acme/rocket/issues"
        assert server.count(r"/issues\\?") == 1

`prefix="/api/v3"` makes it a GitHub Enterprise Server. Tests change the forge, `access` (tokens, apps), `limits`
(paging), `quota` and `faults` while it runs. A mistake of the server itself answers 500, and fails the test at exit.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
import socket
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import format_datetime
from http.server import ThreadingHTTPServer
from types import TracebackType
from typing import Self

from rag_pipeline_tests.github_server.access import Access
from rag_pipeline_tests.github_server.answers import Answer, Call
from rag_pipeline_tests.github_server.faults import Fault, Faults, Reply, error_reply, exhausted, line_of
from rag_pipeline_tests.github_server.model import Forge
from rag_pipeline_tests.github_server.paging import Limits
from rag_pipeline_tests.github_server.quota import Quota
from rag_pipeline_tests.github_server.routes import Routes
from rag_pipeline_tests.github_server.shapes import Site
from rag_pipeline_tests.github_server.wire import Handler

_NO_AGENT = b"Request forbidden by administrative rules. Please make sure your request has a User-Agent header.\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """One request that came; `status` 0 is a connection closed without an answer, `at` is monotonic, in seconds."""

    method: str
    path: str
    query: Mapping[str, str]
    status: int
    authorization: str | None
    if_none_match: str | None
    fault: str | None
    at: float

    @property
    def line(self) -> str:
        """The path, with the query when there is one."""
        return line_of(Call(method=self.method, path=self.path, query=self.query))


class GitHubServer:
    """The server; a context manager that runs it in the background."""

    def __init__(self, forge: Forge, *, prefix: str = "", tokens: Iterable[str] = ()) -> None:
        self.forge = forge
        self.prefix = prefix
        self.access = Access(tokens=set(tokens), clock=lambda: self.clock())
        self.limits = Limits()
        self.quota = Quota()
        self.faults = Faults()
        self.requests: list[Recorded] = []
        self.max_concurrency = 0
        self.errors: list[BaseException] = []
        self.clock: Callable[[], datetime] = lambda: datetime.now(UTC)
        self._running = 0
        self._serial = itertools.count(1)
        self._lock = threading.Lock()
        self._connections: set[socket.socket] = set()
        self._http = _Http(self)
        self._host = f"http://127.0.0.1:{self._http.server_address[1]}"
        self.url = self._host + prefix
        self.site = Site(api=self.url, web=self._host if prefix else "https://github.com")
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()
        for connection in list(self._connections):
            # Clients that keep their connection would wait for its end.
            with self._lock:
                _shut(connection)
        if self.errors and error is None:
            raise self.errors[0]

    @property
    def tokens(self) -> set[str]:
        """The personal tokens that are accepted; each sees all repositories."""
        return self.access.tokens

    def count(self, pattern: str = "", *, status: int | None = None) -> int:
        """How many requests came whose `path?query` matches (and that were answered with a status)."""
        with self._lock:
            return sum(
                re.search(pattern, request.line) is not None and status in (None, request.status)
                for request in self.requests
            )

    def clear_requests(self) -> None:
        """Forget the requests so far, and how many came at once."""
        with self._lock:
            self.requests.clear()
            self.max_concurrency = self._running

    def handle(self, call: Call, headers: Mapping[str, str]) -> Reply:
        """Answer one request from the wire and record it."""
        with self._lock:
            self._running += 1
            self.max_concurrency = max(self.max_concurrency, self._running)
        fault = self.faults.take(call)
        try:
            reply = self._reply(call, headers, fault)
        except Exception as error:
            self.errors.append(error)
            reply = error_reply(500, f"The emulated server failed: {error!r}", {})
        record = Recorded(
            method=call.method, path=call.path, query=call.query, status=reply.status,
            authorization=call.authorization, if_none_match=headers.get("If-None-Match"),
            fault=fault.kind if fault else None, at=time.monotonic(),
        )  # fmt: skip
        with self._lock:
            # Before the answer leaves, so that whoever has the answer finds the record.
            self._running -= 1
            self.requests.append(record)
        return reply

    def connected(self, connection: socket.socket) -> None:
        """A client connected."""
        with self._lock:
            self._connections.add(connection)

    def disconnected(self, connection: socket.socket) -> None:
        """A client left."""
        with self._lock:
            self._connections.discard(connection)

    def _reply(self, call: Call, headers: Mapping[str, str], fault: Fault | None) -> Reply:
        now = self.clock()
        if "User-Agent" not in headers:
            return Reply(status=403, headers={"Content-Type": "text/html"}, body=_NO_AGENT)
        if fault is not None:
            if fault.kind == "slow":
                time.sleep(fault.seconds)
            if fault.action is not None:
                fault.action()
            with self._lock:
                self.quota.begin(now)
                instead = fault.instead(now, self.quota)
            if instead is not None:
                return self._with_common(instead, now)
        reply = self._with_common(self._true_reply(call, headers, now), now)
        return reply if fault is None else fault.spoil(reply)

    def _true_reply(self, call: Call, headers: Mapping[str, str], now: datetime) -> Reply:
        with self._lock:
            self.quota.begin(now)
            overview = self.quota.overview()
            if self.quota.remaining == 0 and call.path != "/rate_limit":
                return exhausted(self.quota)
        routes = Routes(forge=self.forge, site=self.site, access=self.access, limits=self.limits, overview=overview)
        return self._encoded(routes.answer(call), headers.get("If-None-Match"))

    def _encoded(self, answer: Answer, if_none_match: str | None) -> Reply:
        body = json.dumps(answer.body, ensure_ascii=False, separators=(",", ":")).encode()
        extra = dict(answer.headers)
        status = answer.status
        if status == 200:
            extra["ETag"] = f'W/"{hashlib.sha256(body).hexdigest()}"'
            if _matches(if_none_match, extra["ETag"]):
                status, body = 304, b""
        with self._lock:
            if status != 304 and not answer.is_free:
                self.quota.spend()
            extra |= self.quota.headers()
        if body:
            extra["Content-Type"] = "application/json; charset=utf-8"
        return Reply(status=status, headers=extra, body=body)

    def _with_common(self, reply: Reply, now: datetime) -> Reply:
        common = {
            "Server": "github.com",
            "Date": format_datetime(now.astimezone(UTC), usegmt=True),
            "X-GitHub-Media-Type": "github.v3; format=json",
            "X-GitHub-Request-Id": f"E4B0:3CDE:{next(self._serial):07X}",
            "Cache-Control": "private, max-age=60, s-maxage=60",
            "Vary": "Accept, Authorization, Cookie, X-GitHub-OTP,Accept-Encoding, Accept, X-Requested-With",
        }
        if self.prefix:
            common["X-GitHub-Enterprise-Version"] = "3.13.0"
        return Reply(status=reply.status, headers=common | reply.headers, body=reply.body, ending=reply.ending)


class _Http(ThreadingHTTPServer):
    """The standard library's server, on a free port, with room for many clients at once."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, github: GitHubServer) -> None:
        self.github = github
        super().__init__(("127.0.0.1", 0), Handler)


def _shut(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        return  # its client was faster


def _matches(if_none_match: str | None, etag: str) -> bool:
    # Weak comparison: `W/"a"` and `"a"` are the same (RFC 9110, 8.8.3.2).
    known = [one.strip().removeprefix("W/") for one in (if_none_match or "").split(",")]
    return etag.removeprefix("W/") in known or known == ["*"]
