"""A space's vectors laid out anew, in so many tables with a graph each, while searches and runs go on.

For a space whose graph has outgrown the memory that it is built in, and back. What is there is copied beside itself and
takes its place at the end, in one transaction: until then the space is as it was, whatever happens. Vectors are added
and removed, and a text that can be read by now gets one, so what changed meanwhile is found by comparing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final
from uuid import UUID

import psycopg
from psycopg import sql

from rag_pipeline.errors import SpaceUnavailable
from rag_pipeline.index.codes import drop_codes, ensure_codes
from rag_pipeline.index.database import Connection
from rag_pipeline.index.graph import build_graph, lacks_graph, needs_graph
from rag_pipeline.index.locks import Lock, exclude, wait_at_most
from rag_pipeline.index.maintenance import alone
from rag_pipeline.index.spaces import copy_table, numbered_space, require_room, statement_of, vector_table
from rag_pipeline.index.sql_files import queries
from rag_pipeline.model import EmbeddingSpace, Graph
from rag_pipeline.progress import Progress

MOST_PARTITIONS: Final = 256
_SLICES: Final = 64
"""A transaction each: what is copied stays copied, and none is so long that it keeps dead rows from being removed."""
_PATIENCE_S: Final = 10.0


def partition(
    connection: Connection, space_id: int, *, progress: Progress, partitions: int | None = None,
    graph: Graph | None = None,
) -> EmbeddingSpace:  # fmt: skip
    """Lay a space's vectors out in so many tables (1: one); returns the space as it is then. Nothing is embedded.

    `graph`: what their graphs are built over from then on. What is None stays as it is. Needs room for a second copy of
    vectors and graph meanwhile. Stopped and run again, it goes on where it was; asked for what is there, it removes
    what one that was stopped has left.

    Raises:
        SpaceUnavailable: there is no such space, its vectors are too long for codes, maintenance or another
            partitioning is at work, or somebody holds the vectors for longer than we wait; what was copied stays for
            the next time.
    """
    if partitions is not None and not 1 <= partitions <= MOST_PARTITIONS:
        raise SpaceUnavailable(f"{partitions} partitions are not possible: choose 1 to {MOST_PARTITIONS}")
    with alone(connection) as is_alone:
        if not is_alone:
            raise SpaceUnavailable("maintenance or another partitioning is at work: try again when that has ended")
        space = numbered_space(connection, space_id)
        table = vector_table(space)
        require_room(graph, dimensions=space.dimensions)
        wanted = replace(space, partitions=partitions or space.partitions, graph=graph or space.graph)
        if space == wanted:
            _drop_copy(connection, table)
            if space.graph != "codes":
                drop_codes(connection, space)
            return space
        _copy(connection, wanted, progress=progress)
        if not lacks_graph(connection, space, table):
            build_graph(connection, wanted, copy_table(table))
        # Once without keeping anybody out, so that little is left for when nobody may write.
        connection.execute(_statement("add_missing", table))
        _switch(connection, wanted)
        return numbered_space(connection, space_id)


def _copy(connection: Connection, space: EmbeddingSpace, *, progress: Progress) -> None:
    """Beside the vectors of the space, as it is to be laid out."""
    table, partitions = vector_table(space), space.partitions
    tables, has_codes, has_graphs = connection.execute(
        queries("partitions")["shape"], {"table": f"rag.{copy_table(table)}"}
    ).fetchone() or (None, False, False)  # fmt: skip
    # One that was begun for another kind of graph is of no use.
    is_other = has_codes if space.graph == "vectors" else has_graphs and not has_codes
    if tables != partitions or is_other:
        _drop_copy(connection, table)
        values = {"table": copy_table(table), "dimensions": space.dimensions, "partitions": partitions}
        with connection.transaction():
            connection.execute(queries("partitions")["create"], values)
            # Before there are rows, which would be written twice.
            if space.graph == "codes" and needs_graph(connection, space):
                ensure_codes(connection, space, copy_table(table))
    for number in range(_SLICES):
        first = UUID(int=number * (2**128 // _SLICES))
        last = UUID(int=(number + 1) * (2**128 // _SLICES) - 1)
        connection.execute(_statement("copy", table), {"first": first, "last": last})
        progress("partition", done=number + 1, total=_SLICES, unit="slices of vectors copied")


def _switch(connection: Connection, space: EmbeddingSpace) -> None:
    table = vector_table(space)
    try:
        with connection.transaction():
            wait_at_most(connection, _PATIENCE_S)
            # Runs count on vectors that they have seen; others that write are kept out by the table's own lock.
            exclude(connection, Lock.EMBEDDING)
            # In this order, as who drops a space takes them.
            connection.execute(queries("spaces")["lock_for_a_change"])
            connection.execute(_statement("lock", table))
            # In this order: what has another vector than when it was copied goes first, and is then missing.
            connection.execute(_statement("remove_gone", table))
            connection.execute(_statement("add_missing", table))
            connection.execute(queries("partitions")["replace"], {"table": table, "copy": copy_table(table)})
            values = {"partitions": space.partitions, "graph": space.graph, "space": space.space_id}
            connection.execute(queries("partitions")["remember"], values)
            if space.graph != "codes":
                drop_codes(connection, space)
    except psycopg.errors.LockNotAvailable as error:
        raise SpaceUnavailable(
            f"the vectors of embedding space {space.space_id} are in use: run it again when that has ended; what was "
            "copied stays"
        ) from error
    connection.execute(statement_of("analyze", table, file="graph"))


def _drop_copy(connection: Connection, table: str) -> None:
    connection.execute(statement_of("drop", copy_table(table), file="partitions"))


def _statement(name: str, table: str) -> sql.Composed:
    """`name`: the copy."""
    return sql.SQL(queries("partitions")[name]).format(
        vectors=sql.Identifier(table), name=sql.Identifier(copy_table(table))
    )  # fmt: skip
