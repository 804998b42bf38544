"""Connections to PostgreSQL, and the errors that say what to do when there is none."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias
from urllib.parse import quote, urlencode

import psycopg
from pgvector.psycopg.halfvec import register_halfvec_info
from psycopg import sql
from psycopg.rows import TupleRow
from psycopg.types import TypeInfo

from rag_pipeline.errors import DatabaseUnavailable
from rag_pipeline.index.sql_files import queries

Connection: TypeAlias = psycopg.Connection[TupleRow]


def connect(url: str) -> Connection:
    """An autocommit connection; transactions are opened where they are meant.

    Raises:
        DatabaseUnavailable: nothing answers there, or it refuses us.
    """
    try:
        connection = psycopg.connect(
            url,
            autocommit=True,
            connect_timeout=10,
            application_name="rag-pipeline",
            # The address may have options of its own (some hosted servers need them).
            options=f"{_parts(url).get('options') or ''} -c search_path=rag,public -c timezone=UTC".strip(),
        )
    except psycopg.OperationalError as error:
        raise DatabaseUnavailable(
            f"cannot connect to PostgreSQL at {describe(url)}: {_first_line(error)}. {_advice(str(error))}"
        ) from error
    except psycopg.ProgrammingError as error:
        # libpq repeats the address, and with it the password.
        raise DatabaseUnavailable(
            "DATABASE_URL is not a PostgreSQL address: write it as postgresql://user:password@host:5432/database"
        ) from error
    return connection


def connect_with_vectors(url: str) -> Connection:
    """A connection that speaks `halfvec`; the schema must have been migrated."""
    connection = connect(url)
    # Of pgvector's four types the one that our tables have: the server is asked for each.
    halves = TypeInfo.fetch(connection, "halfvec")
    if halves is None:
        connection.close()
        raise DatabaseUnavailable(f"the database at {describe(url)} has no pgvector yet: run `rag-pipeline migrate`")
    register_halfvec_info(connection, halves)
    return connection


@contextmanager
def connected(url: str) -> Iterator[Connection]:
    """`connect_with_vectors`, closed at the end."""
    connection = connect_with_vectors(url)
    try:
        yield connection
    finally:
        connection.close()


def sibling_url(url: str, *, database: str) -> str:
    """The address of another database on the same server, as SQLAlchemy with psycopg2 wants it.

    SQLAlchemy 2.1 reads `postgresql://` as psycopg 3, with which Dagster's event log cannot listen for notifications.
    """
    parts = dict(_parts(url))
    user, password = (quote(str(parts.pop(name, "")), safe="") for name in ("user", "password"))
    parts.pop("dbname", None)
    host, port = str(parts.pop("host", "")), str(parts.pop("port", ""))
    if host.startswith("/") or "," in host:
        # A socket folder, or several hosts, stand behind the question mark.
        parts |= {"host": host} | ({"port": port} if port else {})
        host = port = ""
    login = user + (f":{password}" if password else "") + ("@" if user else "")
    options = f"?{urlencode(parts)}" if parts else ""
    return f"postgresql+psycopg2://{login}{host}{f':{port}' if port else ''}/{quote(database)}{options}"


def ensure_database(url: str, *, database: str) -> None:
    """Create another database on the same server unless it is there.

    Raises:
        DatabaseUnavailable: it is missing and this user may not create it.
    """
    with connect(url) as connection:
        if connection.execute(queries("database")["exists"], {"name": database}).fetchone():
            return
        try:
            connection.execute(sql.SQL(queries("database")["create"]).format(name=sql.Identifier(database)))
        except psycopg.errors.DuplicateDatabase:
            return
        except psycopg.errors.InsufficientPrivilege as error:
            raise DatabaseUnavailable(
                f"the server at {describe(url)} has no database {database!r} and this user may not create it: "
                "create it, or set DAGSTER_POSTGRES_URL to one that exists"
            ) from error


def describe(url: str) -> str:
    """A database address without its password."""
    try:
        parts = _parts(url)
    except psycopg.ProgrammingError:
        return "an address that cannot be read"
    where = parts.get("host") or "localhost"
    port = f":{parts['port']}" if parts.get("port") else ""
    return f"{where}{port}/{parts.get('dbname', '')}"


def _advice(said: str) -> str:
    """What to do about a refused connection; the reasons have no codes (libpq)."""
    if "too many" in said or "connection slots" in said:
        return "Too many are connected: end some, raise max_connections, or lower [pools]; then try again"
    if any(word in said for word in ("starting up", "shutting down", "recovery", "not yet accepting")):
        return "It starts, stops or recovers just now: wait a moment, then try again"
    return "Check that it runs and that DATABASE_URL is right (`rag-pipeline status` shows what is used)"


def _parts(url: str) -> dict[str, Any]:
    return psycopg.conninfo.conninfo_to_dict(url)


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
