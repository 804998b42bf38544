"""Advisory locks of ours: who shares one with others of its kind, and who waits until none of them is there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import IntEnum

import psycopg

from rag_pipeline.index.database import Connection
from rag_pipeline.index.sql_files import queries


class Lock(IntEnum):
    """Their numbers on the server: any that are our own, and never changed."""

    WRITING = 0x52414753
    """Shared by those who write documents."""
    AT_WORK = 0x52414754
    """Shared by stages, while they make something of what they read."""
    EMBEDDING = 0x52414756
    """Shared by runs that count on vectors that they have seen."""
    CLAIMS = 0x52414757
    """First of two keys: each run that claims texts holds it with a number of its own."""


@contextmanager
def shared(connection: Connection, lock: Lock) -> Iterator[None]:
    """Hold a lock beside all others who share it; who wants it alone waits, or makes us wait."""
    values = {"lock": int(lock)}
    connection.execute(queries("locks")["share"], values)
    try:
        yield
    finally:
        # A broken connection ends, and the lock with it.
        with suppress(psycopg.Error):
            connection.execute(queries("locks")["leave"], values)


def exclude(connection: Connection, lock: Lock) -> None:
    """Have a lock alone until the transaction ends.

    Raises:
        psycopg.errors.LockNotAvailable: somebody shares it for longer than the transaction waits; see `wait_at_most`.
    """
    connection.execute(queries("locks")["exclude"], {"lock": int(lock)})


def wait_at_most(connection: Connection, seconds: float, *, in_transaction: bool = True) -> None:
    """How long the transaction, or the session, waits for any lock of the server; 0: as long as it takes."""
    values = {"milliseconds": str(int(seconds * 1000)), "local": in_transaction}
    connection.execute(queries("locks")["patience"], values)
