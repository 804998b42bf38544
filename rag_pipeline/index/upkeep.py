"""Tables and indexes in good order: dead rows vacuumed, invalid or wasteful indexes built again, while all goes on.

How much of an index is waste is reckoned from its size and from what its entries need.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psycopg
from psycopg import sql

from rag_pipeline.index.database import Connection
from rag_pipeline.index.graph import aligned, allow_memory, build_in_memory, building_memory, ensure_graph, needed_bytes
from rag_pipeline.index.locks import wait_at_most
from rag_pipeline.index.spaces import active_space, space_records, tables_with_graphs, vector_table
from rag_pipeline.index.sql_files import queries
from rag_pipeline.model import EmbeddingSpace

_FEW_ROWS = 1_000
"""Dead rows that are not worth a vacuum."""
_PATIENCE_S = 60.0
_PAGE = 8192
_FILLED = 0.9  # of a B-tree's page when it is built
_LEFTOVERS = ("_ccnew", "_ccold")
_KNOWS_FLUSH = 150_000  # version of the server


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table's size with its indexes, and its rows as the statistics count them."""

    name: str
    bytes: int
    rows: int
    dead: int
    unknown: bool
    """No statistics: the planner guesses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Waste:
    """When an index is built again."""

    share: float
    """Of its pages."""
    min_bytes: int
    """Smaller indexes never are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """One thing that was put in order, and why."""

    what: str
    why: str
    bytes: int = 0
    """Saved."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Index:
    name: str
    table: str
    kind: str
    valid: bool
    bytes: int
    entries: int
    key_bytes: int | None
    in_work: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Graph:
    table: str
    space: EmbeddingSpace


def tables(connection: Connection) -> list[Table]:
    """Our tables, by name."""
    if connection.info.server_version >= _KNOWS_FLUSH:
        connection.execute(queries("maintenance")["flush_statistics"])
    rows = connection.execute(queries("maintenance")["tables"])
    return [Table(name=r[0], bytes=r[1], rows=r[2], dead=r[3], unknown=r[4]) for r in rows]


def vacuum_tables(connection: Connection, *, dead_share: float) -> Iterator[Done]:
    """Vacuum and analyze the tables that have many dead rows, or no statistics at all."""
    for table in tables(connection):
        if table.dead > max(_FEW_ROWS, dead_share * table.rows):
            why = f"{table.dead:,} dead rows beside {table.rows:,}"
        elif table.unknown and table.rows > _FEW_ROWS:
            why = "no statistics of it"
        else:
            continue
        with _patient(connection):
            _vacuum(connection, table.name)
        after = {t.name: t.bytes for t in tables(connection)}.get(table.name, table.bytes)
        yield Done(what=f"vacuum {table.name}", why=why, bytes=table.bytes - after)


def mend_graphs(connection: Connection, *, waste: Waste) -> Iterator[Done]:
    """`mend_indexes` for the graphs of embedding spaces, and the active one's is built if there is none.

    Before the vacuum, which walks a graph with many dead vectors slowly.
    """
    yield from _mend(connection, {"hnsw"}, waste=waste)
    active = active_space(connection)
    if active is not None and ensure_graph(connection, active):
        yield Done(what=f"build vectors_{active.space_id}_hnsw", why="the active embedding space had no graph")


def mend_indexes(connection: Connection, *, waste: Waste) -> Iterator[Done]:
    """Remove what a killed rebuild left, and build again what is invalid or wasteful; after the vacuum, which counts.

    Searches and writes go on. An index that somebody holds for longer than we wait is left as it is, and so said.
    """
    others = {index.kind for index in _indexes(connection)} - {"hnsw"}
    yield from _mend(connection, others, waste=waste)


def _mend(connection: Connection, kinds: set[str], *, waste: Waste) -> Iterator[Done]:
    graphs = _graphs(connection)
    for index in _indexes(connection):
        if index.in_work or index.kind not in kinds:
            continue
        if not index.valid and index.name.rstrip("0123456789").endswith(_LEFTOVERS):
            yield _apply(connection, "drop_index", index, why="left by a rebuild that was stopped")
        elif not index.valid:
            yield _apply(connection, "reindex", index, why="it was invalid", graph=graphs.get(index.name))
        elif index.bytes < waste.min_bytes:
            continue
        elif (wasted := _wasted(connection, index, graphs.get(index.name))) > waste.share:
            why = f"{wasted:.0%} of its pages were waste"
            yield _apply(connection, "reindex", index, why=why, graph=graphs.get(index.name))


def _graphs(connection: Connection) -> dict[str, _Graph]:
    """The graph of each table of vectors, by the name of its index."""
    return {
        f"{table}_hnsw": _Graph(table=table, space=record.space)
        for record in space_records(connection)
        for table in tables_with_graphs(vector_table(record.space), partitions=record.space.partitions)
    }


def _wasted(connection: Connection, index: _Index, graph: _Graph | None) -> float:
    """The share of the index that its entries do not need; 0 where that is unknown."""
    if index.kind == "hnsw" and graph is not None:
        needed = float(needed_bytes(connection, graph.space, graph.table))
    elif index.kind == "btree" and index.entries >= 0 and index.key_bytes:
        needed = index.entries * (aligned(8 + index.key_bytes) + 4) / _FILLED
    else:
        return 0.0
    return max(0.0, 1 - (needed + _PAGE) / max(index.bytes, 1))


def _apply(connection: Connection, name: str, index: _Index, *, why: str, graph: _Graph | None = None) -> Done:
    """`graph`: if it is one."""
    identifier = sql.Identifier(index.name)
    what = f"{'drop' if name == 'drop_index' else 'rebuild'} {index.name}"
    try:
        with _patient(connection):
            build_in_memory(
                connection, sql.SQL(queries("maintenance")[name]).format(index=identifier),
                graph=building_memory(connection, graph.space, graph.table) if graph else 0,
            )  # fmt: skip
    except psycopg.errors.LockNotAvailable:
        return Done(what=f"put off: {what}", why=f"{why}, but something else holds {index.table}")
    (after,) = connection.execute(
        queries("maintenance")["index_size"], {"index": f'rag."{index.name}"'}
    ).fetchone() or (0,)
    return Done(what=what, why=why, bytes=index.bytes - (after or 0))


def _vacuum(connection: Connection, table: str) -> None:
    allow_memory(connection)
    connection.execute(sql.SQL(queries("maintenance")["vacuum"]).format(name=sql.Identifier(table)))


def _indexes(connection: Connection) -> list[_Index]:
    rows = connection.execute(queries("maintenance")["indexes"])
    return [
        _Index(
            name=r[0], table=r[1], kind=r[2], valid=r[3], bytes=r[4], entries=r[5], key_bytes=r[6], in_work=r[7],
        )
        for r in rows
    ]  # fmt: skip


@contextmanager
def _patient(connection: Connection) -> Iterator[None]:
    """What runs outside of transactions waits for locks, but not for ever."""
    wait_at_most(connection, _PATIENCE_S, in_transaction=False)
    try:
        yield
    finally:
        wait_at_most(connection, 0, in_transaction=False)
