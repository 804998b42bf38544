"""The HTTP service under load, and through a restart of its database."""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import httpx

from rag_pipeline.embedded import EmbeddedPostgres
from rag_pipeline.embedding import make_embedder
from rag_pipeline.index.database import connected
from rag_pipeline.index.migrations import migrate
from rag_pipeline.index.spaces import create_space
from rag_pipeline.settings import Embedding
from rag_pipeline_tests.bench.files import files_of
from rag_pipeline_tests.bench.report import Report
from rag_pipeline_tests.bench.search import fill, percentile, server
from rag_pipeline_tests.bench.search_corpus import TENANT, corpus_of

_CLIENTS: Final = 50
_LOAD_S: Final = 60.0
_START_S: Final = 60.0
_HEALTH_S: Final = 2.0
_UNCACHED: Final = "embedding_cache = 0\nanswer_cache = 0\n"


@dataclass(slots=True)
class _Asked:
    """What clients saw."""

    times: list[float] = field(default_factory=list)
    """Milliseconds of what was answered with 200."""
    refused: Counter[str] = field(default_factory=Counter)
    """Everything else, by status or kind of error."""
    empty: int = 0


def bench_serving(
    repository: str, report: Report, *, start_date: date | None = None, chunks: Sequence[int] = (100_000,)
) -> None:
    """Fifty searchers at once, the model included, with and without the caches; `/health` while PostgreSQL restarts."""
    corpus = corpus_of(files_of(repository))
    embedder = make_embedder(Embedding(), environ={})
    for size in chunks:
        with server() as database:
            migrate(database.url())
            with connected(database.url()) as connection:
                space = create_space(
                    connection, provider=embedder.provider, model=embedder.model, recipe=embedder.recipe,
                    dimensions=corpus.vectors.shape[1],
                )  # fmt: skip
                fill(connection, corpus, size, space)
            section = f"service, {size:,} chunks"
            for label, settings in (("without caches", _UNCACHED), ("with caches", "")):
                with _serving(database.url(), settings) as address:
                    asyncio.run(_load(address, corpus.questions, seconds=5))
                    _report_load(report, section, label, asyncio.run(_load(address, corpus.questions)))
            with _serving(database.url(), "") as address:
                _bench_restart(address, database, corpus.questions, report, section)
            report.show(section)


@contextmanager
def _serving(url: str, settings: str) -> Iterator[str]:
    """The service as a process of its own, at this address."""
    with TemporaryDirectory(prefix="rag-bench-serve-") as folder:
        config = Path(folder) / "rag_pipeline.toml"
        config.write_text(
            f'tenant = "{TENANT}"\n[serving]\nrequests_per_minute = 10_000_000\nmax_waiting = 1_000\n{settings}',
            encoding="utf-8",
        )
        port = 18_000 + os.getpid() % 10_000
        program = [sys.executable, "-c", "from rag_pipeline.cli import main; main()"]
        command = [*program, "--config", str(config), "serve", "--port", str(port)]
        environ = os.environ | {"DATABASE_URL": url, "RAG_HOME": folder}
        with (Path(folder) / "log").open("wb") as log:
            process = subprocess.Popen(command, env=environ, stdout=log, stderr=log)
        try:
            _wait_until_ready(f"http://127.0.0.1:{port}", process)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(timeout=30)


def _wait_until_ready(address: str, process: subprocess.Popen[bytes]) -> None:
    ends = time.monotonic() + _START_S
    while time.monotonic() < ends:
        try:
            if httpx.get(f"{address}/health", timeout=5).status_code == 200:
                return
        except httpx.HTTPError:
            time.sleep(0.1)
        if process.poll() is not None:
            break
    raise RuntimeError(f"the service at {address} did not become ready within {_START_S:g} s")


async def _load(address: str, questions: Sequence[str], *, seconds: float = _LOAD_S) -> _Asked:
    """Each client asks one question after the other; which ones comes from a fixed seed."""
    asked = _Asked()
    ends = time.monotonic() + seconds
    limits = httpx.Limits(max_connections=_CLIENTS, max_keepalive_connections=_CLIENTS)
    async with httpx.AsyncClient(base_url=address, timeout=60, limits=limits) as client:

        async def searcher(number: int) -> None:
            rng = random.Random(number)
            while time.monotonic() < ends:
                started = time.perf_counter()
                try:
                    answer = await client.get("/v1/search", params={"q": rng.choice(questions), "k": 10})
                except httpx.HTTPError as error:
                    asked.refused[type(error).__name__] += 1
                    continue
                if answer.status_code != 200:
                    asked.refused[str(answer.status_code)] += 1
                    await asyncio.sleep(0.1)
                    continue
                asked.times.append(1e3 * (time.perf_counter() - started))
                body = answer.json()
                asked.empty += not body["hits"]
                if body["degraded"]:
                    asked.refused["degraded"] += 1

        await asyncio.gather(*(searcher(number) for number in range(_CLIENTS)))
    return asked


def _report_load(report: Report, section: str, label: str, asked: _Asked) -> None:
    for share in (50, 95):
        report.figure(section, f"{_CLIENTS} searchers, {label}: p{share}", percentile(asked.times, share), "ms")
    report.figure(section, f"{_CLIENTS} searchers, {label}: answered", len(asked.times) / _LOAD_S, "per second")
    found = f"{len(asked.times):,} answers, {asked.empty} empty, {dict(asked.refused) or 'no error'}"
    report.check(section, f"{label}: no error and no empty answer", not asked.refused and not asked.empty, found)


def _bench_restart(
    address: str, database: EmbeddedPostgres, questions: Sequence[str], report: Report, section: str
) -> None:
    """`/health` is asked all the while PostgreSQL is stopped and started again; then a search must be answered."""
    seen: list[tuple[float, float, int]] = []

    def look(until: float) -> None:
        while time.monotonic() < until:
            started = time.monotonic()
            status = httpx.get(f"{address}/health", timeout=30).status_code
            seen.append((started, time.monotonic() - started, status))
            time.sleep(0.05)

    look(time.monotonic() + 1)
    database.stop()
    look(time.monotonic() + 3)
    database.start()
    back = time.monotonic()
    look(back + 5)
    longest = max(took for _, took, _ in seen)
    ready = next((started + took - back for started, took, status in seen if started > back and status == 200), None)
    report.figure(section, "/health while PostgreSQL is away: longest wait", longest, "s", at_most=_HEALTH_S)
    down = {status for started, _, status in seen if started < back}
    report.check(section, "/health says 503 while PostgreSQL is away", down == {200, 503}, f"seen: {sorted(down)}")
    report.check(section, "/health recovers by itself", ready is not None, f"after {ready or 0:.2f} s")
    answer = httpx.get(f"{address}/v1/search", params={"q": questions[0]}, timeout=30)
    report.check(section, "a search is answered after the restart", answer.status_code == 200, answer.text[:200])
