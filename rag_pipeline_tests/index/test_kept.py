"""Connections that a run keeps from one stage to the next are as good as new ones, or are replaced."""

from __future__ import annotations

import psycopg
import pytest

from rag_pipeline.index.database import Connection, connect
from rag_pipeline.index.kept import KeptConnections


@pytest.fixture
def kept(database: str):
    kept = KeptConnections()
    with kept.keeping():
        yield kept


def backend(connection: Connection) -> int:
    return connection.info.backend_pid


def test_who_asks_next_gets_the_same_connection(kept, database):
    first = connect(database)
    kept.give_back(first)
    assert kept.take() is first
    assert kept.take() is None
    first.close()


def test_nothing_of_a_session_is_left_but_what_it_was_opened_with(kept, database):
    first = connect(database)
    before = first.execute("SHOW search_path").fetchone()
    first.execute("SET lock_timeout = '7s'")
    first.execute("SET search_path = pg_catalog")
    first.execute("SELECT pg_advisory_lock(42)")
    first.execute("CREATE TEMP TABLE seen (id int)")
    first.execute("SET ROLE rag_reader")
    kept.give_back(first)
    again = kept.take()
    assert again is first
    assert again.execute("SHOW lock_timeout").fetchone() == ("0",)
    assert again.execute("SHOW search_path").fetchone() == before
    assert again.execute("SELECT to_regclass('pg_temp.seen')").fetchone() == (None,)
    assert again.execute("SELECT current_user = session_user").fetchone() == (True,)
    with connect(database) as other:
        assert other.execute("SELECT pg_try_advisory_lock(42)").fetchone() == (True,)
    again.close()


def test_statements_that_the_driver_prepared_go_on_working(kept, database):
    connection = connect(database)
    for _ in range(10):
        for _ in range(3):
            assert connection.execute("SELECT %s::int + 1", (1,)).fetchone() == (2,)
        kept.give_back(connection)
        assert kept.take() is connection
    connection.close()


def test_a_connection_that_the_server_has_ended_is_not_handed_out(kept, database):
    lost, good = connect(database), connect(database)
    with connect(database) as other:
        other.execute("SELECT pg_terminate_backend(%s)", (backend(lost),))
    kept.give_back(good)
    kept.give_back(lost)
    assert kept.take() is good
    assert lost.closed
    good.close()


def test_a_connection_in_the_middle_of_something_is_closed(kept, database):
    connection = connect(database)
    connection.autocommit = False
    with pytest.raises(psycopg.Error):
        connection.execute("SELECT 1 / 0")
    kept.give_back(connection)
    assert connection.closed
    assert kept.take() is None


def test_connections_are_closed_once_nobody_keeps_them(database):
    kept = KeptConnections()
    alone = connect(database)
    kept.give_back(alone)
    assert alone.closed
    with kept.keeping():
        connection = connect(database)
        with kept.keeping():
            kept.give_back(connection)
        assert not connection.closed
    assert connection.closed
