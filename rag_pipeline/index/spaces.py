"""Embedding spaces: which exist, which is active, and the vector table of each with its HNSW graph."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector
from psycopg import sql

from rag_pipeline.errors import DimensionMismatch
from rag_pipeline.index.database import Connection
from rag_pipeline.index.sql_files import queries
from rag_pipeline.model import EmbeddingSpace


def find_space(
    connection: Connection, *, provider: str, model: str, recipe: str, dimensions: int | None
) -> EmbeddingSpace | None:
    """The space of a model; `dimensions` None: whatever length it has."""
    row = connection.execute(
        queries("spaces")["find"],
        {"provider": provider, "model": model, "recipe": recipe, "dimensions": dimensions},
    ).fetchone()
    return _space(row) if row else None


def create_space(connection: Connection, *, provider: str, model: str, recipe: str, dimensions: int) -> EmbeddingSpace:
    """The space of a model, made with its vector table if there is none yet."""
    values = {"provider": provider, "model": model, "recipe": recipe, "dimensions": dimensions}
    with connection.transaction():
        connection.execute(queries("spaces")["create"], values)
    space = find_space(connection, provider=provider, model=model, recipe=recipe, dimensions=dimensions)
    assert space is not None
    return space


def active_space(connection: Connection) -> EmbeddingSpace | None:
    """The space that queries use."""
    row = connection.execute(queries("spaces")["active"]).fetchone()
    return _space(row) if row else None


def activate(connection: Connection, space: EmbeddingSpace) -> bool:
    """Let queries use this space from now on; the one before is kept as retired. False when it already was active."""
    with connection.transaction():
        connection.execute(queries("spaces")["lock"])
        connection.execute(queries("spaces")["retire_active"], {"space": space.space_id})
        return connection.execute(queries("spaces")["activate"], {"space": space.space_id}).rowcount == 1


def ensure_graph(connection: Connection, space: EmbeddingSpace) -> bool:
    """Build the space's HNSW index unless it has one or holds nothing yet; True when it was built.

    After the bulk load, because building it row by row is an order of magnitude slower; from then on it is kept up.
    """
    if not _lacks_graph(connection, space):
        return False
    with connection.transaction():
        # One build at a time: PostgreSQL would let two runs build the same index, and then refuse the second.
        connection.execute(statement("lock_vectors", space))
        if not _lacks_graph(connection, space):
            return False
        connection.execute("SET LOCAL maintenance_work_mem = '512MB'")
        connection.execute("SET LOCAL max_parallel_maintenance_workers = 4")
        connection.execute(statement("build_graph", space))
    # The planner chooses between graph and exact scan by statistics: give it some before the first query.
    connection.execute(statement("analyze", space))
    return True


def _lacks_graph(connection: Connection, space: EmbeddingSpace) -> bool:
    present = connection.execute(queries("spaces")["has_graph"], {"table": f"rag.vectors_{space.space_id}"}).fetchone()
    empty = connection.execute(statement("is_empty", space)).fetchone()
    return not (present and present[0]) and not (empty and empty[0])


def statement(name: str, space: EmbeddingSpace) -> sql.Composed:
    """A query of `spaces.sql` with the space's own table and index named in it."""
    return sql.SQL(queries("spaces")[name]).format(
        vectors=sql.Identifier(f"vectors_{space.space_id}"), index=sql.Identifier(f"vectors_{space.space_id}_hnsw")
    )


class SpaceVectors:
    """The vectors of one tenant in one space: what is known, what is new."""

    def __init__(self, connection: Connection, space: EmbeddingSpace, *, tenant: str) -> None:
        self._connection = connection
        self.space = space
        self._tenant = tenant

    def known(self, hashes: Sequence[UUID]) -> set[UUID]:
        """Which of these texts have a vector; vectors of equal texts of other tenants are taken over first."""
        values = {"hashes": list(hashes), "tenant": self._tenant}
        known = {row[0] for row in self._connection.execute(statement("known", self.space), values)}
        missing = [text_hash for text_hash in hashes if text_hash not in known]
        if missing:
            values = {"hashes": missing, "tenant": self._tenant}
            self._connection.execute(statement("adopt", self.space), values)
            # Asked again even when nothing was adopted: another process may have done it meanwhile.
            known |= {row[0] for row in self._connection.execute(statement("known", self.space), values)}
        return known

    def fetch(self, hashes: Sequence[UUID]) -> dict[UUID, NDArray[np.float16]]:
        """The vectors of these texts, as far as they are known; each of shape (dimensions,)."""
        values = {"hashes": list(hashes), "tenant": self._tenant}
        with self._connection.cursor(binary=True) as cursor:
            rows = cursor.execute(statement("fetch", self.space), values)
            return {row[0]: np.asarray(row[1].to_numpy(), dtype=np.float16) for row in rows}

    def store(self, hashes: Sequence[UUID], vectors: NDArray[np.floating]) -> int:
        """Keep vectors, of shape (len(hashes), dimensions), at half precision; returns how many were new.

        Raises:
            DimensionMismatch: the vectors are of another length than the space holds.
        """
        if vectors.ndim != 2 or vectors.shape[1] != self.space.dimensions:
            raise DimensionMismatch(
                f"model {self.space.model!r} returned {vectors.shape[-1]} dimensions, its embedding space holds "
                f"{self.space.dimensions}: set `dimensions = {self.space.dimensions}` under [embedding], or name the "
                "model under which the other length shall have a space of its own"
            )
        halves = vectors.astype(np.float16)
        sql_of = queries("spaces")
        self._connection.execute(sql_of["stage"])
        with self._connection.transaction(), self._connection.cursor() as cursor:
            with cursor.copy(sql_of["copy"]) as copy:
                copy.set_types(("uuid", "halfvec"))
                for text_hash, vector in zip(hashes, halves, strict=True):
                    copy.write_row((text_hash, HalfVector(vector)))
            return cursor.execute(statement("insert", self.space), {"tenant": self._tenant}).rowcount


def _space(row: Sequence[object]) -> EmbeddingSpace:
    space_id, provider, model, dimensions, recipe, status = row
    return EmbeddingSpace(
        space_id=int(str(space_id)), provider=str(provider), model=str(model), dimensions=int(str(dimensions)),
        recipe=str(recipe), status=str(status),
    )  # fmt: skip
