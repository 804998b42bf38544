"""One graph or several: what it takes to build them, what searches take, and what they find."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from typing import Final

from rag_pipeline.index import graph
from rag_pipeline.index.database import Connection, connected
from rag_pipeline.index.graph import building_bytes, ensure_graph
from rag_pipeline.index.migrations import migrate
from rag_pipeline.index.partitioning import partition
from rag_pipeline.index.spaces import create_space, numbered_space
from rag_pipeline.model import EmbeddingSpace
from rag_pipeline.progress import silent
from rag_pipeline_tests.bench.files import files_of
from rag_pipeline_tests.bench.report import Report
from rag_pipeline_tests.bench.search import fill, leg_times, percentile, recall, server
from rag_pipeline_tests.bench.search_corpus import Corpus, corpus_of

_SIZES: Final = (100_000,)
COUNTS: Final = (1, 4, 8)
FILTERS: Final[Sequence[tuple[str, dict[str, str], float]]] = (
    ("", {}, 0.98),
    (", 1 % filter", {"repository": "repository-7"}, 0.95),
    (", 22 % filter", {"path_prefix": "1"}, 0.95),
)
"""Of 100,000 chunks, one percent is compared exactly, and a fifth is walked for."""
TIGHT: Final = 4
"""Partitions of which one fits the memory that all together do not."""


def bench_partitions(
    repository: str, report: Report, *, start_date: date | None = None, chunks: Sequence[int] = _SIZES
) -> None:
    """A corpus made of the repository's files, its vectors laid out in one table and in several."""
    corpus = corpus_of(files_of(repository))
    with server() as running:
        migrate(running.url())
        with connected(running.url()) as connection:
            for size in chunks:
                section = f"partitions, {size:,} chunks"
                space = filled(connection, corpus, size)
                for count in COUNTS:
                    measure(connection, corpus, space, count, report, section)
                measure_tight(connection, corpus, space, report, section)
                report.show(section)


def filled(connection: Connection, corpus: Corpus, size: int) -> EmbeddingSpace:
    """A space with so many chunks, without a graph."""
    connection.execute("TRUNCATE rag.documents, rag.chunks, rag.segments, rag.postings, rag.embedding_spaces CASCADE")
    space = create_space(
        connection, provider="bench", model=f"parted-{size}", recipe="mixed/v1", dimensions=corpus.vectors.shape[1]
    )
    return fill(connection, corpus, size, space, with_graph=False)


def measure(
    connection: Connection, corpus: Corpus, space: EmbeddingSpace, count: int, report: Report, section: str
) -> None:
    """Build the graphs of so many partitions, and search them."""
    name = f"{count} partition{'s' * (count > 1)}"
    started = time.perf_counter()
    made = _laid_out(connection, space, count)
    report.figure(section, f"{name}: laid out, without graphs", time.perf_counter() - started, "s")
    started = time.perf_counter()
    assert ensure_graph(connection, made)
    report.figure(section, f"{name}: graphs built", time.perf_counter() - started, "s")
    made = numbered_space(connection, made.space_id)
    held = connection.execute(
        "SELECT sum(pg_relation_size(indexrelid)), count(*) FROM pg_stat_user_indexes WHERE indexrelname LIKE '%hnsw'"
    ).fetchone()
    assert held is not None
    report.figure(section, f"{name}: graphs on disk", float(held[0]) / 1e6, "MB", note=f"{held[1]} graphs")
    (vectors,) = connection.execute(f"SELECT count(*) FROM rag.vectors_{made.space_id}".encode()).fetchone() or (0,)
    needed = building_bytes(vectors // count, dimensions=made.dimensions, graph=made.graph)
    report.figure(section, f"{name}: memory for building one", needed / 1e6, "MB", note="reckoned")
    for leg in ("vector", "fused"):
        found = leg_times(connection, corpus, made, leg)
        report.figure(section, f"{name}: {leg}, p50", percentile(found, 50), "ms")
        report.figure(section, f"{name}: {leg}, p95", percentile(found, 95), "ms")
    for label, where, least in FILTERS:
        share = recall(connection, corpus, made, where)
        detail = f"{share:.3f} of the ten nearest, {least} wanted"
        report.check(section, f"{name}: the vector leg finds what is nearest{label}", share >= least, detail)


def measure_tight(connection: Connection, corpus: Corpus, space: EmbeddingSpace, report: Report, section: str) -> None:
    """The same builds with as much memory as one of the partitions needs, and no more."""
    (vectors,) = connection.execute(f"SELECT count(*) FROM rag.vectors_{space.space_id}".encode()).fetchone() or (0,)
    needed = building_bytes(vectors // TIGHT, dimensions=space.dimensions, graph=space.graph)
    kilobytes = max(1_024, int(1.1 * needed) // 1024)
    with _memory(connection, kilobytes):
        for count in (1, TIGHT):
            made = _laid_out(connection, space, count)
            started = time.perf_counter()
            assert ensure_graph(connection, made)
            report.figure(
                section, f"{count} partition{'s' * (count > 1)}, little memory: graphs built",
                time.perf_counter() - started, "s", note=f"{kilobytes / 1024:.0f} MB for a build",
            )  # fmt: skip


@contextmanager
def _memory(connection: Connection, kilobytes: int) -> Iterator[None]:
    """No build takes more."""
    least, most = graph.LEAST_KB, graph.MOST_KB
    graph.LEAST_KB = graph.MOST_KB = kilobytes  # type: ignore[misc]
    connection.execute(f"SET maintenance_work_mem = '{kilobytes}kB'".encode())
    try:
        yield
    finally:
        graph.LEAST_KB, graph.MOST_KB = least, most  # type: ignore[misc]
        connection.execute("RESET maintenance_work_mem")


def _laid_out(connection: Connection, space: EmbeddingSpace, count: int) -> EmbeddingSpace:
    """The space in so many tables, without a graph."""
    connection.execute(f"DROP INDEX IF EXISTS rag.vectors_{space.space_id}_hnsw".encode())
    partition(connection, space.space_id, partitions=count, progress=silent)
    return numbered_space(connection, space.space_id)
