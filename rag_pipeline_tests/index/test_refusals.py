"""What PostgreSQL says in the middle of work becomes an error of ours that says what to do."""

from __future__ import annotations

import psycopg
import pytest
from psycopg import errors

from rag_pipeline.errors import DatabaseUnavailable, RagPipelineError, TransientError
from rag_pipeline.index.database import Connection
from rag_pipeline.index.refusals import in_words, spoken


@pytest.mark.parametrize(
    ("kind", "ours", "words"),
    [
        (errors.DiskFull, DatabaseUnavailable, "no room left: it says so: make room"),
        (errors.ReadOnlySqlTransaction, DatabaseUnavailable, "only be read .* name the primary, not a standby"),
        (errors.TooManyConnections, DatabaseUnavailable, "no connection left: .* raise max_connections"),
        (errors.InsufficientPrivilege, DatabaseUnavailable, "refuses this user: .* connect as the owner"),
        (errors.IndexCorrupted, DatabaseUnavailable, "data is damaged: .* rebuilt"),
        (errors.AdminShutdown, TransientError, "ended the work: .* the next run goes on from there"),
        (errors.DeadlockDetected, TransientError, "ended the work"),
        (psycopg.OperationalError, TransientError, "the connection to PostgreSQL was lost"),
        (errors.SystemError, DatabaseUnavailable, "cannot go on: it says so: see its log"),
    ],
)
def test_what_the_server_refuses_is_told_apart_by_whether_it_may_pass(
    kind: type[psycopg.Error], ours: type[RagPipelineError], words: str
) -> None:
    with pytest.raises(ours, match=words) as raised, in_words():
        raise kind("it says so\nDETAIL:  and more")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("kind", [errors.UndefinedColumn, errors.NotNullViolation, errors.SyntaxError])
def test_what_is_a_defect_of_ours_is_left_as_it_is(kind: type[psycopg.Error]) -> None:
    assert spoken(kind("column x does not exist")) is None
    with pytest.raises(kind), in_words():
        raise kind("column x does not exist")


def test_what_a_real_server_refuses_has_the_codes_that_we_know(connection: Connection) -> None:
    connection.execute("SET default_transaction_read_only = on")
    with pytest.raises(DatabaseUnavailable, match="only be read"), in_words():
        connection.execute("CREATE TABLE rag.x ()")
    with pytest.raises(TransientError, match=r"terminating connection|PostgreSQL was lost"), in_words():
        connection.execute("SELECT pg_terminate_backend(pg_backend_pid())")
