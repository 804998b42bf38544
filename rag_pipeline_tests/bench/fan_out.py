"""Embedding through a service that takes its time: texts a second, by how many requests are under way.

The service is a process of its own that answers any number of requests at once, each after the same time, as a large
enough fleet behind a load balancer would.
"""

from __future__ import annotations

import asyncio
import base64
import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from typing import Final
from uuid import UUID

import numpy as np

from rag_pipeline.embedding import Text, embed_missing
from rag_pipeline.embedding.embedder import Vectors
from rag_pipeline.embedding.openai_compatible import OpenAIEmbedder
from rag_pipeline.model import text_hash
from rag_pipeline.settings import Embedding
from rag_pipeline_tests.bench.report import Report

_SECTION: Final = "fan-out"
_LATENCY_S: Final = 0.05
_DIMENSIONS: Final = 384
_BATCH: Final = 32
_REQUESTS: Final = {1: 40, 4: 120, 16: 300, 64: 600}
"""By how many are under way."""


def bench_fan_out(repository: str, report: Report, *, start_date: date | None = None) -> None:
    """The embedder for OpenAI-compatible services, with reuse and storing around it, against a made-up service."""
    with _service() as url:
        for concurrency, requests in _REQUESTS.items():
            _measure(url, concurrency, requests, report)
    report.show(_SECTION)


def _measure(url: str, concurrency: int, requests: int, report: Report) -> None:
    settings = Embedding(
        provider="openai", model="made-up", base_url=f"{url}/v1", concurrency=concurrency, batch_texts=_BATCH
    )
    embedder = OpenAIEmbedder(settings, environ={})
    stored = _Counted()
    texts = [f"Text {n} says that {'retries wait a little longer each time, ' * 8}and so on." for n in range(20_000)]
    chosen = [Text(text_hash(text), text) for text in texts[: requests * _BATCH]]
    embed_missing(chosen[: 2 * _BATCH], embedder=embedder, vectors=_Counted())
    before, started = _cpu_s(), time.perf_counter()
    embed_missing(chosen, embedder=embedder, vectors=stored)
    seconds, busy = time.perf_counter() - started, _cpu_s() - before
    embedder.close()
    bound = concurrency * _BATCH / _LATENCY_S
    name = f"{concurrency} under way"
    note = f"{bound:,.0f} if only the service took time; {100 * busy / seconds:.0f} % of a core"
    report.figure(_SECTION, name, stored.count / seconds, "texts/s", note=note)
    report.check(_SECTION, f"{name}: every text has its vector", stored.count == len(chosen))


class _Counted:
    """Vectors that nobody needs."""

    count = 0

    def known(self, hashes: Sequence[UUID]) -> set[UUID]:
        return set()

    def store(self, hashes: Sequence[UUID], vectors: Vectors) -> int:
        self.count += len(hashes)
        return len(hashes)


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


@contextmanager
def _service() -> Iterator[str]:
    command = [sys.executable, "-m", "rag_pipeline_tests.bench.fan_out"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
    finally:
        process.kill()
        process.wait()


async def _serve() -> None:
    server = await asyncio.start_server(_answer, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """One connection: every request gets an answer made once for its number of texts."""
    try:
        while head := await reader.readuntil(b"\r\n\r\n"):
            length = next(int(h.split(b":")[1]) for h in head.split(b"\r\n") if h.lower().startswith(b"content-length"))
            asked = json.loads(await reader.readexactly(length))
            await asyncio.sleep(_LATENCY_S)
            body = _body(len(asked["input"]), asked.get("encoding_format", "float"))
            head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode()
            writer.write(head + body)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


_bodies: dict[tuple[int, str], bytes] = {}


def _body(count: int, encoding: str) -> bytes:
    if (count, encoding) not in _bodies:
        vector = np.random.default_rng(count).normal(size=_DIMENSIONS).astype("<f4")
        shown = base64.b64encode(vector.tobytes()).decode() if encoding == "base64" else vector.tolist()
        data = [{"object": "embedding", "index": index, "embedding": shown} for index in range(count)]
        usage = {"prompt_tokens": 60 * count, "total_tokens": 60 * count}
        _bodies[count, encoding] = json.dumps({"object": "list", "model": "m", "data": data, "usage": usage}).encode()
    return _bodies[count, encoding]


if __name__ == "__main__":
    asyncio.run(_serve())
