"""Scratch databases: whole while they are used, gone afterwards, whatever happens to whoever used them."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from rag_pipeline.errors import DatabaseUnavailable
from rag_pipeline.index.database import connect, connected
from rag_pipeline.index.scratch import PREFIX, scratch_database, scratch_databases
from rag_pipeline_tests.databases import new_database

_HOLDER = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have switched it off
from rag_pipeline.index.scratch import scratch_database
with scratch_database(sys.argv[1]):
    print("ready", flush=True)
    time.sleep(600)
"""


def left(url: str) -> list[str]:
    with connect(url) as connection:
        return scratch_databases(connection)


def test_it_is_migrated_beside_the_index_and_dropped_at_the_end(database):
    with scratch_database(database) as url:
        assert len(left(database)) == 1
        with connected(url) as connection:
            name = connection.execute("SELECT current_database(), count(*) FROM rag.documents").fetchone()
        assert name is not None and name[0].startswith(PREFIX)
    assert left(database) == []


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_it_is_dropped_after_an_error_even_when_connections_are_open(database, error):
    with pytest.raises(error), scratch_database(database) as url:
        open_connection = connect(url)
        raise error
    assert left(database) == []
    with pytest.raises(psycopg.OperationalError):
        open_connection.execute("SELECT 1")


def test_two_at_once_leave_each_other_alone(database):
    with scratch_database(database) as one, scratch_database(database) as other:
        assert len(left(database)) == 2
        with connect(one) as first, connect(other) as second:
            assert first.info.dbname != second.info.dbname
    assert left(database) == []


def test_what_a_killed_process_left_behind_is_swept_and_that_of_a_living_one_is_not(database):
    root = Path(__file__).resolve().parents[2]
    holders = [
        subprocess.Popen([sys.executable, "-c", _HOLDER, database], cwd=root, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]  # fmt: skip
    try:
        for holder in holders:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "ready\n"
        holders[0].send_signal(signal.SIGKILL)
        holders[0].wait()
        assert len(left(database)) == 2
        for _ in range(100):
            with scratch_database(database):
                if len(left(database)) == 2:
                    break
        assert len(left(database)) == 1, "the dead one's is gone as soon as the server has noticed"
        holders[1].send_signal(signal.SIGINT)
        holders[1].wait(timeout=30)
        assert left(database) == []
    finally:
        for holder in holders:
            holder.kill()
            holder.wait()


def test_scratch_databases_of_another_index_are_not_touched(database, other_database):
    with scratch_database(database):
        assert left(other_database) == []
        with scratch_database(other_database):
            assert (len(left(database)), len(left(other_database))) == (1, 1)
        assert len(left(database)) == 1


def test_a_user_who_may_not_create_databases_is_told_what_to_do(server, empty_database):
    with connect(empty_database) as connection:
        connection.execute("CREATE ROLE guest LOGIN")
    guest = empty_database.replace("postgres@", "guest@")
    try:
        assert guest != empty_database
        with (
            pytest.raises(DatabaseUnavailable, match=r"may not create a database at .*: grant it CREATEDB"),
            scratch_database(guest),
        ):
            pass
    finally:
        with connect(empty_database) as connection:
            connection.execute("DROP ROLE guest")


def test_a_server_that_is_not_there_is_named():
    with pytest.raises(DatabaseUnavailable, match="cannot connect"), scratch_database("postgresql://127.0.0.1:9/rag"):
        pass


def test_an_address_with_options_keeps_them(server, template):
    with new_database(server, "with_options", template=template) as url:
        separator = "&" if "?" in url else "?"
        with (
            scratch_database(f"{url}{separator}options=-c%20work_mem%3D5MB") as scratch,
            connect(scratch) as connection,
        ):
            assert connection.execute("SHOW work_mem").fetchone() == ("5MB",)
