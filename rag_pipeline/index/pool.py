"""A bounded pool of connections for a service: opened when they are needed, replaced when the server was restarted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import psycopg
from psycopg.conninfo import make_conninfo
from psycopg.rows import TupleRow
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout, TooManyRequests

from rag_pipeline.errors import DatabaseUnavailable
from rag_pipeline.index.database import Connection, connect_with_vectors, describe
from rag_pipeline.index.sql_files import queries

_PATIENCE_S: Final = 5.0
_RETRY_S: Final = 3.0
"""So long a lost connection is tried again; after that the next who wants one starts anew, without waiting longer."""
_IDLE_S: Final = 300.0
_KEEPALIVE: Final = {"keepalives_idle": 15, "keepalives_interval": 5, "keepalives_count": 3, "tcp_user_timeout": 30_000}
"""A server that is gone without a word is given up after half a minute, not after hours."""


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
        self._pool = ConnectionPool(
            url, connection_class=_Pooled, kwargs={"statement_s": statement_s}, min_size=0, max_size=size, open=False,
            check=ConnectionPool.check_connection, timeout=_PATIENCE_S, reconnect_timeout=_RETRY_S, max_idle=_IDLE_S,
            name="rag-pipeline",
        )  # fmt: skip

    @contextmanager
    def connection(self, *, patience_s: float = _PATIENCE_S) -> Iterator[Connection]:
        """A connection that answers and speaks `halfvec`, as `connected` gives it; it goes back at the end.

        Raises:
            DatabaseUnavailable: the database did not answer within `patience_s`, or the pool is closed.
        """
        try:
            self._pool.open()
            connection = self._pool.getconn(timeout=patience_s)
        except (PoolTimeout, PoolClosed, TooManyRequests, psycopg.OperationalError) as error:
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
        self._pool.close()
