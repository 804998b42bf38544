"""How fast and how exact a search is, at any number of chunks, alone and while a refresh writes."""

from __future__ import annotations

import multiprocessing
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from rag_pipeline.embedded import EmbeddedPostgres
from rag_pipeline.index.database import Connection, connected
from rag_pipeline.index.graph import ensure_graph
from rag_pipeline.index.migrations import migrate
from rag_pipeline.index.segments import merge_segments
from rag_pipeline.index.spaces import SpaceVectors, activate, create_space, numbered_space
from rag_pipeline.index.writer import IndexWriter
from rag_pipeline.model import EmbeddingSpace
from rag_pipeline.retrieval import search as search_module
from rag_pipeline.retrieval.query import SearchQuery
from rag_pipeline.retrieval.search import search
from rag_pipeline.settings import Retrieval
from rag_pipeline_tests.bench.files import files_of
from rag_pipeline_tests.bench.report import Report
from rag_pipeline_tests.bench.search_corpus import TENANT, Corpus, corpus_of, later

_SIZES: Final = (100_000,)
_LIMITS: Final = {100_000: {"lexical": (4, 20), "vector": (2, 5), "fused": (8, 25)}, 1_000_000: {"fused": (60, 60)}}
"""Milliseconds, p50 and p95."""
_CLIENTS: Final = 8
_LOAD_S: Final = 60.0
Leg = Literal["lexical", "vector", "fused"]


def bench_search(
    repository: str, report: Report, *, start_date: date | None = None, chunks: Sequence[int] = _SIZES
) -> None:
    """Legs and fusion over a corpus made of the repository's files; the model is left out."""
    corpus = corpus_of(files_of(repository))
    with server() as running:
        url = running.url()
        migrate(url)
        with connected(url) as connection:
            for size in chunks:
                section = f"search, {size:,} chunks"
                _bench_size(connection, url, corpus, size, report, section)
                report.show(section)


@contextmanager
def server() -> Iterator[EmbeddedPostgres]:
    """A server of its own, gone with all its data at the end."""
    with tempfile.TemporaryDirectory(prefix="rag-bench-") as folder:
        running = EmbeddedPostgres(Path(folder))
        running.start()
        try:
            yield running
        finally:
            running.erase()


def percentile(times: Sequence[float], share: int) -> float:
    """Below which so many percent lie."""
    return float(np.percentile(times, share))


def _bench_size(connection: Connection, url: str, corpus: Corpus, size: int, report: Report, section: str) -> None:
    connection.execute("TRUNCATE rag.documents, rag.chunks, rag.segments, rag.postings, rag.embedding_spaces CASCADE")
    started = time.perf_counter()
    space = create_space(
        connection, provider="bench", model=f"mixed-{size}", recipe="mixed/v1", dimensions=corpus.vectors.shape[1]
    )
    space = fill(connection, corpus, size, space)
    name = f"{size:,} chunks"
    report.figure(section, f"{name}: built", time.perf_counter() - started, "s", note="chunks, postings, graph")
    (held,) = connection.execute("SELECT pg_total_relation_size('rag.postings')").fetchone() or (0,)
    (segments,) = connection.execute("SELECT count(*) FROM rag.segments").fetchone() or (0,)
    report.figure(section, f"{name}: postings", held / 1e6, "MB", note=f"{segments} segments")
    for leg in ("lexical", "vector", "fused"):
        times = leg_times(connection, corpus, space, leg)
        p50, p95 = _LIMITS.get(size, {}).get(leg, (None, None))
        report.figure(section, f"{name}: {leg}, p50", percentile(times, 50), "ms", at_most=p50)
        report.figure(section, f"{name}: {leg}, p95", percentile(times, 95), "ms", at_most=p95)
    for label, where, least in (("", {}, 0.98), (", 1 % filter", {"repository": "repository-7"}, 0.95)):
        share = recall(connection, corpus, space, where)
        found = f"{share:.3f} of the ten nearest, {least} wanted"
        report.check(section, f"{name}: the vector leg finds what is nearest{label}", share >= least, found)
    _bench_load(url, corpus, space, name, report, section)


def fill(
    connection: Connection, corpus: Corpus, size: int, space: EmbeddingSpace, *, with_graph: bool = True
) -> EmbeddingSpace:  # fmt: skip
    """Write so many chunks with their postings and vectors, and let questions use the space; as it is then."""
    writer = IndexWriter(connection, fingerprint="bench", now=datetime(2024, 1, 1, tzinfo=UTC))
    for entries, vectors in corpus.batches(size):
        hashes = {chunk.text: chunk.text_hash for entry in entries for chunk in entry.chunks}
        SpaceVectors(connection, space, tenant=TENANT).store(
            [hashes[text] for text in vectors], np.stack(list(vectors.values()))
        )
        writer.write(entries)
        merge_segments(connection)
    if with_graph:
        ensure_graph(connection, space)
    activate(connection, space)
    connection.execute("VACUUM ANALYZE rag.chunks, rag.documents, rag.postings")
    return numbered_space(connection, space.space_id)


def _ask(
    connection: Connection, corpus: Corpus, space: EmbeddingSpace, number: int, leg: Leg, *, k: int = 10, **where: str
) -> list[str]:
    query = SearchQuery(text=corpus.questions[number], tenant=TENANT, k=k, legs=leg, **where)  # type: ignore[arg-type]
    vector = corpus.question_vectors[number]
    return [hit.text for hit in search(connection, query, space=space, vector=vector, settings=Retrieval())]


def leg_times(connection: Connection, corpus: Corpus, space: EmbeddingSpace, leg: Leg) -> list[float]:
    """Milliseconds of each question, the second time that it is asked."""
    times = []
    for _ in range(2):
        times = []
        for number in range(len(corpus.questions)):
            started = time.perf_counter()
            _ask(connection, corpus, space, number, leg)
            times.append(1e3 * (time.perf_counter() - started))
    return times


def recall(connection: Connection, corpus: Corpus, space: EmbeddingSpace, where: dict[str, str]) -> float:
    """Share of the ten nearest by an exact scan that a search finds."""
    numbers = range(0, len(corpus.questions), 4)
    found = [set(_ask(connection, corpus, space, number, "vector", **where)) for number in numbers]
    least = search_module.EXACT_UP_TO
    search_module.EXACT_UP_TO = 10**9  # type: ignore[misc]
    try:
        exact = [set(_ask(connection, corpus, space, number, "vector", **where)) for number in numbers]
    finally:
        search_module.EXACT_UP_TO = least  # type: ignore[misc]
    return float(np.mean([len(some & right) / len(right) for some, right in zip(found, exact, strict=True)]))


def _bench_load(url: str, corpus: Corpus, space: EmbeddingSpace, name: str, report: Report, section: str) -> None:
    """Parallel clients, alone and while a refresh writes."""
    quiet = _under_load(url, corpus, space, writes=False)
    busy = _under_load(url, corpus, space, writes=True)
    for label, found in (("quiet", quiet), ("while a refresh writes", busy)):
        times = found["times"]
        report.figure(section, f"{name}: {_CLIENTS} clients, {label}, p95", percentile(times, 95), "ms",
                      note=f"{len(times):,} searches, {found['written']:,} documents written")  # fmt: skip
    errors = f"{busy['errors']} errors, {busy['empty']} empty answers"
    report.check(section, f"{name}: no error and no empty answer while a refresh writes",
                 not busy["errors"] and not busy["empty"], errors)  # fmt: skip
    ratio = percentile(busy["times"], 95) / percentile(quiet["times"], 95)
    report.figure(section, f"{name}: p95 while a refresh writes, to the quiet one", ratio, "times", at_most=3)


def _under_load(url: str, corpus: Corpus, space: EmbeddingSpace, *, writes: bool) -> dict[str, object]:
    context = multiprocessing.get_context("spawn")
    with context.Pool(_CLIENTS) as pool:
        jobs = [pool.apply_async(_client, (url, corpus.questions, corpus.question_vectors, space, n, _LOAD_S))
                for n in range(_CLIENTS)]  # fmt: skip
        written = _write_until(url, corpus, space, lambda: all(job.ready() for job in jobs)) if writes else 0
        results = [job.get() for job in jobs]
    return {
        "times": [value for times, _, _ in results for value in times],
        "errors": sum(errors for _, errors, _ in results), "empty": sum(empty for _, _, empty in results),
        "written": written,
    }  # fmt: skip


def _client(
    url: str, questions: Sequence[str], vectors: NDArray[np.float32], space: EmbeddingSpace, first: int, seconds: float
) -> tuple[list[float], int, int]:
    """One client: milliseconds of its searches, errors, empty answers."""
    times: list[float] = []
    errors = empty = 0
    at = first * 37
    with connected(url) as connection:
        ends = time.time() + seconds
        while time.time() < ends:
            number = at % len(questions)
            at += 1
            query = SearchQuery(text=questions[number], tenant=TENANT, k=10)
            started = time.perf_counter()
            try:
                hits = search(connection, query, space=space, vector=vectors[number], settings=Retrieval())
            except Exception:
                errors += 1
                continue
            times.append(1e3 * (time.perf_counter() - started))
            empty += not hits
    return times, errors, empty


def _write_until(url: str, corpus: Corpus, space: EmbeddingSpace, is_over: Callable[[], bool]) -> int:
    """Documents changed as a refresh does it, a batch at a time, until then."""
    written = 0
    with connected(url) as connection:
        writer = IndexWriter(connection, fingerprint="bench", now=datetime(2024, 2, 1, tzinfo=UTC))
        round_ = 0
        while not is_over():
            round_ += 1
            for entries, vectors in corpus.batches(2_000, size=400):
                if is_over():
                    break
                changed = [later(entry, round_) for entry in entries]
                hashes = {chunk.text: chunk.text_hash for entry in changed for chunk in entry.chunks}
                SpaceVectors(connection, space, tenant=TENANT).store(
                    list(hashes.values()), np.stack([vectors[text.removesuffix(f" again {round_}")] for text in hashes])
                )
                writer.write(changed)
                written += len(changed)
                time.sleep(0.2)  # what embedding them would take, and more
            merge_segments(connection)
    return written
