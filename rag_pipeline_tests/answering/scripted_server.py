"""A language model's service on a loopback socket that answers as a test scripts it.

One server speaks both wire formats: OpenAI's (`POST /v1/chat/completions`) and Anthropic's (`POST /v1/messages`). Each
request takes the next behaviour of the queue, and `otherwise` when the queue is empty; a behaviour streams when the
request asks for it, and else answers whole:

    with scripted_server(says("Hello ", "world."), fails(429, "slow down")) as server:
        Answering(provider="openai", model="m", base_url=server.url)       # Anthropic: base_url=server.anthropic_url
        server.then(lambda request: says(f"You asked: {request.question}"))
"""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from rag_pipeline_tests.answering.wire_formats import Format, of_path

LONGEST_WAIT_S = 30.0
"""A behaviour that waits for ever gives up after this: a test that fails must still end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request as it came in."""

    path: str
    headers: dict[str, str]
    """Lower-case names."""
    body: dict[str, object]

    @property
    def messages(self) -> list[dict[str, str]]:
        """With Anthropic's `system` as the first one, as OpenAI writes it."""
        system = self.body.get("system")
        first = [{"role": "system", "content": str(system)}] if system else []
        return [*first, *self.body.get("messages", [])]

    @property
    def question(self) -> str:
        """The last message of the user."""
        return next(m["content"] for m in reversed(self.messages) if m["role"] == "user")

    @property
    def wants_stream(self) -> bool:
        return bool(self.body.get("stream"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Says:
    """A text in pieces, well formed, unless told to break off."""

    pieces: Sequence[str]
    reasoning: Sequence[str] = ()
    """Thoughts, before the text, where the format has a place of its own for them."""
    input_tokens: int | None = 11
    """None: usage is left out."""
    output_tokens: int = 7
    finish: str | None = "stop"
    """OpenAI's word (`stop`, `length`, `content_filter`), said in Anthropic's to its clients; None: never said."""
    ends: bool = True
    """False: the connection is cut after the last piece."""
    says_done: bool = True
    """Whether the end of the stream is marked (`[DONE]`, `message_stop`)."""
    wait_s: float = 0.0
    """Before each piece."""
    waits_for_usage: bool = False
    """The stream stays open after the text, and says nothing more."""
    ignores_stream: bool = False
    """Answers whole, whatever was asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sends:
    """Any body, as it is."""

    status: int = 200
    body: bytes = b""
    content_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stalls:
    """Never answers: silent, or with a byte of what means nothing every few milliseconds."""

    after: Sequence[str] = ()
    """Pieces that come first; without any, not even a status line is completed."""
    drips: bool = False
    wait_s: float = 0.01


Behaviour = Says | Sends | Stalls
Script = Behaviour | Callable[[Asked], Behaviour]


def says(*pieces: str, **options: object) -> Says:
    """These pieces, one event each."""
    return Says(pieces=pieces, **options)


def fails(status: int, message: str = "no", *, code: str | None = None, headers: dict[str, str] | None = None) -> Sends:
    """A refusal as both services word it."""
    error = {"message": message, "type": code or "error", "param": None, "code": code}
    return Sends(status=status, body=json.dumps({"type": "error", "error": error}).encode(), headers=headers or {})


def web_page(status: int = 200) -> Sends:
    """What stands at an address that is no API."""
    return Sends(status=status, body=b"<!doctype html><title>Welcome</title>", content_type="text/html")


def events(*lines: str) -> Sends:
    """A whole event stream, line by line, as it is."""
    return Sends(body="".join(f"{line}\n" for line in lines).encode(), content_type="text/event-stream")


@dataclass(slots=True)
class ScriptedServer:
    """What a test sees of the server."""

    root: str
    otherwise: Script
    requests: list[Asked] = field(default_factory=list)
    hung_up: threading.Event = field(default_factory=threading.Event)
    """Set when a client closed its connection before the behaviour was over."""
    closing: threading.Event = field(default_factory=threading.Event)
    _queue: deque[Script] = field(default_factory=deque)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def url(self) -> str:
        """For OpenAI's clients."""
        return f"{self.root}/v1"

    @property
    def anthropic_url(self) -> str:
        """For Anthropic's clients, which add `/v1/messages` themselves."""
        return self.root

    def then(self, *scripts: Script) -> None:
        """Queue more."""
        with self._lock:
            self._queue.extend(scripts)

    def next_for(self, request: Asked) -> Behaviour:
        """Take the next behaviour."""
        with self._lock:
            self.requests.append(request)
            script = self._queue.popleft() if self._queue else self.otherwise
        return script(request) if callable(script) else script


@contextmanager
def scripted_server(*scripts: Script, otherwise: Script | None = None) -> Iterator[ScriptedServer]:
    """Serves until the block ends; `otherwise` answers when the queue is empty."""
    http = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    http.daemon_threads = True
    server = ScriptedServer(
        root=f"http://127.0.0.1:{http.server_port}", otherwise=otherwise or fails(418, "nothing is scripted")
    )
    server.then(*scripts)
    http.scripted = server
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.closing.set()
        http.shutdown()
        http.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:  # the name that http.server calls
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Asked(path=self.path, headers=headers, body=body)
        try:
            self._behave(self._server.next_for(request), request)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True
            self._server.hung_up.set()

    @property
    def _server(self) -> ScriptedServer:
        return self.server.scripted

    def _behave(self, behaviour: Behaviour, request: Asked) -> None:
        form = of_path(request.path)
        if isinstance(behaviour, Sends):
            self._send(behaviour)
        elif isinstance(behaviour, Stalls):
            self._stall(behaviour, form, request)
        elif request.wants_stream and not behaviour.ignores_stream:
            self._stream(behaviour, form, request)
        else:
            self._wait(behaviour.wait_s)
            answer = form.whole(behaviour, model=str(request.body["model"]))
            self._send(Sends(body=json.dumps(answer).encode()), cut_off=not behaviour.ends)

    def _send(self, what: Sends, *, cut_off: bool = False) -> None:
        self.send_response(what.status)
        for name, value in ({"Content-Type": what.content_type} | what.headers).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(what.body) + cut_off))
        self.end_headers()
        self.wfile.write(what.body)
        self.close_connection = self.close_connection or cut_off

    def _stream(self, says: Says, form: Format, request: Asked) -> None:
        self._open_stream()
        for event in form.opening(says, model=str(request.body["model"])):
            self._chunk(event)
        for event in form.pieces(says):
            self._wait(says.wait_s)
            self._chunk(event)
        if says.waits_for_usage:
            self._chunk(form.finish(says))
            self._wait_for_the_client()
        elif not says.ends:
            self.close_connection = True
        else:
            include_usage = bool((request.body.get("stream_options") or {}).get("include_usage"))
            for event in form.closing(says, include_usage=include_usage):
                self._chunk(event)
            self._chunk("")

    def _stall(self, stalls: Stalls, form: Format, request: Asked) -> None:
        self.close_connection = True
        if stalls.after:
            self._open_stream()
            said = Says(pieces=stalls.after)
            for event in (*form.opening(said, model=str(request.body["model"])), *form.pieces(said)):
                self._chunk(event)
            self._drip(": still here\n\n", stalls, write=self._chunk)
        else:
            # The status line and endless headers: bytes arrive, and no answer ever does.
            self._drip("HTTP/1.1 200 OK\r\n" + "X-Wait: a\r\n" * 10_000, stalls, write=self._bytes, each=1)

    def _drip(self, text: str, stalls: Stalls, *, write: Callable[[str], None], each: int = 0) -> None:
        for start in range(int(LONGEST_WAIT_S / max(stalls.wait_s, 0.001))) if stalls.drips else ():
            write(text[start * each : (start + 1) * each] if each else text)
            if self._server.closing.wait(stalls.wait_s):
                return
        self._wait_for_the_client()

    def _open_stream(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def _chunk(self, text: str) -> None:
        data = text.encode()
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()

    def _bytes(self, text: str) -> None:
        self.wfile.write(text.encode())
        self.wfile.flush()

    def _wait(self, seconds: float) -> None:
        if seconds:
            self._server.closing.wait(min(seconds, LONGEST_WAIT_S))

    def _wait_for_the_client(self) -> None:
        """Until it hangs up, or the test is over."""
        self.connection.settimeout(0.02)
        for _ in range(int(LONGEST_WAIT_S / 0.02)):
            if self._server.closing.is_set():
                return
            with suppress(TimeoutError):
                if not self.connection.recv(1):
                    raise ConnectionResetError

    def log_message(self, *_: object) -> None:
        pass
