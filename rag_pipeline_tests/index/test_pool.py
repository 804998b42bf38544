"""The pool of a service: bounded, lazy, and never giving away a connection that is gone or half-way through a thing."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator

import numpy as np
import psycopg
import pytest
from pgvector import HalfVector

from rag_pipeline.errors import DatabaseUnavailable
from rag_pipeline.index.database import Connection, connect
from rag_pipeline.index.pool import Pool


@pytest.fixture
def pool(reused_database: str) -> Iterator[Pool]:
    pool = Pool(reused_database, size=3, statement_s=0.5)
    yield pool
    pool.close()


def backend(connection: Connection) -> int:
    return connection.info.backend_pid


def test_nothing_is_connected_before_somebody_asks_and_never_more_than_its_size(
    pool: Pool, reused_database: str
) -> None:
    def connected(known: Iterable[int] = ()) -> set[int]:
        # Who asked before may still be there: a connection is closed before its backend is gone.
        with connect(reused_database) as other:
            found = other.execute(
                "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
            ).fetchall()
            asked.add(backend(other))
        return {pid for (pid,) in found}.difference(asked, known)

    asked: set[int] = set()
    before = connected()
    held, go_on = threading.Semaphore(0), threading.Event()

    def hold() -> None:
        with pool.connection() as connection:
            connection.execute("SELECT 1")
            held.release()
            assert go_on.wait(20)

    threads = [threading.Thread(target=hold) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in threads:
        assert held.acquire(timeout=20)
    assert len(connected(before)) == 3
    with pytest.raises(DatabaseUnavailable), pool.connection(patience_s=0.1):
        pass
    go_on.set()
    for thread in threads:
        thread.join()
    with pool.connection() as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_its_connections_speak_vectors_see_the_schema_and_are_used_again(pool: Pool) -> None:
    with pool.connection() as connection:
        first = backend(connection)
        row = connection.execute("SELECT %s::halfvec(2)", (HalfVector(np.ones(2, np.float16)),)).fetchone()
        assert row is not None
        assert isinstance(row[0], HalfVector)
        assert connection.execute("SELECT count(*) FROM api_keys").fetchone() == (0,)
    with pool.connection() as connection:
        assert backend(connection) == first


def test_a_connection_that_the_server_ended_is_replaced_before_anybody_gets_it(
    pool: Pool, reused_database: str
) -> None:
    for _ in range(3):
        with pool.connection() as connection:
            pid = backend(connection)
        with connect(reused_database) as other:
            other.execute("SELECT pg_terminate_backend(%s, 5000)", (pid,))
        with pool.connection() as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
            assert backend(connection) != pid


def test_one_that_ends_under_its_user_is_not_given_to_the_next(pool: Pool) -> None:
    with pytest.raises(psycopg.OperationalError), pool.connection() as connection:
        connection.execute("SELECT pg_terminate_backend(pg_backend_pid())")
    with pool.connection() as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_what_fails_half_way_leaves_nothing_behind(pool: Pool) -> None:
    with pytest.raises(ZeroDivisionError), pool.connection() as connection, connection.transaction():
        connection.execute("SET LOCAL ROLE rag_reader")
        raise ZeroDivisionError
    with pytest.raises(psycopg.errors.UndefinedTable), pool.connection() as connection:
        connection.execute("BEGIN")
        connection.execute("SET LOCAL ROLE rag_reader")
        connection.execute("SELECT * FROM nothing")
    for _ in range(3):
        with pool.connection() as connection:
            assert connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
            assert connection.execute("SELECT current_user = session_user").fetchone() == (True,)


def test_a_statement_that_takes_too_long_is_stopped(pool: Pool) -> None:
    with pytest.raises(psycopg.errors.QueryCanceled), pool.connection() as connection:
        connection.execute("SELECT pg_sleep(30)")


def test_a_closed_pool_and_a_database_that_is_not_there_say_so_without_a_password(reused_database: str) -> None:
    closed = Pool(reused_database, size=1, statement_s=1)
    closed.close()
    nowhere = Pool("postgresql://rag:hush@127.0.0.1:1/rag", size=1, statement_s=1)
    for pool in (closed, nowhere):
        said = pytest.raises(DatabaseUnavailable, match="does not answer: check that it runs")
        with said as error, pool.connection(patience_s=0.1):
            pass
        assert "hush" not in str(error.value)
        pool.close()
