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
from rag_pipeline.index.spaces import statement
from rag_pipeline.index.sql_files import queries
from rag_pipeline.model import EmbeddingSpace

_log = logging.getLogger(__name__)

_M: Final = 16  # as the graph is built
_PAGE: Final = 8192
_USABLE: Final = _PAGE - 24 - 8  # without the page's header and what HNSW keeps at its end
_IN_MEMORY: Final = 1.35
"""What a graph takes while it is built, as a multiple of what it takes on disk (1.27 measured): pointers are longer."""
_LEAST_KB: Final = 512 * 1024
_MOST_KB: Final = 2 * 1024 * 1024
"""More is taken only where the server is set to it."""
_WORKERS: Final = 4


def ensure_graph(connection: Connection, space: EmbeddingSpace) -> bool:
    """Build the space's HNSW index unless it has one or holds nothing yet; True when it was built.

    After the bulk load, because building it row by row is an order of magnitude slower; from then on it is kept up.
    """
    if not _lacks_graph(connection, space):
        return False
    with connection.transaction():
        # One build at a time: PostgreSQL would let two runs build the same index, and then refuse the second.
        connection.execute(statement("lock_vectors", space, file="graph"))
        if not _lacks_graph(connection, space):
            return False
        needed = needed_bytes(connection, space)
        build_in_memory(connection, statement("build_graph", space, file="graph"), graph=needed, in_transaction=True)
    # The planner chooses between graph and exact scan by statistics: give it some before the first query.
    connection.execute(statement("analyze", space, file="graph"))
    return True


def has_graph(connection: Connection, space: EmbeddingSpace) -> bool:
    """Whether the space's HNSW index is built and valid."""
    present = connection.execute(queries("graph")["has_graph"], {"table": f"rag.vectors_{space.space_id}"}).fetchone()
    return bool(present and present[0])


def needed_bytes(connection: Connection, space: EmbeddingSpace) -> int:
    """What the space's graph needs on disk; counts its vectors."""
    (vectors,) = connection.execute(statement("count_vectors", space, file="graph")).fetchone() or (0,)
    return graph_bytes(int(vectors), dimensions=space.dimensions)


def graph_bytes(vectors: int, *, dimensions: int) -> int:
    """What an HNSW graph over so many `halfvec` needs (m = 16)."""
    element = aligned(72 + 8 + 2 * dimensions)
    neighbours = aligned(4 + 6 * 2 * _M)
    together = _USABLE // (element + neighbours + 8)
    if together:
        return _PAGE * -(-vectors // together)
    return _PAGE * (vectors + -(-vectors // (_USABLE // (neighbours + 4))))


def allow_memory(
    connection: Connection, *, graph: int = 0, in_transaction: bool = False, workers: int = _WORKERS
) -> None:
    """Memory for building indexes, for this session or transaction; `graph`: bytes on disk of the graph to be built.

    A graph that does not fit is built ten times more slowly from there on (pgvector 0.8).
    """
    kilobytes = min(max(int(_IN_MEMORY * graph) // 1024, _LEAST_KB), _MOST_KB)
    values = {"kilobytes": kilobytes, "workers": str(workers), "local": in_transaction}
    connection.execute(queries("graph")["memory"], values)


def build_in_memory(
    connection: Connection, build: sql.Composed, *, graph: int = 0, in_transaction: bool = False
) -> None:
    """Run a statement that builds an index, with the memory for it; see `allow_memory`.

    Workers build in shared memory, of which a container has 64 MB unless told otherwise; alone, a build needs none.
    """
    allow_memory(connection, graph=graph, in_transaction=in_transaction)
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


def _lacks_graph(connection: Connection, space: EmbeddingSpace) -> bool:
    empty = connection.execute(statement("is_empty", space, file="graph")).fetchone()
    return not has_graph(connection, space) and not (empty and empty[0])
