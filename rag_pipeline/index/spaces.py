"""Embedding spaces: which exist, which is active, and the vector table of each with its HNSW graph.

Switching from one to another, and dropping one, is `promotion`'s business.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import numpy as np
import psycopg
from numpy.typing import NDArray
from psycopg import sql
from psycopg.types.json import Jsonb

from rag_pipeline.errors import DimensionMismatch, SpaceUnavailable
from rag_pipeline.index.claims import Claims
from rag_pipeline.index.database import Connection
from rag_pipeline.index.sql_files import queries
from rag_pipeline.index.vector_rows import read_vectors, vector_rows
from rag_pipeline.model import EmbeddingSpace, Graph, Json

_CODED_DIMENSIONS: Final = range(256, 3_301)
"""Of which a graph is built over codes: of fewer they are too much alike, with more a row does not fit its page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpaceRecord:
    """A space with its history; all times are UTC."""

    space: EmbeddingSpace
    created_at: datetime
    activated_at: datetime | None
    """When it last became the one that answers questions."""
    retired_at: datetime | None
    """When it last stopped being that."""


def find_space(
    connection: Connection, *, provider: str, model: str, recipe: str, dimensions: int | None
) -> EmbeddingSpace | None:
    """The space of a model; `dimensions` None: whatever length it has."""
    row = connection.execute(
        queries("spaces")["find"],
        {"provider": provider, "model": model, "recipe": recipe, "dimensions": dimensions},
    ).fetchone()
    return _space(row) if row else None


def create_space(
    connection: Connection, *, provider: str, model: str, recipe: str, dimensions: int,
    config: Mapping[str, Json] | None = None, partitions: int = 1, graph: Graph | None = None,
) -> EmbeddingSpace:  # fmt: skip
    """The space of a model, made with its vector table if there is none yet; one that is there keeps its `config`.

    `partitions`: so many tables take its vectors, each with a graph of its own. `graph`: by default over codes, unless
    they would be too short or too long.

    Raises:
        SpaceUnavailable: codes are wanted of vectors that are too long for them.
    """
    require_room(graph, dimensions=dimensions)
    values = {"provider": provider, "model": model, "recipe": recipe, "dimensions": dimensions}
    made = {"config": _json(config), "partitions": partitions, "graph": graph or graph_for(dimensions)}
    with connection.transaction():
        connection.execute(queries("spaces")["create"], values | made)
    space = find_space(connection, provider=provider, model=model, recipe=recipe, dimensions=dimensions)
    assert space is not None
    return space


def active_space(connection: Connection) -> EmbeddingSpace | None:
    """The space that queries use."""
    return ask_active_space(connection)()


def ask_active_space(connection: Connection) -> Callable[[], EmbeddingSpace | None]:
    """The space that queries use; waited for when it is wanted."""
    asked = connection.execute(queries("spaces")["active"])

    def answer() -> EmbeddingSpace | None:
        row = asked.fetchone()
        return _space(row) if row else None

    return answer


def space_records(connection: Connection) -> list[SpaceRecord]:
    """Every space there is, oldest first."""
    return [
        SpaceRecord(space=_space(row[:10]), created_at=row[10], activated_at=row[11], retired_at=row[12])
        for row in connection.execute(queries("spaces")["all"])
    ]


def building_spaces(connection: Connection) -> list[EmbeddingSpace]:
    """The spaces that are fed beside the active one."""
    return [record.space for record in space_records(connection) if record.space.status == "building"]


def numbered_space(connection: Connection, space_id: int) -> EmbeddingSpace:
    """The space with this number.

    Raises:
        SpaceUnavailable: there is none.
    """
    spaces = [record.space for record in space_records(connection)]
    for space in spaces:
        if space.space_id == space_id:
            return space
    there = ", ".join(f"{space.space_id} ({space.provider} {space.model}, {space.status})" for space in spaces)
    hint = f"choose from {there}" if there else "none is made yet"
    raise SpaceUnavailable(f"there is no embedding space {space_id}: {hint}")


def remember_config(connection: Connection, space: EmbeddingSpace, config: Mapping[str, Json]) -> bool:
    """Keep the settings that make a space's vectors; False when they are known."""
    values = {"space": space.space_id, "config": _json(config)}
    return connection.execute(queries("spaces")["remember"], values).rowcount == 1


def resume(connection: Connection, space: EmbeddingSpace) -> bool:
    """Feed a retired space again from now on; False when it was not retired."""
    return connection.execute(queries("spaces")["resume"], {"space": space.space_id}).rowcount == 1


def live_texts(connection: Connection, tenant: str, hashes: Sequence[UUID]) -> set[UUID]:
    """Those of the texts that the index shows to this tenant."""
    rows = connection.execute(queries("spaces")["live"], {"tenant": tenant, "hashes": list(hashes)})
    return {row[0] for row in rows}


def embedded_texts(connection: Connection, space: EmbeddingSpace, hashes: Sequence[UUID]) -> set[UUID]:
    """Those of the texts that are settled in a space, whoever brought them: with a vector, or unreadable."""
    return {row[0] for row in connection.execute(statement("embedded", space), {"hashes": list(hashes)})}


def unreadable_texts(connection: Connection, space: EmbeddingSpace) -> int:
    """How many texts a space's model cannot read, those that are gone included; reads all of its rows."""
    row = connection.execute(statement("count_unreadable", space)).fetchone()
    return int(row[0]) if row else 0


@contextmanager
def still_there(space: EmbeddingSpace) -> Iterator[None]:
    """Around work with a space that somebody may drop meanwhile.

    Raises:
        SpaceUnavailable: somebody did.
    """
    try:
        yield
    except (psycopg.errors.UndefinedTable, psycopg.errors.ForeignKeyViolation) as error:
        raise SpaceUnavailable(f"embedding space {space.space_id} ({space.model}) was dropped meanwhile") from error


def activate(connection: Connection, space: EmbeddingSpace) -> bool:
    """Let queries use this space from now on; the one before is kept as retired. False when it already was active."""
    with connection.transaction():
        connection.execute(queries("spaces")["lock"])
        connection.execute(queries("spaces")["retire_active"], {"space": space.space_id})
        return connection.execute(queries("spaces")["activate"], {"space": space.space_id}).rowcount == 1


def statement(name: str, space: EmbeddingSpace, *, file: str = "spaces") -> sql.Composed:
    """A query with the space's own table and index named in it."""
    return statement_of(name, vector_table(space), file=file)


def statement_of(name: str, table: str, *, file: str) -> sql.Composed:
    """The same for a table of vectors, which may be a part of a space's own."""
    return sql.SQL(queries(file)[name]).format(vectors=sql.Identifier(table), index=sql.Identifier(f"{table}_hnsw"))


def vector_table(space: EmbeddingSpace) -> str:
    """The name of the table that a space's vectors are written to and asked from."""
    return f"vectors_{space.space_id}"


def copy_table(table: str) -> str:
    """The name of the tables that are to take a table's place; see `partitioning`."""
    return f"{table}_new"


def graph_for(dimensions: int) -> Graph:
    """What the graph of a new space is built over, unless somebody says so."""
    return "codes" if dimensions in _CODED_DIMENSIONS else "vectors"


def require_room(graph: Graph | None, *, dimensions: int) -> None:
    """Raises `SpaceUnavailable` for codes of vectors so long that both do not fit a page of the database."""
    most = _CODED_DIMENSIONS[-1]
    if graph == "codes" and dimensions > most:
        raise SpaceUnavailable(
            f"vectors of {dimensions:,} dimensions leave no room for codes beside them, {most:,} are the most: leave "
            "out --graph, or ask the model for shorter vectors (`dimensions`)"
        )


def tables_with_graphs(table: str, *, partitions: int) -> list[str]:
    """The tables that the vectors of a table really lie in: its partitions, or itself."""
    return [f"{table}_p{number}" for number in range(partitions)] if partitions > 1 else [table]


class SpaceVectors:
    """The vectors of one tenant in one space: what is known, what is new, and what its model cannot read.

    With `claims`, texts are claimed before they are embedded; see `claim`.
    """

    def __init__(
        self, connection: Connection, space: EmbeddingSpace, *, tenant: str, claims: Claims | None = None
    ) -> None:
        self._connection = connection
        self.space = space
        self._tenant = tenant
        self._claims = claims

    def known(self, hashes: Sequence[UUID]) -> set[UUID]:
        """Which of these texts have a vector; vectors of equal texts of other tenants are taken over first."""
        return self._look(hashes, None)[0]

    def claim(self, hashes: Sequence[UUID]) -> tuple[set[UUID], set[UUID]]:
        """Which of these texts have a vector, and which another run embeds just now; the others are this run's."""
        return self._look(hashes, self._claims)

    def settle(self, hashes: Sequence[UUID]) -> None:
        """These need no claim any more: they have a vector by now, or the model refuses them."""
        if self._claims is not None:
            self._claims.done(hashes)

    def set_unreadable(self, hashes: Sequence[UUID]) -> None:
        """The model cannot read these texts: they are settled without a vector, and lose the one that they had."""
        values = {"hashes": list(hashes), "tenant": self._tenant}
        self._connection.execute(statement("set_unreadable", self.space), values)

    def unreadable(self, hashes: Sequence[UUID]) -> set[UUID]:
        """Those of the texts that are settled without a vector."""
        values = {"hashes": list(hashes), "tenant": self._tenant}
        return {row[0] for row in self._connection.execute(statement("unreadable", self.space), values)}

    def fetch(self, hashes: Sequence[UUID]) -> dict[UUID, NDArray[np.float16] | None]:
        """The vectors of these texts, as far as they are settled, each of shape (dimensions,); None: unreadable."""
        values = {"hashes": list(hashes), "tenant": self._tenant}
        with self._connection.cursor(binary=True) as cursor:
            row = cursor.execute(statement("fetch", self.space), values).fetchone()
        packed, without = row or (b"", b"")
        found: dict[UUID, NDArray[np.float16] | None] = {**read_vectors(packed, dimensions=self.space.dimensions)}
        found |= {UUID(bytes=without[at : at + 16]): None for at in range(0, len(without), 16)}
        return found

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
        rows = vector_rows(hashes, self._tenant.encode(self._connection.info.encoding), vectors)
        try:
            with self._connection.transaction():
                self._copy(rows, into="copy_vectors")
            return len(hashes)
        except psycopg.errors.UniqueViolation:
            # Another run was faster with one of them, or it is there twice.
            return self._store_missing(rows)

    def _look(self, hashes: Sequence[UUID], claims: Claims | None) -> tuple[set[UUID], set[UUID]]:
        known = self._known(hashes)
        missing = [text_hash for text_hash in hashes if text_hash not in known]
        if not missing:
            return known, set()
        # Before it is asked again: what another run has stored before it gave up its claim is then seen.
        own = claims.take(missing) if claims is not None else set(missing)
        self._connection.execute(statement("adopt", self.space), {"hashes": missing, "tenant": self._tenant})
        # Asked again even when nothing was adopted: another process may have done it meanwhile.
        known |= self._known(missing)
        self.settle([text_hash for text_hash in own if text_hash in known])
        return known, set(missing) - known - own

    def _known(self, hashes: Sequence[UUID]) -> set[UUID]:
        values = {"hashes": list(hashes), "tenant": self._tenant}
        return {row[0] for row in self._connection.execute(statement("known", self.space), values)}

    def _store_missing(self, rows: bytes) -> int:
        self._connection.execute(queries("spaces")["stage"])
        with self._connection.transaction():
            self._copy(rows, into="copy_staged")
            return self._connection.execute(statement("insert", self.space)).rowcount

    def _copy(self, rows: bytes, *, into: str) -> None:
        with self._connection.cursor() as cursor, cursor.copy(statement(into, self.space)) as copy:
            copy.write(rows)


def _space(row: Sequence[Any]) -> EmbeddingSpace:
    space_id, provider, model, dimensions, recipe, status, config, partitions, graph, coded = row
    return EmbeddingSpace(
        space_id=space_id, provider=provider, model=model, dimensions=dimensions, recipe=recipe, status=status,
        config=config, partitions=partitions, graph=graph, coded=coded,
    )  # fmt: skip


def _json(config: Mapping[str, Json] | None) -> Jsonb | None:
    return None if config is None else Jsonb(dict(config))
