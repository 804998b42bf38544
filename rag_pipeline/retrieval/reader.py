"""A transaction of the reader, who owns nothing and sees one tenant and the scopes that were named."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import psycopg
from psycopg.pq import TransactionStatus

from rag_pipeline.index.database import Connection
from rag_pipeline.index.sql_files import queries
from rag_pipeline.model import EmbeddingSpace

_LEAST_NEIGHBOURS: Final = 50
_OF_CODES: Final = 2
"""So many times as many are kept in sight of a graph over codes: it takes as long, and finds as many of the nearest."""


@contextmanager
def reading(
    connection: Connection,
    *,
    tenant: str,
    scopes: Sequence[str] = (),
    space: EmbeddingSpace | None = None,
    neighbours: int = _LEAST_NEIGHBOURS,
    filtered: bool = True,
) -> Iterator[None]:
    """One state of the index, as this tenant sees it; role and settings end with the transaction, however it ends.

    `neighbours` is how many the graph of `space` keeps in sight while it is walked (hnsw.ef_search), more where it is a
    large one. Statements with filters (`filtered`) are planned for their values each time; others are planned once,
    which is a quarter of what they cost. What was asked inside may be fetched until the connection is used again.

    Raises:
        psycopg.ProgrammingError: the connection is in a transaction already, whose state and role are not ours.
    """
    vectors = f"rag.vectors_{space.space_id}" if space else None
    wider = _OF_CODES if space and space.coded else 1
    with _one_state(connection):
        connection.execute(
            queries("search")["enter"],
            {
                "tenant": tenant, "scopes": list(scopes), "vectors": vectors,
                "neighbours": wider * max(_LEAST_NEIGHBOURS, neighbours),
                "plans": "force_custom_plan" if filtered else "auto",
            },
        )  # fmt: skip
        yield


@contextmanager
def _one_state(connection: Connection) -> Iterator[None]:
    """A transaction that only reads, in a pipeline: what nobody waits for travels with what comes next.

    BEGIN goes with the first question, COMMIT with the last. A `connection.transaction()` in a pipeline waits at its
    beginning once and at its end three times, which is half of a search's waiting.
    """
    status = connection.info.transaction_status
    if status != TransactionStatus.IDLE:
        raise psycopg.ProgrammingError(
            f"a search begins a transaction of its own, and this connection is in one ({status.name}): end that first"
        )
    try:
        with connection.pipeline():
            # What a search finds is there when its text is fetched.
            connection.execute(queries("search")["begin"], prepare=False)
            yield
            connection.execute(queries("search")["commit"], prepare=False)
    finally:
        # After an error the transaction is still there, and with it the role and the tenant.
        if not connection.closed and connection.info.transaction_status != TransactionStatus.IDLE:
            _leave(connection)


def _leave(connection: Connection) -> None:
    """End a transaction that went wrong; a connection that cannot even do that serves nobody any more."""
    try:
        connection.rollback()
    except psycopg.Error:
        connection.close()
