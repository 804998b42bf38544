"""Which embedding space answers questions: switched in one transaction, and only to one that lacks nothing.

A switch and a run that writes documents exclude each other: a run checks each document's vectors in the space that is
active, so that space must stay active until the document is written. Searches are not held up by either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import psycopg

from rag_pipeline.errors import SpaceUnavailable
from rag_pipeline.index.codes import drop_codes
from rag_pipeline.index.database import Connection
from rag_pipeline.index.graph import lacks_graph
from rag_pipeline.index.locks import Lock, exclude, shared, wait_at_most
from rag_pipeline.index.spaces import (
    activate,
    active_space,
    copy_table,
    numbered_space,
    statement,
    statement_of,
    vector_table,
)
from rag_pipeline.index.sql_files import queries
from rag_pipeline.model import EmbeddingSpace

Gate = Callable[[EmbeddingSpace, EmbeddingSpace], Sequence[str] | None]
"""(candidate, active) to what the candidate is worse at than is tolerated, a line each;
None: there is nothing to measure with."""

_PATIENCE_S = 10.0  # for a run that writes to the index


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How far a space is built."""

    texts: int
    """Distinct texts that the index shows, counted for each tenant."""
    missing: int
    """Of these, texts without a vector."""
    vectors: int
    """Vectors held, those of texts that are gone included."""
    bytes: int
    """Of the vectors and their graph, on disk."""
    has_graph: bool
    """Or needs none yet."""
    unreadable: int = 0
    """Texts that its model cannot read, those that are gone included: they have no vector and are not missing."""


@contextmanager
def writing(connection: Connection) -> Iterator[None]:
    """While documents are written: the active space stays the active one. Several runs may write at once."""
    with shared(connection, Lock.WRITING):
        yield


def standing(connection: Connection, space: EmbeddingSpace) -> Standing:
    """Count what a space holds and lacks; reads all chunks' hashes, which takes seconds for a million of them."""
    table = {"table": f"rag.vectors_{space.space_id}"}
    row = connection.execute(statement("size", space, file="promotion"), table).fetchone()
    vectors, size, unreadable = row or (0, 0, 0)
    (texts,) = connection.execute(queries("promotion")["texts"]).fetchone() or (0,)
    missing, built = _missing(connection, space), not lacks_graph(connection, space, vector_table(space))
    return Standing(texts=texts, missing=missing, vectors=vectors, bytes=size, has_graph=built, unreadable=unreadable)


def promote(connection: Connection, space_id: int, *, gate: Gate, force: bool = False) -> EmbeddingSpace:
    """Let questions be answered by another space from now on; returns that space as it is then.

    `force` accepts texts without a vector and worse measures, and asks no gate; never a space that holds nothing.

    Raises:
        SpaceUnavailable: it does not exist, is active already, lacks vectors or its graph, is worse, or a run is
            writing to the index.
    """
    space = numbered_space(connection, space_id)
    if space.status == "active":
        raise SpaceUnavailable(f"embedding space {space_id} is the active one already")
    _require_complete(connection, space, command="promote", force=force)
    active = active_space(connection)
    if active is not None and not force:
        _require_as_good(space, active, gate(space, active))
    return _switch(connection, space, command="promote", force=force)


def rollback(connection: Connection, *, force: bool = False) -> EmbeddingSpace:
    """Back to the space that was active before; rolled back twice, it is where it was.

    Raises:
        SpaceUnavailable: there is none, it lacks vectors, or a run is writing to the index.
    """
    previous = connection.execute(queries("promotion")["previous"]).fetchone()
    if previous is None:
        raise SpaceUnavailable("no embedding space was active before this one: there is nothing to go back to")
    return _switch(connection, numbered_space(connection, previous[0]), command="rollback", force=force)


def drop(connection: Connection, space_id: int) -> EmbeddingSpace:
    """Forget a space: its vectors, its graph, its evaluations and what the pipeline remembers of it.

    Raises:
        SpaceUnavailable: it does not exist, is the active one, or is in use for longer than we wait.
    """
    with _patient(f"embedding space {space_id} is in use"), connection.transaction():
        wait_at_most(connection, _PATIENCE_S)
        connection.execute(queries("spaces")["lock"])
        space = numbered_space(connection, space_id)
        if space.status == "active":
            raise SpaceUnavailable(
                f"embedding space {space_id} is the active one: promote another, or roll back, before you drop it"
            )
        connection.execute(statement_of("drop", copy_table(vector_table(space)), file="partitions"))
        connection.execute(statement("drop_vectors", space, file="promotion"))
        drop_codes(connection, space)
        connection.execute(queries("promotion")["drop_space"], {"space": space_id})
    return space


def _switch(connection: Connection, space: EmbeddingSpace, *, command: str, force: bool) -> EmbeddingSpace:
    with _patient("a run is writing to the index"), connection.transaction():
        wait_at_most(connection, _PATIENCE_S)
        exclude(connection, Lock.WRITING)
        connection.execute(queries("spaces")["lock"])
        space = numbered_space(connection, space.space_id)  # it may have been dropped while we waited
        # Nothing is written from here on, so what is complete now is complete when it answers the first question.
        complete = _require_complete(connection, space, command=command, force=force)
        active = active_space(connection)
        activate(connection, space)
        if active is not None and complete:
            _carry_over(connection, active, space)
        return numbered_space(connection, space.space_id)


def _carry_over(connection: Connection, before: EmbeddingSpace, after: EmbeddingSpace) -> None:
    """A forced switch carries nothing over, so that the next runs find what is missing and embed it."""
    values = {"from": before.space_id, "to": after.space_id}
    connection.execute(queries("promotion")["carry_progress"], values)
    connection.execute(queries("promotion")["carry_parts"], values)


def _require_complete(connection: Connection, space: EmbeddingSpace, *, command: str, force: bool) -> bool:
    """Whether nothing is missing; an error where that is not forced."""
    now = standing(connection, space)
    name = f"embedding space {space.space_id} ({space.provider} {space.model})"
    build = f"run `rag-pipeline spaces build {space.space_id}`, then `rag-pipeline spaces {command}` again"
    if now.texts and not (now.vectors or now.unreadable):
        raise SpaceUnavailable(f"{name} holds no vector yet: {build}")
    if now.missing and not force:
        lacks = f"{name} lacks {now.missing:,} of {now.texts:,} texts"
        raise SpaceUnavailable(f"{lacks}: {build}, or accept that with --force")
    if now.vectors and not now.has_graph:
        raise SpaceUnavailable(f"{name} has no graph yet: {build}")
    return now.missing == 0


def _require_as_good(space: EmbeddingSpace, active: EmbeddingSpace, falls: Sequence[str] | None) -> None:
    if falls is None:
        raise SpaceUnavailable(
            f"nothing shows that embedding space {space.space_id} answers as well as {active.space_id}: "
            "configure labelled questions, or promote it with --force"
        )
    if falls:
        raise SpaceUnavailable(
            f"embedding space {space.space_id} is worse than {active.space_id}: {'; '.join(falls)}. "
            "Promote it with --force if that is accepted"
        )


def _missing(connection: Connection, space: EmbeddingSpace) -> int:
    found = connection.execute(statement("missing", space, file="promotion")).fetchone()
    return int(found[0]) if found else 0


@contextmanager
def _patient(busy: str) -> Iterator[None]:
    try:
        yield
    except psycopg.errors.LockNotAvailable as error:
        raise SpaceUnavailable(f"{busy}: try again when that has ended") from error
