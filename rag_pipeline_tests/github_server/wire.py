"""Bytes to a `Call` and a `Reply` to bytes: the only part that knows HTTP's framing."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Protocol, cast
from urllib.parse import parse_qsl, unquote, urlsplit

from rag_pipeline_tests.github_server.answers import Call
from rag_pipeline_tests.github_server.faults import Reply, error_reply

if TYPE_CHECKING:
    import socket
    from collections.abc import Mapping


class Application(Protocol):
    """What the handler asks."""

    prefix: str

    def handle(self, call: Call, headers: Mapping[str, str]) -> Reply:
        """Answer one request and record it."""

    def connected(self, connection: socket.socket) -> None:
        """A client connected."""

    def disconnected(self, connection: socket.socket) -> None:
        """A client left."""


class _Served(Protocol):
    github: Application


class Handler(BaseHTTPRequestHandler):
    """One connection, with as many requests as the client sends over it."""

    protocol_version = "HTTP/1.1"
    timeout = 60
    wbufsize = -1  # one write for head and body
    disable_nagle_algorithm = True

    @property
    def github(self) -> Application:
        """The server that this connection belongs to."""
        return cast("_Served", self.server).github

    def setup(self) -> None:
        """Let the server know, so that it can close the connection when it ends."""
        super().setup()
        self.github.connected(self.connection)

    def finish(self) -> None:
        """Forget the connection."""
        self.github.disconnected(self.connection)
        super().finish()

    def handle(self) -> None:
        """Serve until the client has gone, in whatever way."""
        try:
            super().handle()
        except (ConnectionError, TimeoutError):
            self.close_connection = True

    def do_GET(self) -> None:
        """Answer a request of any method."""
        length = int(self.headers.get("Content-Length") or 0)
        body, parts = self.rfile.read(length), urlsplit(self.path)
        call = Call(
            method=self.command, path=unquote(parts.path.removeprefix(self.github.prefix)), body=body,
            query=dict(parse_qsl(parts.query, keep_blank_values=True)), authorization=self.headers.get("Authorization"),
        )  # fmt: skip
        if not parts.path.startswith(self.github.prefix):
            self._write(error_reply(404, "Not Found", {}))
            return
        self._write(self.github.handle(call, {name.title(): value for name, value in self.headers.items()}))

    do_POST = do_PATCH = do_PUT = do_DELETE = do_GET  # noqa: N815 - the standard library's names

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the standard library's name
        """Say nothing: `GitHubServer.requests` has it."""

    def _write(self, reply: Reply) -> None:
        if reply.ending == "before":
            self.close_connection = True
            return
        self.send_response_only(reply.status)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        if reply.status != 304:
            self.send_header("Content-Length", str(len(reply.body)))
        self.end_headers()
        self.wfile.write(reply.body if reply.ending == "whole" else reply.body[: len(reply.body) // 2])
        self.wfile.flush()
        self.close_connection = self.close_connection or reply.ending == "middle"
