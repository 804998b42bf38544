"""A bounded pool of connections for a service: opened when they are needed, replaced when the server was restarted."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Final, Protocol, TypeVar

import psycopg
from psycopg.conninfo import make_conninfo
from psycopg.rows import TupleRow
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout, TooManyRequests

from rag_pipeline.errors import DatabaseUnavailable
from rag_pipeline.index.database import Connection, connect_with_vectors, describe
from rag_pipeline.index.sql_files import queries

R = TypeVar("R")
PATIENCE_S: Final = 2.0
_SHORT_PATIENCE_S: Final = 0.2
_DOUBT_S: Final = 1.0
"""After somebody waited in vain, the others wait shortly: a server that is away must not gather a crowd."""
_RETRY_S: Final = 3.0
"""So long a lost connection is tried again; after that the next who wants one starts anew, without waiting longer."""
_IDLE_S: Final = 300.0
_KEEPALIVE: Final = {"keepalives_idle": 15, "keepalives_interval": 5, "keepalives_count": 3, "tcp_user_timeout": 30_000}
"""A server that is gone without a word is given up after half a minute, not after hours."""


class Connections(Protocol):
    """What gives a connection for a while; see `Pool.connection`."""

    def connection(self, *, patience_s: float = PATIENCE_S) -> AbstractContextManager[Connection]:
        """A connection that answers and speaks `halfvec`."""


class _Pooled(psycopg.Connection[TupleRow]):
    """As `connect_with_vectors` makes them; the pool opens its connections by this method."""

    @classmethod
    def connect(cls, conninfo: str = "", *, statement_s: float, **_: object) -> Connection:  # type: ignore[override]
        connection = connect_with_vectors(make_conninfo(conninfo, **_KEEPALIVE))
        connection.execute(queries("database")["limit_statements"], {"milliseconds": str(round(1000 * statement_s))})
        return connection


class Pool:
    """At most `size` connections; may be used from several threads. Nothing is connected before somebody asks.

    `statement_s`: so long one statement may take; longer ones fail.
    """

    def __init__(self, url: str, *, size: int, statement_s: float) -> None:
        self._where = url
        self._in_doubt_until = 0.0
        self._is_closed = False
        self._pool = ConnectionPool(
            url, connection_class=_Pooled, kwargs={"statement_s": statement_s}, min_size=0, max_size=size, open=False,
            check=ConnectionPool.check_connection, timeout=PATIENCE_S, reconnect_timeout=_RETRY_S, max_idle=_IDLE_S,
            name="rag-pipeline",
        )  # fmt: skip

    @contextmanager
    def connection(self, *, patience_s: float = PATIENCE_S) -> Iterator[Connection]:
        """A connection that answers and speaks `halfvec`, as `connected` gives it; it goes back at the end.

        Raises:
            DatabaseUnavailable: the database did not answer within `patience_s`, or the pool is closed.
        """
        if time.monotonic() < self._in_doubt_until:
            patience_s = min(patience_s, _SHORT_PATIENCE_S)
        try:
            if self._is_closed:
                raise PoolClosed("it was closed")
            self._pool.open()
            connection = self._pool.getconn(timeout=patience_s)
            self._in_doubt_until = 0.0
        except (PoolTimeout, PoolClosed, TooManyRequests, psycopg.OperationalError) as error:
            self._in_doubt_until = time.monotonic() + _DOUBT_S
            raise DatabaseUnavailable(
                f"PostgreSQL at {describe(self._where)} does not answer: check that it runs and that it has the schema "
                "(`rag-pipeline status`)"
            ) from error
        try:
            yield connection
        finally:
            self._pool.putconn(connection)

    def close(self) -> None:
        """Give up all connections; those in use are closed when they come back."""
        self._is_closed = True
        self._pool.close()


def connected_twice(connect: Callable[[], AbstractContextManager[Connection]], work: Callable[[Connection], R]) -> R:
    """What `work` makes of a connection, and of another one where the first was lost on the way.

    Or where a standby had to choose between the question and what the primary had done meanwhile: asked again, the
    question sees the newer state. `work` only reads.
    """
    connection: Connection | None = None
    try:
        with connect() as connection:
            return work(connection)
    except (psycopg.errors.SerializationFailure, psycopg.errors.DeadlockDetected):
        pass
    except (psycopg.OperationalError, psycopg.InterfaceError):
        if connection is None or not connection.closed:
            raise
    with connect() as connection:
        return work(connection)
