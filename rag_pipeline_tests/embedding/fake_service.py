"""An embeddings endpoint on a loopback socket that answers as a test scripts it, and an embedder on it."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np

from rag_pipeline.embedding.openai_compatible import OpenAIEmbedder
from rag_pipeline.settings import Embedding

DIMENSIONS = 8
MODEL = "text-embedding-3-small"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    path: str
    headers: dict[str, str]
    """Lower-case names."""
    body: dict[str, object]

    @property
    def texts(self) -> list[str]:
        return list(self.body["input"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    status: int = 200
    body: object = None
    """Sent as JSON, or as it is when it is text."""
    headers: dict[str, str] = field(default_factory=dict)
    delay_s: float = 0.0
    cut: bool = False
    """The connection ends in the middle of the body."""


Script = Callable[[Request], Reply]


@dataclass(slots=True)
class FakeService:
    url: str
    requests: list[Request] = field(default_factory=list)

    @property
    def texts(self) -> list[str]:
        return [text for request in self.requests for text in request.texts]


def vector_of(text: str, dimensions: int = DIMENSIONS) -> np.ndarray:
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")
    return np.random.default_rng(seed).normal(size=dimensions).astype(np.float32)


def embeddings(request: Request, *, dimensions: int = DIMENSIONS, vectors: Sequence[object] | None = None) -> Reply:
    """A correct answer, or one with these vectors instead; base64 when asked for it, as OpenAI does."""
    vectors = [vector_of(text, dimensions) for text in request.texts] if vectors is None else vectors
    as_base64 = request.body.get("encoding_format") == "base64"
    data = [
        {"object": "embedding", "index": index, "embedding": _encoded(vector) if as_base64 else _numbers(vector)}
        for index, vector in enumerate(vectors)
    ]
    data.reverse()  # `index` says which is which, not the order
    usage = {"prompt_tokens": 7 * len(vectors), "total_tokens": 7 * len(vectors)}
    return Reply(body={"object": "list", "model": request.body["model"], "data": data, "usage": usage})


def error(status: int, message: str, *, code: str | None = None, headers: dict[str, str] | None = None) -> Reply:
    body = {"error": {"message": message, "type": code or "error", "param": None, "code": code}}
    return Reply(status=status, body=body, headers=headers or {})


def in_turn(*replies: Reply | Script, then: Script = embeddings) -> Script:
    """Each reply once, in this order; afterwards `then`."""
    waiting = list(replies)
    lock = threading.Lock()

    def script(request: Request) -> Reply:
        with lock:
            reply = waiting.pop(0) if waiting else then
        return reply(request) if callable(reply) else reply

    return script


@contextmanager
def fake_service(script: Script = embeddings) -> Iterator[FakeService]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(script))
    server.daemon_threads = True
    service = FakeService(f"http://127.0.0.1:{server.server_port}/v1")
    server.service = service
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield service
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _handler(script: Script) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:  # the name that http.server calls
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            headers = {name.lower(): value for name, value in self.headers.items()}
            request = Request(path=self.path, headers=headers, body=body)
            self.server.service.requests.append(request)
            self._send(script(request))

        def _send(self, reply: Reply) -> None:
            time.sleep(reply.delay_s)
            is_text = isinstance(reply.body, str)
            content = reply.body.encode() if is_text else json.dumps(reply.body).encode()
            headers = {"Content-Type": "text/html" if is_text else "application/json"} | reply.headers
            try:
                self.send_response(reply.status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content[: len(content) // 2] if reply.cut else content)
                self.close_connection = reply.cut
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True

        def log_message(self, *_: object) -> None:
            pass

    return Handler


def _encoded(vector: object) -> str:
    return base64.b64encode(np.asarray(vector, dtype="<f4").tobytes()).decode()


def _numbers(vector: object) -> object:
    return vector if vector is None else [float(number) for number in np.asarray(vector)]


Started = tuple[OpenAIEmbedder, FakeService, list[float]]


@contextmanager
def embedder_on(script: Script = embeddings, *, environ: dict[str, str] | None = None, **options) -> Iterator[Started]:
    """An embedder on a scripted service, and the waits it asked for (none is slept)."""
    slept: list[float] = []
    with fake_service(script) as service:
        settings = Embedding.model_validate({"provider": "openai", "model": MODEL, "base_url": service.url} | options)
        embedder = OpenAIEmbedder(settings, environ=environ or {}, sleep=slept.append, jitter=lambda: 1.0)
        try:
            yield embedder, service, slept
        finally:
            embedder.close()


def embedded(embedder: OpenAIEmbedder, texts: list[str]) -> tuple[dict[int, np.ndarray], dict[int, str]]:
    vectors, failures = {}, {}
    for batch in embedder.embed(texts):
        vectors |= dict(zip(batch.indices, batch.vectors, strict=True))
        failures |= dict(batch.failures)
    return vectors, failures


def refuse(is_bad: Callable[[str], bool], *, status: int = 400, message: str = "bad input") -> Script:
    return lambda request: error(status, message) if any(map(is_bad, request.texts)) else embeddings(request)
