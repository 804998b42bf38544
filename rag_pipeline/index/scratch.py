"""A database for a while, beside the one that holds the index: what is tried out in it leaves the index alone."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from rag_pipeline.errors import DatabaseUnavailable
from rag_pipeline.index.database import Connection, connect, describe
from rag_pipeline.index.migrations import migrate
from rag_pipeline.index.sql_files import queries

PREFIX: Final = "rag_scratch_"


@contextmanager
def scratch_database(url: str) -> Iterator[str]:
    """The address of a new, migrated database on the same server, dropped at the end whatever happens.

    Whoever uses one holds a lock of its name in the database at `url`; what a killed process has left behind is not
    locked any more, and is dropped by the next one.

    Raises:
        DatabaseUnavailable: no connection, or this user may not create a database.
    """
    with connect(url) as keeper:
        _sweep(keeper)
        name = f"{_prefix(keeper)}{secrets.token_hex(6)}"
        keeper.execute(queries("database")["hold"], {"name": name})
        try:
            _create(keeper, name, url)
            scratch = make_conninfo(url, dbname=name)
            migrate(scratch)
            yield scratch
        finally:
            # When the server is gone there is nobody to ask; the next scratch database sweeps this one away.
            with suppress(psycopg.OperationalError):
                _drop(keeper, name)


def scratch_databases(connection: Connection) -> list[str]:
    """Names of the scratch databases that belong to this one."""
    rows = connection.execute(queries("database")["scratch"], {"prefix": _prefix(connection)})
    return [row[0] for row in rows]


def _sweep(keeper: Connection) -> None:
    for name in scratch_databases(keeper):
        row = keeper.execute(queries("database")["try_hold"], {"name": name}).fetchone()
        if row and row[0]:
            _drop(keeper, name)
            keeper.execute(queries("database")["release"], {"name": name})


def _prefix(connection: Connection) -> str:
    """Locks belong to a database, so only the scratch databases of one's own can be told to be in use."""
    row = connection.execute(queries("database")["own_number"]).fetchone()
    assert row is not None
    return f"{PREFIX}{row[0]}_"


def _create(keeper: Connection, name: str, url: str) -> None:
    try:
        keeper.execute(sql.SQL(queries("database")["create"]).format(name=sql.Identifier(name)))
    except psycopg.errors.InsufficientPrivilege as error:
        raise DatabaseUnavailable(
            f"this user may not create a database at {describe(url)}, and one is needed to try things out beside the "
            "index: grant it CREATEDB, or unset DATABASE_URL to use the embedded server"
        ) from error


def _drop(keeper: Connection, name: str) -> None:
    keeper.execute(sql.SQL(queries("database")["drop"]).format(name=sql.Identifier(name)))
