"""Which server answers: the first while it does, the second otherwise; and how far a replica is behind."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psycopg
import pytest

from rag_pipeline.errors import DatabaseUnavailable
from rag_pipeline.index.database import Connection, connected
from rag_pipeline.index.pool import connected_twice
from rag_pipeline.index.replica import Fallback, primary_position, replica_lag


@dataclass
class Server:
    """Gives the same connection to everybody, or nobody any."""

    held: Connection
    is_there: bool = True
    asked: int = 0

    @contextmanager
    def connection(self, *, patience_s: float = 2.0) -> Iterator[Connection]:
        assert patience_s > 0
        self.asked += 1
        if not self.is_there:
            raise DatabaseUnavailable("it does not answer")
        yield self.held


@pytest.fixture
def servers(reused_database: str) -> Iterator[tuple[Server, Server]]:
    with connected(reused_database) as one, connected(reused_database) as other:
        yield Server(one), Server(other)


def test_the_first_is_asked_while_it_answers_and_again_after_it_was_left_alone(servers: tuple[Server, Server]) -> None:
    first, second = servers
    moment, fallen = [0.0], []
    both = Fallback(first, second, name="it", monotonic=lambda: moment[0] + 100, fell_back=lambda: fallen.append(1))

    def given() -> Connection:
        with both.connection() as connection:
            return connection

    assert given() is first.held
    first.is_there = False
    assert given() is second.held
    first.is_there = True
    assert given() is second.held
    assert (first.asked, len(fallen)) == (2, 2)
    moment[0] = 6.0
    assert given() is first.held


def test_while_neither_answers_everybody_is_told_and_the_first_to_come_back_is_used(
    servers: tuple[Server, Server],
) -> None:
    first, second = servers
    both = Fallback(first, second, name="it")
    first.is_there = second.is_there = False
    for _ in range(2):
        with pytest.raises(DatabaseUnavailable), both.connection():
            pass
    # Left alone it may be, but there is nobody else.
    first.is_there = True
    with both.connection() as connection:
        assert connection is first.held


def test_what_fails_with_a_connection_of_the_first_is_no_reason_to_ask_the_second(
    servers: tuple[Server, Server],
) -> None:
    first, second = servers
    both = Fallback(first, second, name="it")
    with pytest.raises(DatabaseUnavailable, match="a lock"), both.connection():
        raise DatabaseUnavailable("a lock was not to be had")
    assert second.asked == 0


@pytest.mark.parametrize("code", ["40001", "40P01"])
def test_a_question_that_a_standby_gave_up_for_its_primary_is_asked_again(servers: tuple[Server, Server], code) -> None:
    first, _ = servers
    asked = []

    def work(connection: Connection) -> object:
        asked.append(1)
        if len(asked) == 1:
            raise psycopg.errors.lookup(code)("canceling statement due to conflict with recovery")
        return connection.execute("SELECT 42").fetchone()

    assert connected_twice(first.connection, work) == (42,)
    with pytest.raises(psycopg.errors.UndefinedTable):
        connected_twice(first.connection, lambda connection: connection.execute("SELECT FROM nothing"))


def test_a_database_that_is_no_standby_is_behind_nothing(servers: tuple[Server, Server]) -> None:
    first, second = servers
    position = primary_position(first.held)
    for told in (position, None):
        assert replica_lag(second.held, primary=told).lag_s is None
