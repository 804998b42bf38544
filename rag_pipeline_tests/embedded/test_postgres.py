"""A healthy server: what it offers, starting and stopping; with real servers and real signals."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import psycopg
import pytest

from rag_pipeline.embedded import cluster
from rag_pipeline.embedded.account import Account
from rag_pipeline.embedded.postgres import EmbeddedPostgres
from rag_pipeline_tests.embedded.servers import (
    START,
    answer,
    leave_a_trace,
    pid_of,
    starting_in_another_process,
    temporary_postgres,
)


@pytest.fixture(scope="module")
def shared() -> Iterator[EmbeddedPostgres]:
    """One server for the tests that leave it running."""
    with temporary_postgres() as server:
        yield server


# A running server


def test_it_has_both_databases_and_pgvector(shared: EmbeddedPostgres) -> None:
    assert answer(shared, "SELECT current_database()", "dagster") == "dagster"
    assert answer(shared, "SELECT count(*) FROM pg_available_extensions WHERE name = 'vector'") == 1


def test_it_runs_with_our_settings_and_without_a_network_port(shared: EmbeddedPostgres) -> None:
    assert answer(shared, "SHOW listen_addresses") == ""
    assert answer(shared, "SHOW synchronous_commit") == "on"
    assert (
        answer(shared, "SELECT datlocprovider::text || datlocale FROM pg_database WHERE datname = 'rag'") == "bC.UTF-8"
    )


@pytest.mark.parametrize(
    ("megabytes", "mode", "memory", "kind"),
    [
        (64, 0o1777, 16, "mmap"),
        (2_500, 0o1777, 16, "mmap"),
        (2_600, 0o1777, 16, "posix"),
        (9_999, 0o755, 16, "mmap"),
        (9_999, 0o1777, 4, "mmap"),
    ],
)
def test_builds_share_memory_where_there_is_room_for_the_largest(
    megabytes: int, mode: int, memory: int, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = tmp_path / "shm"
    shared.mkdir()
    shared.chmod(mode)
    monkeypatch.setattr(cluster, "_SHARED", shared)
    monkeypatch.setattr(cluster, "usable_memory", lambda: memory * 2**30)
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_bavail=256 * megabytes, f_frsize=4096))
    cluster.configure(tmp_path, Account(uid=os.getuid(), gid=os.getgid()), sockets=tmp_path, port=5432, durable=True)
    configured = (tmp_path / "app.conf").read_text(encoding="utf-8")
    assert f"\ndynamic_shared_memory_type = {kind}\n" in configured


def test_without_such_a_folder_builds_share_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "_SHARED", tmp_path / "nothing")
    cluster.configure(tmp_path, Account(uid=os.getuid(), gid=os.getgid()), sockets=tmp_path, port=5432, durable=True)
    assert "\ndynamic_shared_memory_type = mmap\n" in (tmp_path / "app.conf").read_text(encoding="utf-8")


@pytest.mark.parametrize(("gigabytes", "buffers"), [(0.1, 64), (2, 512), (8, 2048), (500, 4096)])
def test_a_quarter_of_the_memory_is_for_pages_of_tables_and_graphs(
    gigabytes: float, buffers: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "usable_memory", lambda: int(gigabytes * 2**30))
    cluster.configure(tmp_path, Account(uid=os.getuid(), gid=os.getgid()), sockets=tmp_path, port=5432, durable=True)
    assert f"\nshared_buffers = {buffers}MB\n" in (tmp_path / "app.conf").read_text(encoding="utf-8")


def test_starting_again_changes_nothing(shared: EmbeddedPostgres) -> None:
    pid = pid_of(shared)
    shared.start()
    assert pid_of(shared) == pid


def test_the_dagster_url_names_psycopg2(shared: EmbeddedPostgres) -> None:
    sqlalchemy = pytest.importorskip("sqlalchemy")
    engine = sqlalchemy.create_engine(shared.dagster_url())
    with engine.connect() as connection:
        assert connection.execute(sqlalchemy.text("SELECT current_database()")).scalar() == "dagster"
    engine.dispose()
    assert engine.dialect.driver == "psycopg2"


def test_the_environment_cannot_lead_it_astray(shared: EmbeddedPostgres, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPORT", "1")
    monkeypatch.setenv("PGDATABASE", "nowhere")
    assert shared.is_running()
    shared.start()


def test_it_reports_running_when_every_connection_is_taken(shared: EmbeddedPostgres) -> None:
    held = []
    with pytest.raises(psycopg.OperationalError):
        while True:
            held.append(psycopg.connect(shared.url()))
    assert shared.is_running()
    for connection in held:
        connection.close()


# Starting and stopping


def test_a_home_that_was_never_used_is_left_untouched(tmp_path: Path) -> None:
    server = EmbeddedPostgres(tmp_path / "never", durable=False)
    assert not server.is_running()
    assert not server.stop()
    assert not (tmp_path / "never").exists()


def test_data_survives_stop_and_start_and_the_url_stays(home: Path) -> None:
    server = EmbeddedPostgres(home)
    url = server.url()
    server.start()
    leave_a_trace(server)
    assert server.stop()
    assert not server.is_running()
    assert not server.stop()
    server.start()
    assert answer(server, "SELECT n FROM trace") == 42
    assert answer(server, "SHOW fsync") == "on"
    assert server.url() == url


def test_concurrent_first_starts_make_one_server(home: Path) -> None:
    processes = [starting_in_another_process(home) for _ in range(4)]
    assert [process.wait(120) for process in processes] == [0, 0, 0, 0]
    assert answer(EmbeddedPostgres(home)) == 1


def test_it_survives_its_starter_and_ctrl_c(home: Path) -> None:
    code = START + "import time; print(flush=True); time.sleep(60)"
    command = [sys.executable, "-c", code, str(home)]
    starter = subprocess.Popen(command, start_new_session=True, stdout=subprocess.PIPE)
    assert starter.stdout is not None
    starter.stdout.readline()
    pid = pid_of(EmbeddedPostgres(home))
    os.killpg(starter.pid, signal.SIGINT)
    os.killpg(starter.pid, signal.SIGKILL)
    starter.wait()
    server = EmbeddedPostgres(home, durable=False)
    server.start()
    assert pid_of(server) == pid


def test_a_start_that_was_interrupted_is_finished_by_the_next(home: Path) -> None:
    half = starting_in_another_process(home)
    while not list(home.glob("postgres/data.*.part")) and half.poll() is None:
        time.sleep(0.01)
    with suppress(ProcessLookupError):  # it may have ended by itself
        os.killpg(half.pid, signal.SIGKILL)
    half.wait()
    server = EmbeddedPostgres(home, durable=False)
    server.start()
    assert answer(server) == 1
