"""The vector leg: the chunks nearest to a question.

Exact over the matching chunks while they are few, the HNSW graph with an iterative scan when they are many; a scan of
the vectors that finds fewer chunks than it was asked for is repeated by way of the chunks, so that k rows come back
whenever k exist.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Final, Literal

from psycopg import sql

from rag_pipeline.index.codes import code_function
from rag_pipeline.index.database import Connection
from rag_pipeline.index.spaces import vector_table
from rag_pipeline.index.sql_files import queries
from rag_pipeline.model import EmbeddingSpace

Way = Literal["exact", "exact_everywhere", "graph", "graph_everywhere"]
_BY_CODES: Final = {"graph": "graph_by_codes", "graph_everywhere": "graph_everywhere_by_codes"}


def ask_nearest(
    connection: Connection, values: Mapping[str, Any], space: EmbeddingSpace, *, way: Way
) -> Callable[[], list[tuple[int, float]]]:
    """Numbers and cosine similarities of the nearest chunks, at most `limit` of the values, best first.

    They are waited for when they are wanted: in a pipeline, the server looks meanwhile.
    """
    asked = connection.execute(statement(way, space), {**values, "vectors": f"rag.{vector_table(space)}"})

    def answer() -> list[tuple[int, float]]:
        found = asked.fetchall()
        if way == "exact" or (way == "exact_everywhere" and len(found) == values["limit"]):
            return [(row[0], 1.0 - row[1]) for row in found]
        if len(found) < values["limit"]:
            # Of the nearest by their codes too many stand in no chunk: walk on past those, before all are read.
            further: Way = "graph" if way == "graph_everywhere" and space.coded else "exact"
            return ask_nearest(connection, values, space, way=further)()
        # A relaxed scan returns the right rows only roughly in order.
        return sorted(((row[0], 1.0 - row[1]) for row in found), key=lambda pair: (-pair[1], pair[0]))

    return answer


def ask_similarities(
    connection: Connection, values: Mapping[str, Any], space: EmbeddingSpace, numbers: Sequence[int]
) -> Callable[[], dict[int, float]]:
    """Cosine similarities of these chunks, as far as they have a vector; waited for when they are wanted."""
    asked = connection.execute(statement("distances", space), {**values, "numbers": list(numbers)})
    return lambda: {row[0]: 1.0 - row[1] for row in asked.fetchall()}


@cache
def with_filters(name: str) -> bytes:
    """A query of `search.sql` with the filters in it."""
    # As bytes, because composing a statement takes longer than asking some of them.
    return sql.SQL(queries("search")[name]).format(matching=_matching()).as_bytes()


def statement(name: str, space: EmbeddingSpace) -> bytes:
    """A query of `search.sql` with the space's own table, its codes and the filters named in it."""
    return _of_table(_BY_CODES.get(name, name) if space.coded else name, vector_table(space))


@cache
def _of_table(name: str, table: str) -> bytes:
    return sql.SQL(queries("search")[name]).format(
        matching=_matching(), vectors=sql.Identifier(table), code=sql.Identifier(code_function(table))
    ).as_bytes()  # fmt: skip


def _matching() -> sql.SQL:
    return sql.SQL(queries("search")["matching"])
