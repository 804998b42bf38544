"""Short codes of a space's vectors, which its graph may be built over instead: three bits for each dimension.

A bit says whether the unit vector lies above a threshold, of which each dimension has three, so that the distance of
two codes (Hamming) counts thresholds between two vectors: thermometer codes, scalar quantisation to four levels. A
walk by them finds neighbours roughly; the nearest are then compared by the vectors themselves, as with
https://github.com/pgvector/pgvector#binary-quantization. Codes are made by a function of the space's own in the
database (`rag.create_code` in schema.sql), which holds the thresholds, and kept beside the vectors in a generated
column: who writes a vector need not know of it.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray
from psycopg import sql

from rag_pipeline.index.database import Connection
from rag_pipeline.index.spaces import statement_of, vector_table
from rag_pipeline.index.sql_files import queries
from rag_pipeline.model import EmbeddingSpace

LEVELS: Final = (-0.8, 0.0, 0.8)
"""Thresholds, in standard deviations from the mean of a dimension (docs/performance.md, A graph over codes)."""
ENOUGH: Final = 1_000
"""Vectors, before which a space gets neither codes nor a graph over them: searches of so few compare all of them."""
_SAMPLE: Final = 4_000
_FEW: Final = 64
"""Texts that say too little about what others will be like."""
_TOLERANCE: Final = 0.01


def bits_of(dimensions: int) -> int:
    """Length of a code."""
    return len(LEVELS) * dimensions


def code_function(table: str) -> str:
    """The name of the function that makes codes of the vectors of a space's table."""
    return f"{table}_code"


def ensure_codes(connection: Connection, space: EmbeddingSpace, table: str) -> None:
    """Give each vector of a table its code, unless they have one; new ones get theirs by themselves from then on.

    `table`: the space's own, or a copy of it. Inside a transaction; searches wait while its rows are written anew, and
    one that began before finds none of them. The thresholds are taken from a sample of the space's vectors, once.
    """
    # In this order, as who drops a space takes them; and one at a time makes the function.
    connection.execute(queries("spaces")["lock_for_a_change"])
    connection.execute(statement_of("lock_vectors", table, file="graph"))
    if not _has_function(connection, space):
        _create_function(connection, space)
    connection.execute(_statement("add_column", space, table))


def drop_codes(connection: Connection, space: EmbeddingSpace) -> None:
    """Remove what makes the codes of a space, once no table holds any."""
    connection.execute(_statement("drop", space, vector_table(space)))
    connection.execute(queries("codes")["trained"], {"vectors": None, "space": space.space_id})


def thresholds_of(sample: NDArray[np.floating], *, dimensions: int) -> list[NDArray[np.float16]]:
    """Thresholds of each dimension by level, each of shape (dimensions,), ascending; `sample` of shape (n, dimensions).

    Of too few texts nothing is taken: a unit vector's values lie around 0, one over the root of their number apart.
    """
    if len(sample) < _FEW:
        mean, spread = np.zeros(dimensions), np.full(dimensions, dimensions**-0.5)
    else:
        norms = np.linalg.norm(sample, axis=1, keepdims=True)
        units = sample / np.where(norms > 0, norms, 1.0)
        mean, spread = units.mean(axis=0), units.std(axis=0)
    return [np.asarray(mean + level * spread, dtype=np.float16) for level in LEVELS]


def _create_function(connection: Connection, space: EmbeddingSpace) -> None:
    table = vector_table(space)
    with connection.cursor(binary=True) as cursor:
        rows = cursor.execute(_statement("sample", space, table), {"most": _SAMPLE}).fetchall()
    sample = np.asarray([row[0].to_numpy() for row in rows], dtype=np.float32).reshape(len(rows), space.dimensions)
    thresholds = [_text(level) for level in thresholds_of(sample, dimensions=space.dimensions)]
    values = {"name": code_function(table), "thresholds": thresholds, "normalised": _are_units(sample)}
    connection.execute(queries("codes")["create"], values)
    connection.execute(queries("codes")["trained"], {"vectors": len(sample), "space": space.space_id})


def _are_units(sample: NDArray[np.floating]) -> bool:
    """One that is not after all gets another code than it should have, which is no more than a detour."""
    norms = np.linalg.norm(sample, axis=1)
    return len(sample) >= _FEW and bool(np.all(np.abs(norms[norms > 0] - 1) < _TOLERANCE))


def _text(values: NDArray[np.float16]) -> str:
    return f"[{','.join(str(float(value)) for value in values)}]"


def _has_function(connection: Connection, space: EmbeddingSpace) -> bool:
    found = connection.execute(queries("codes")["has"], {"name": code_function(vector_table(space))}).fetchone()
    return bool(found and found[0])


def _statement(name: str, space: EmbeddingSpace, table: str) -> sql.Composed:
    """A copy's codes are made by the space's own function, too."""
    return sql.SQL(queries("codes")[name]).format(
        vectors=sql.Identifier(table), code=sql.Identifier(code_function(vector_table(space))),
        bits=sql.Literal(bits_of(space.dimensions)),
    )  # fmt: skip
