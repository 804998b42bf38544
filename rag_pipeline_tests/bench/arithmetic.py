"""What 1 M, 10 M and 1 B chunks cost and take: formulas over what was measured, as the tables of docs/scaling.md.

python -m rag_pipeline_tests.bench.arithmetic            prints them
python -m rag_pipeline_tests.bench.arithmetic --write    puts them into docs/scaling.md

A figure that was measured is an input, named with where it stands; everything else follows from the inputs. What grows
more slowly than in proportion is taken as it grew between the two largest sizes that were measured.
"""

from __future__ import annotations

import argparse
import math
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from rag_pipeline.index.codes import bits_of
from rag_pipeline.index.graph import aligned, building_bytes, graph_bytes, partitions_for
from rag_pipeline.index.spaces import graph_for
from rag_pipeline.settings.prices import DEFAULT_PRICES

PAGE: Final = Path(__file__).parents[2] / "docs" / "scaling.md"
_GB: Final = 1e9
_HOUR: Final = 3600.0
_MEASURED_AT: Final = 1_000_000
_USABLE: Final = 8192 - 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """What the arithmetic starts from; replace what was measured elsewhere by your own."""

    dimensions: int = 384
    chunk_tokens: float = 124.7
    """pallets/flask: 324,876 tokens in 2,605 chunks."""
    cpu_tokens_s: float = 6_940.0
    """The local model on two cores."""
    fleet_tokens_s: float = 100_000.0
    """A unit to reckon with, not a measurement: what a fleet of GPUs embeds in a second."""
    price_per_million: float = 0.02
    """USD; of `embedding.model`, as `[prices]` has it."""
    copy_rows_s: float = 105_000.0
    """Vectors of 384 dimensions by binary COPY: 200,000 in 1.9 s."""
    write_chunks_s: float = 4_500.0
    """Chunks with postings, vectors and graph: a million in 220 s."""
    graph_vectors_s: float = 10_500.0
    """Of 384 dimensions into a graph over codes that fits its memory: a million in 95 s, on two cores."""
    chunk_bytes: float = 950.0
    """Of a chunk, indexes included, without vectors and postings: 353 measured beside its text, 540 of text (4.3 a
    token), and its share of its document."""
    postings_bytes: float = 1_140.0
    """Of a chunk: 114 MB for 100,000."""
    search_ms: float = 20.3
    """Median of a fused search among a million chunks, almost all of it processor time."""
    search_growth: float = 0.41
    """Exponent: from 7.9 ms among 100,000 to 20.3 ms among a million."""
    searches_s: float = 50.0
    """To be answered at once."""
    busy: float = 0.5
    """Share of its cores that a server of searches may use before it queues."""
    build_memory_bytes: int = 16 * 2**30
    """`maintenance_work_mem` of the server for one build."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What so many chunks take; sizes in bytes, times in hours."""

    chunks: int
    tokens: float
    embedding_usd: float
    cpu_hours: float
    fleet_hours: float
    copy_hours: float
    write_hours: float
    graph_hours: float
    graph_bytes: int
    build_memory_bytes: int
    partitions: int
    disk_bytes: float
    search_ms: float
    search_cores: float


def estimate(chunks: int, given: Inputs) -> Estimate:
    """The formulas of docs/scaling.md, in its order."""
    tokens = chunks * given.chunk_tokens
    wider = given.dimensions / 384
    kind = graph_for(given.dimensions)
    graph = graph_bytes(chunks, dimensions=given.dimensions, graph=kind)
    search_ms = given.search_ms * (chunks / _MEASURED_AT) ** given.search_growth
    return Estimate(
        chunks=chunks, tokens=tokens, embedding_usd=tokens / 1e6 * given.price_per_million,
        cpu_hours=tokens / given.cpu_tokens_s / _HOUR, fleet_hours=tokens / given.fleet_tokens_s / _HOUR,
        copy_hours=chunks * wider / given.copy_rows_s / _HOUR, write_hours=chunks / given.write_chunks_s / _HOUR,
        graph_hours=chunks * wider / given.graph_vectors_s / _HOUR * _deeper(chunks), graph_bytes=graph,
        build_memory_bytes=building_bytes(chunks, dimensions=given.dimensions, graph=kind),
        partitions=partitions_for(
            chunks, dimensions=given.dimensions, graph=kind, memory_bytes=given.build_memory_bytes
        ),
        disk_bytes=graph + chunks * (given.chunk_bytes + given.postings_bytes) + vector_bytes(chunks, given.dimensions),
        search_ms=search_ms, search_cores=given.searches_s * search_ms / 1000 / given.busy,
    )  # fmt: skip


def vector_bytes(vectors: int, dimensions: int) -> float:
    """The table of vectors with its key: rows of a header, a hash, a tenant, the vector and its code,
    as many as a page takes."""
    code = 8 + bits_of(dimensions) // 8 if graph_for(dimensions) == "codes" else 0
    row = aligned(24 + 16 + 8 + 8 + 2 * dimensions + code) + 4
    together = max(1, _USABLE // row)
    key = (8 + 16 + 8 + 4) / 0.9
    return vectors * (8192 / together + key)


def _deeper(chunks: int) -> float:
    """Each vector is looked for among all before it: the walk grows with the logarithm of their number."""
    return math.log(max(chunks, 2)) / math.log(_MEASURED_AT)


SIZES: Final = (1_000_000, 10_000_000, 100_000_000, 1_000_000_000)
LOCAL: Final = Inputs()
SERVICE: Final = replace(
    LOCAL,
    dimensions=1_536,
    price_per_million=float(DEFAULT_PRICES["text-embedding-3-small"]),  # type: ignore[arg-type]
)

Shown = Callable[[Estimate], str]
_ROWS: Final[Sequence[tuple[str, Shown]]] = (
    ("tokens to embed", lambda e: _short(e.tokens)),
    ("embedding by a service", lambda e: f"{e.embedding_usd:,.0f} USD"),
    ("embedding on two cores (local model)", lambda e: _time(e.cpu_hours)),
    ("embedding by a fleet of 100,000 tokens/s", lambda e: _time(e.fleet_hours)),
    ("COPY of the vectors alone", lambda e: _time(e.copy_hours)),
    ("writing the whole index, one writer", lambda e: _time(e.write_hours)),
    ("building the graph, if it fits memory", lambda e: _time(e.graph_hours)),
    ("the graph, wanted in memory by searches", lambda e: _size(e.graph_bytes)),
    ("memory to build it in one piece", lambda e: _size(e.build_memory_bytes)),
    ("partitions, at 16 GiB for a build", lambda e: f"{e.partitions:,}"),
    ("disk, all of it", lambda e: _size(e.disk_bytes)),
    ("a fused search, median", lambda e: f"{e.search_ms:,.0f} ms"),
    ("cores for 50 searches/s", lambda e: f"{math.ceil(e.search_cores):,}"),
)


def table(given: Inputs, sizes: Sequence[int] = SIZES) -> str:
    """The estimates as Markdown."""
    found = [estimate(size, given) for size in sizes]
    head = [f"| {given.dimensions:,} dimensions | " + " | ".join(f"{_short(size)} chunks" for size in sizes) + " |"]
    head.append("|---" + "|---:" * len(sizes) + "|")
    return "\n".join(head + [f"| {name} | " + " | ".join(show(e) for e in found) + " |" for name, show in _ROWS])


def page_with(text: str) -> str:
    """A page with the tables between their marks as they are reckoned now."""
    for name, given in (("local", LOCAL), ("service", SERVICE)):
        begin, end = f"<!-- arithmetic: {name} -->", f"<!-- end: {name} -->"
        pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
        if not pattern.search(text):
            raise ValueError(f"{PAGE} has no place for the table {name!r}: put {begin} and {end} there")
        made = f"{begin}\n{table(given)}\n{end}"
        text = pattern.sub(lambda _, made=made: made, text)  # type: ignore[misc]
    return text


def _short(number: float) -> str:
    for size, letter in ((1e12, " T"), (1e9, " B"), (1e6, " M"), (1e3, " k")):
        if number >= size:
            return f"{number / size:,.3g}{letter}"
    return f"{number:,.3g}"


def _size(number: float) -> str:
    return f"{number / 1e12:,.1f} TB" if number >= 1e12 else f"{number / _GB:,.1f} GB"


def _time(hours: float) -> str:
    if hours < 1 / 60:
        return f"{hours * _HOUR:,.0f} s"
    if hours < 1:
        return f"{hours * 60:,.0f} min"
    return f"{hours:,.1f} h" if hours < 48 else f"{hours / 24:,.0f} days"


def main() -> int:
    """Print the tables, or write them into the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="put them into docs/scaling.md")
    if parser.parse_args().write:
        PAGE.write_text(page_with(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
        return 0
    for given in (LOCAL, SERVICE):
        print(table(given), end="\n\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
