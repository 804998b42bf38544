"""A pipeline as it is deployed: Dagster's daemon, its run workers and PostgreSQL, each a process that can be killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from rag_pipeline.embedded import EmbeddedPostgres
from rag_pipeline_tests.embedded.servers import pid_of
from rag_pipeline_tests.git_repository import GitRepository

_PREPARE = """
import os
from rag_pipeline.cli.environment import dagster_environment
from rag_pipeline.cli.session import enter_dagster, settings_of_process
from rag_pipeline.cli.runs import prepare
settings = settings_of_process()
enter_dagster(settings)
prepare(settings)
import json
print("READY " + json.dumps([dagster_environment(settings), str(settings.first_day)]))
"""
_WORKER = "spawn_main"  # the code server starts a run in a new interpreter
_APPEARS_S = 240.0


class Plant:
    """Daemon, run workers and database over one RAG_HOME, for one repository; what they print goes to a file."""

    def __init__(self, home: Path, project: GitRepository) -> None:
        self.home = home
        self.log = home / "plant.log"
        self._cwd = project.path.parent
        self._environ = {**os.environ, "RAG_HOME": str(home), "RAG_REPO": str(project.path)}
        done = subprocess.run(
            [sys.executable, "-c", _PREPARE],
            cwd=self._cwd,
            env=self._environ,
            capture_output=True,
            text=True,
            check=True,
        )
        (line,) = [line for line in done.stdout.splitlines() if line.startswith("READY ")]
        environ, self._first_day = json.loads(line.removeprefix("READY "))
        self._environ |= environ
        self.daemon: subprocess.Popen[bytes] | None = None

    def start_daemon(self) -> None:
        """The daemon with a code server, which starts run workers."""
        command = ["-m", "dagster._daemon", "run", "-w", self._workspace]
        self.daemon = self._start([sys.executable, *command])

    def launch_backfill(self) -> None:
        """One run over all days up to today, into the queue; the command that asks for it ends by itself."""
        today = datetime.now(UTC).date().isoformat()
        tags = {"dagster/asset_partition_range_start": self._first_day, "dagster/asset_partition_range_end": today}
        command = ["-m", "dagster", "job", "launch", "-w", self._workspace, "-j", "refresh", "--tags", json.dumps(tags)]
        self._start([sys.executable, *command])

    def wait_for_worker(self) -> int:
        """The process of the run, once it is there."""
        until = time.monotonic() + _APPEARS_S
        while time.monotonic() < until:
            if found := self._processes(_WORKER):
                return found[0]
            time.sleep(0.1)
        raise AssertionError(f"no run worker appeared: {self.printed()}")

    def at_work(self) -> bool:
        """Whether the process of any run is there."""
        return bool(self._processes(_WORKER))

    def kill(self, victim: str) -> None:
        """End one of `worker`, `daemon`, `postgres` as a power cut would; one that has ended already stays ended."""
        if victim == "worker":
            self._kill(self._processes(_WORKER))
        elif victim == "daemon":
            assert self.daemon is not None
            self._kill([self.daemon.pid])
        else:
            self._kill([pid_of(EmbeddedPostgres(self.home))])

    def end(self) -> None:
        """End whatever runs of it, but for the database."""
        for _ in range(3):
            self._kill(self._processes(""))
            time.sleep(0.2)
        if self.daemon is not None:
            self.daemon.wait(timeout=30)

    def printed(self) -> str:
        """The last of what the processes printed."""
        return self.log.read_text(encoding="utf-8", errors="replace")[-4000:]

    @property
    def _workspace(self) -> str:
        return str(Path(self._environ["DAGSTER_HOME"]) / "workspace.yaml")

    def _start(self, command: list[str]) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as log:
            return subprocess.Popen(
                command, cwd=self._environ["DAGSTER_HOME"], env=self._environ, stdout=log, stderr=log
            )

    def _processes(self, named: str) -> list[int]:
        """Our processes with this in their command line, by the RAG_HOME in their environment; none of PostgreSQL."""
        mark, found = f"RAG_HOME={self.home}".encode(), []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                command = (folder / "cmdline").read_bytes()
                is_ours = mark in (folder / "environ").read_bytes().split(b"\0")
            except OSError:
                continue
            if is_ours and b"python" in command and named.encode() in command and int(folder.name) != os.getpid():
                found.append(int(folder.name))
        return found

    @staticmethod
    def _kill(pids: list[int]) -> None:
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
