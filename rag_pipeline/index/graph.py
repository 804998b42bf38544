"""The HNSW graph of an embedding space: whether it is there, what it needs, and how it is built.

It is built over the vectors, or over short codes of them (`codes`). Sizes of its elements are those of pgvector's
`hnsw.h`: on disk, an element (72 bytes and the vector or code) and its neighbours (4 bytes and 6 for each of them)
share a page where they fit. On 200,000 vectors of 384 dimensions that gives the measured 223 MB.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import nullcontext
from typing import Final

import psycopg
from psycopg import sql

from rag_pipeline.index.codes import ENOUGH, bits_of, ensure_codes
from rag_pipeline.index.database import Connection
from rag_pipeline.index.spaces import numbered_space, statement_of, tables_with_graphs, vector_table
from rag_pipeline.index.sql_files import queries
from rag_pipeline.model import EmbeddingSpace, Graph

_log = logging.getLogger(__name__)

_M: Final = 16  # as graphs are built; with 12, two of a hundred questions found nothing near them among a million codes
_PAGE: Final = 8192
_USABLE: Final = _PAGE - 24 - 8  # without the page's header and what HNSW keeps at its end
IN_MEMORY: Final[Mapping[Graph, float]] = {"vectors": 1.35, "codes": 2.0}
"""What a graph takes while it is built, as a multiple of what it takes on disk (measured: 1.27 and 1.88): pointers are
longer."""
LEAST_KB: Final = 512 * 1024
MOST_KB: Final = 2 * 1024 * 1024
"""More is taken only where the server is set to it."""
_BUILDS: Final[Mapping[Graph, str]] = {"vectors": "build_over_vectors", "codes": "build_over_codes"}
WORKERS: Final = 4
"""Beside the server's own process."""


def ensure_graph(connection: Connection, space: EmbeddingSpace) -> bool:
    """Build the space's HNSW index unless it has one or needs none yet (`needs_graph`); True when it was built.

    After the bulk load, because building it row by row is an order of magnitude slower; from then on it is kept up.
    """
    # As it is now: it may have been laid out anew since it was read.
    space = numbered_space(connection, space.space_id)
    return build_graph(connection, space, vector_table(space))


def build_graph(
    connection: Connection, space: EmbeddingSpace, table: str, *, workers: int = WORKERS, analyzed: bool = True
) -> bool:
    """`ensure_graph` for a table of the space's vectors, or of copies of them: as the space is to be laid out.

    Its partitions' graphs are built one after the other, each in the memory for it, and each stays built, whatever
    happens to the next one. Not `analyzed`: the caller does that (`analyze`), once all is written.
    """
    if not lacks_graph(connection, space, table):
        return False
    if space.graph == "codes":
        with connection.transaction():
            ensure_codes(connection, space, table)
    built = [
        _build_one(connection, space, part, workers=workers)
        for part in tables_with_graphs(table, partitions=space.partitions)
    ]  # fmt: skip
    if space.partitions > 1:
        with connection.transaction():
            connection.execute(statement_of("lock_vectors", table, file="graph"))
            # Finds the graph of each partition, and builds none.
            connection.execute(_build_statement(space, table))
    if any(built) and analyzed:
        analyze(connection, table)
    return any(built)


def analyze(connection: Connection, table: str) -> None:
    """The planner chooses between graph and exact scan by statistics: give it some before the first query."""
    connection.execute(statement_of("analyze", table, file="graph"))


def has_graph(connection: Connection, space: EmbeddingSpace) -> bool:
    """Whether the space's HNSW index is built and valid, in every partition, over what it is to be over."""
    return _has_graph(connection, space, vector_table(space))


def needs_graph(connection: Connection, space: EmbeddingSpace) -> bool:
    """Whether the space holds so many vectors that it is to have a graph."""
    return _needs_graph(connection, space, vector_table(space))


def needed_bytes(connection: Connection, space: EmbeddingSpace, table: str) -> int:
    """What the graph of a table of the space's vectors needs on disk; counts them."""
    return graph_bytes(_count(connection, table), dimensions=space.dimensions, graph=space.graph)


def building_memory(connection: Connection, space: EmbeddingSpace, table: str) -> int:
    """What it takes of memory, in bytes, to build the graph of a table of the space's vectors; counts them."""
    return building_bytes(_count(connection, table), dimensions=space.dimensions, graph=space.graph)


def building_bytes(vectors: int, *, dimensions: int, graph: Graph) -> int:
    """What it takes of memory to build a graph over so many vectors, or codes of them."""
    return int(IN_MEMORY[graph] * graph_bytes(vectors, dimensions=dimensions, graph=graph))


def partitions_for(vectors: int, *, dimensions: int, graph: Graph, memory_bytes: int) -> int:
    """Into how many partitions so many vectors have to go for the graph of each to be built in this much memory."""
    return max(1, -(-building_bytes(vectors, dimensions=dimensions, graph=graph) // memory_bytes))


def graph_bytes(vectors: int, *, dimensions: int, graph: Graph) -> int:
    """What an HNSW graph over so many vectors, or codes of them, needs on disk."""
    element = aligned(72 + 8 + (2 * dimensions if graph == "vectors" else -(-bits_of(dimensions) // 8)))
    neighbours = aligned(4 + 6 * 2 * _M)
    together = _USABLE // (element + neighbours + 8)
    if together:
        return _PAGE * -(-vectors // together)
    return _PAGE * (vectors + -(-vectors // (_USABLE // (neighbours + 4))))


def allow_memory(
    connection: Connection, *, graph: int = 0, in_transaction: bool = False, workers: int = WORKERS
) -> None:
    """Memory for building indexes, for this session or transaction; `graph`: bytes that a graph needs to be built.

    A graph that does not fit is built ten times more slowly from there on (pgvector 0.8).
    """
    kilobytes = min(max(graph // 1024, LEAST_KB), MOST_KB)
    values = {"kilobytes": kilobytes, "workers": str(workers), "local": in_transaction}
    connection.execute(queries("graph")["memory"], values)


def build_in_memory(
    connection: Connection, build: sql.Composed, *, graph: int = 0, in_transaction: bool = False, workers: int = WORKERS
) -> None:
    """Run a statement that builds an index, with the memory for it; see `allow_memory`.

    Workers build in shared memory, of which a container has 64 MB unless told otherwise; alone, a build needs none.
    """
    allow_memory(connection, graph=graph, in_transaction=in_transaction, workers=workers)
    try:
        with connection.transaction() if in_transaction else nullcontext():
            connection.execute(build)
    except (psycopg.errors.DiskFull, psycopg.errors.OutOfMemory) as error:
        _log.warning("an index is built again, without workers: %s", error)
        allow_memory(connection, graph=graph, in_transaction=in_transaction, workers=0)
        connection.execute(build)


def aligned(size: int) -> int:
    """As PostgreSQL lays things out: the next multiple of eight bytes."""
    return -(-size // 8) * 8


def _build_one(connection: Connection, space: EmbeddingSpace, table: str, *, workers: int) -> bool:
    with connection.transaction():
        # One build at a time: PostgreSQL would let two runs build the same index, and then refuse the second.
        connection.execute(statement_of("lock_vectors", table, file="graph"))
        if _has_graph(connection, space, table):
            return False
        needed = building_memory(connection, space, table)
        build_in_memory(connection, _build_statement(space, table), graph=needed, in_transaction=True, workers=workers)
        return True


def _build_statement(space: EmbeddingSpace, table: str) -> sql.Composed:
    return statement_of(_BUILDS[space.graph], table, file="graph")


def _has_graph(connection: Connection, space: EmbeddingSpace, table: str) -> bool:
    values = {"table": f"rag.{table}", "column": "code" if space.graph == "codes" else "embedding"}
    present = connection.execute(queries("graph")["has_graph"], values).fetchone()
    return bool(present and present[0])


def _count(connection: Connection, table: str) -> int:
    (vectors,) = connection.execute(statement_of("count_vectors", table, file="graph")).fetchone() or (0,)
    return int(vectors)


def _needs_graph(connection: Connection, space: EmbeddingSpace, table: str) -> bool:
    least = ENOUGH if space.graph == "codes" else 1
    held = connection.execute(statement_of("count_up_to", table, file="graph"), {"most": least}).fetchone()
    return bool(held and held[0] >= least)


def lacks_graph(connection: Connection, space: EmbeddingSpace, table: str) -> bool:
    """Whether a table of the space's vectors, or a copy of it, is to have a graph, and has none."""
    return not _has_graph(connection, space, table) and _needs_graph(connection, space, table)
