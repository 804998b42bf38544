"""A real streaming replica of a test's server, of the same programs; gone with its data at the end."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import psycopg

from rag_pipeline.embedded.account import Account
from rag_pipeline.embedded.binaries import programs
from rag_pipeline.embedded.cluster import configure
from rag_pipeline.embedded.postgres import EmbeddedPostgres

_PORT = 5432
_SETTINGS = """
hot_standby_feedback = on
wal_receiver_status_interval = 1s
wal_retrieve_retry_interval = 200ms
"""


@dataclass(frozen=True, kw_only=True)
class Standby:
    """A server that follows another one and takes no writes."""

    primary: EmbeddedPostgres
    folder: Path
    account: Account
    bin_folder: Path

    def url(self, database: str = "rag") -> str:
        return f"postgresql://postgres@/{database}?host={quote(str(self.folder), safe='')}&port={_PORT}"

    def start(self) -> None:
        self._pg_ctl("-l", self.folder / "log", "-t", "60", "start")

    def stop(self) -> None:
        self._pg_ctl("-m", "fast", "-t", "60", "stop")

    def pause(self) -> None:
        """Show what comes from the primary no more, until `resume`."""
        self._execute("SELECT pg_wal_replay_pause()")
        self._wait("SELECT pg_get_wal_replay_pause_state() = 'paused'")

    def resume(self) -> None:
        self._execute("SELECT pg_wal_replay_resume()")

    def catch_up(self) -> None:
        """Wait until it shows all that the primary has committed."""
        with psycopg.connect(self.primary.url(), autocommit=True) as connection:
            (position,) = connection.execute("SELECT pg_current_wal_flush_lsn()::text").fetchone() or ("",)
        self._wait(f"SELECT pg_last_wal_replay_lsn() >= '{position}'::pg_lsn")

    def _wait(self, question: str) -> None:
        until = time.monotonic() + 60
        with psycopg.connect(self.url(), autocommit=True) as connection:
            while connection.execute(question.encode()).fetchone() != (True,):
                assert time.monotonic() < until, question
                time.sleep(0.02)

    def _execute(self, statement: str) -> None:
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(statement.encode())

    def _pg_ctl(self, *arguments: str | Path) -> None:
        _run(self.account, [self.bin_folder / "pg_ctl", "-D", self.folder / "data", "-s", "-w", *arguments])


@contextmanager
def standby_of(primary: EmbeddedPostgres) -> Iterator[Standby]:
    """A started standby (about 2 s) that has what the primary has by then."""
    folder = Path(tempfile.mkdtemp(prefix="rag-standby-"))
    account = primary._account
    if os.geteuid() == 0:
        os.chown(folder, account.uid, account.gid)
    standby = Standby(primary=primary, folder=folder, account=account, bin_folder=programs(account))
    try:
        where = ["-h", str(primary._sockets), "-p", str(_PORT), "-U", "postgres"]
        copy = [standby.bin_folder / "pg_basebackup", "-D", folder / "data", "-X", "stream", "-c", "fast", "-R", "-N"]
        _run(account, [*copy, *where])
        configure(folder / "data", account, sockets=folder, port=_PORT, durable=False)
        with (folder / "data" / "postgresql.conf").open("a", encoding="utf-8") as file:
            file.write(_SETTINGS)
        standby.start()
        yield standby
    finally:
        if (folder / "data" / "postmaster.pid").exists():
            standby.stop()
        shutil.rmtree(folder)


def _run(account: Account, command: list[str | Path]) -> None:
    done = account.run(command)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
