"""What Dagster's own storage was refused, and kept as text, is said in our words."""

from __future__ import annotations

import pytest

from rag_pipeline.cli.complaints import told_in_words
from rag_pipeline.errors import DatabaseUnavailable, RagPipelineError, TransientError

FULL = (
    'sqlalchemy.exc.OperationalError: (psycopg2.OperationalError) connection to server on socket "/run/.s.PGSQL.5432" '
    "failed: FATAL:  sorry, too many clients already\n\n(Background on this error at: https://sqlalche.me/e/21/e3q8)\n"
)
NO_ROOM = (
    "sqlalchemy.exc.OperationalError: (psycopg2.errors.DiskFull) could not extend file: No space left on device\n"
    "[SQL: INSERT INTO event_logs VALUES (%(id)s)]"
)
FROZEN = "sqlalchemy.exc.InternalError: (psycopg2.errors.ReadOnlySqlTransaction) cannot execute INSERT"
LOST = "sqlalchemy.exc.OperationalError: (psycopg2.OperationalError) server closed the connection unexpectedly"


@pytest.mark.parametrize(
    ("said", "kind", "words"),
    [
        (FULL, DatabaseUnavailable, "no connection left.*too many clients.*raise max_connections"),
        (NO_ROOM, DatabaseUnavailable, "no room left: could not extend file.*make room"),
        (FROZEN, DatabaseUnavailable, "only be read here.*primary"),
        (LOST, TransientError, "connection to PostgreSQL was lost"),
    ],
)
def test_what_the_server_refused_is_said_with_what_to_do(said: str, kind: type[RagPipelineError], words: str):
    with pytest.raises(kind, match=words) as raised:
        raise told_in_words(said) or AssertionError("not recognised")
    assert "sqlalche" not in str(raised.value) and "INSERT INTO" not in str(raised.value)


@pytest.mark.parametrize("said", ["KeyError: 'x'", "", "(psycopg2.errors.UndefinedTable) relation does not exist"])
def test_a_defect_stays_one(said: str):
    assert told_in_words(said) is None
