"""The HNSW graph of an embedding space: whether it is there, what it needs, and how it is built.

Sizes of its elements are those of pgvector's `hnsw.h`: on disk, an element (72 bytes and the vector) and its neighbours
(4 bytes and 6 for each of them) share a page where they fit. On 200,000 vectors of 384 dimensions that gives the
measured 223 MB.
"""

from __future__ import annotations

import logging
from contextlib import nullcontext
from typing import Final

import psycopg
from psycopg import sql

from rag_pipeline.index.database import Connection
from rag_pipeline.index.spaces import statement_of, tables_with_graphs, vector_table
from rag_pipeline.index.sql_files import queries
from rag_pipeline.model import EmbeddingSpace

_log = logging.getLogger(__name__)

_M: Final = 16  # as the graph is built
_PAGE: Final = 8192
_USABLE: Final = _PAGE - 24 - 8  # without the page's header and what HNSW keeps at its end
IN_MEMORY: Final = 1.35
"""What a graph takes while it is built, as a multiple of what it takes on disk (1.27 measured): pointers are longer."""
LEAST_KB: Final = 512 * 1024
MOST_KB: Final = 2 * 1024 * 1024
"""More is taken only where the server is set to it."""
WORKERS: Final = 4
"""Beside the server's own process."""


def ensure_graph(connection: Connection, space: EmbeddingSpace) -> bool:
    """Build the space's HNSW index unless it has one or holds nothing yet; True when it was built.

    After the bulk load, because building it row by row is an order of magnitude slower; from then on it is kept up.
    """
    return build_graph(
        connection, vector_table(space), partitions=space.partitions, dimensions=space.dimensions
    )  # fmt: skip


def build_graph(
    connection: Connection, table: str, *, partitions: int, dimensions: int, workers: int = WORKERS,
    analyzed: bool = True,
) -> bool:  # fmt: skip
    """`ensure_graph` for a table of vectors: its partitions' graphs one after the other, each in the memory for it.

    A partition's graph that is built stays built, whatever happens to the next one. Not `analyzed`: the caller does
    that (`analyze`), once all is written.
    """
    if not lacks_graph(connection, table):
        return False
    built = [
        _build_one(connection, part, dimensions=dimensions, workers=workers)
        for part in tables_with_graphs(table, partitions=partitions)
    ]  # fmt: skip
    if partitions > 1:
        with connection.transaction():
            connection.execute(statement_of("lock_vectors", table, file="graph"))
            # Finds the graph of each partition, and builds none.
            connection.execute(statement_of("build_graph", table, file="graph"))
    if any(built) and analyzed:
        analyze(connection, table)
    return any(built)


def analyze(connection: Connection, table: str) -> None:
    """The planner chooses between graph and exact scan by statistics: give it some before the first query."""
    connection.execute(statement_of("analyze", table, file="graph"))


def has_graph(connection: Connection, space: EmbeddingSpace) -> bool:
    """Whether the space's HNSW index is built and valid, in every partition."""
    return _has_graph(connection, vector_table(space))


def needed_bytes(connection: Connection, table: str, *, dimensions: int) -> int:
    """What the graph of a table needs on disk; counts its vectors."""
    (vectors,) = connection.execute(statement_of("count_vectors", table, file="graph")).fetchone() or (0,)
    return graph_bytes(int(vectors), dimensions=dimensions)


def partitions_for(vectors: int, *, dimensions: int, memory_bytes: int) -> int:
    """Into how many partitions so many vectors have to go for the graph of each to be built in this much memory."""
    return max(1, -(-int(IN_MEMORY * graph_bytes(vectors, dimensions=dimensions)) // memory_bytes))


def graph_bytes(vectors: int, *, dimensions: int) -> int:
    """What an HNSW graph over so many `halfvec` needs (m = 16)."""
    element = aligned(72 + 8 + 2 * dimensions)
    neighbours = aligned(4 + 6 * 2 * _M)
    together = _USABLE // (element + neighbours + 8)
    if together:
        return _PAGE * -(-vectors // together)
    return _PAGE * (vectors + -(-vectors // (_USABLE // (neighbours + 4))))


def allow_memory(
    connection: Connection, *, graph: int = 0, in_transaction: bool = False, workers: int = WORKERS
) -> None:
    """Memory for building indexes, for this session or transaction; `graph`: bytes on disk of the graph to be built.

    A graph that does not fit is built ten times more slowly from there on (pgvector 0.8).
    """
    kilobytes = min(max(int(IN_MEMORY * graph) // 1024, LEAST_KB), MOST_KB)
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


def _build_one(connection: Connection, table: str, *, dimensions: int, workers: int) -> bool:
    with connection.transaction():
        # One build at a time: PostgreSQL would let two runs build the same index, and then refuse the second.
        connection.execute(statement_of("lock_vectors", table, file="graph"))
        if _has_graph(connection, table):
            return False
        needed = needed_bytes(connection, table, dimensions=dimensions)
        build = statement_of("build_graph", table, file="graph")
        build_in_memory(connection, build, graph=needed, in_transaction=True, workers=workers)
        return True


def _has_graph(connection: Connection, table: str) -> bool:
    present = connection.execute(queries("graph")["has_graph"], {"table": f"rag.{table}"}).fetchone()
    return bool(present and present[0])


def lacks_graph(connection: Connection, table: str) -> bool:
    """Whether a table holds vectors, and no graph over them."""
    empty = connection.execute(statement_of("is_empty", table, file="graph")).fetchone()
    return not _has_graph(connection, table) and not (empty and empty[0])
