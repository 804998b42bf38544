"""Connections that are kept while a run goes on, for whoever asks next.

A run asks for one two or three times in each of its stages and checks. To connect, and to look up the numbers of
pgvector's types, takes PostgreSQL and us longer than most of what is then asked.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg.pq import TransactionStatus

from rag_pipeline.index.database import Connection
from rag_pipeline.index.sql_files import queries


class KeptConnections:
    """Connections of one database that nobody uses just now; may be used from several threads."""

    def __init__(self) -> None:
        self._idle: list[Connection] = []
        self._keepers = 0
        self._lock = threading.Lock()

    @contextmanager
    def keeping(self) -> Iterator[None]:
        """Meanwhile connections are kept; when the last who asked for it is done, they are closed."""
        with self._lock:
            self._keepers += 1
        try:
            yield
        finally:
            with self._lock:
                self._keepers -= 1
                left = [] if self._keepers else self._idle
                self._idle = [] if left else self._idle
            for connection in left:
                connection.close()

    def take(self) -> Connection | None:
        """One that answers and is as good as new; None: there is none, so connect."""
        while True:
            with self._lock:
                if not self._idle:
                    return None
                connection = self._idle.pop()
            try:
                # Settings of the session, its locks and temporary tables are of whoever had it before. The server may
                # also have been restarted since: then this fails.
                connection.execute(queries("database")["start_anew"], prepare=False)
            except psycopg.Error:
                connection.close()
            else:
                return connection

    def give_back(self, connection: Connection) -> None:
        """Keep a connection, or close it: nobody keeps any, or it is in the middle of something."""
        usable = not connection.closed and connection.info.transaction_status == TransactionStatus.IDLE
        with self._lock:
            if usable and self._keepers:
                self._idle.append(connection)
                return
        connection.close()


def answers(connection: Connection) -> bool:
    """Whether the server is still there for it: while nobody asked anything, it may have been restarted."""
    try:
        connection.execute(queries("database")["answers"])
    except psycopg.Error:
        return False
    return True
