"""Redis, Dagster's daemon and workers, each a process of its own, over one RAG_HOME, as deploy/celery has them."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import yaml

_ROOT = Path(__file__).resolve().parents[2]
_PREPARE = """
import json
from rag_pipeline.cli.environment import dagster_environment
from rag_pipeline.cli.session import enter_dagster, settings_of_process
from rag_pipeline.cli.runs import prepare
settings = settings_of_process()
enter_dagster(settings)
prepare(settings)
print("READY " + json.dumps(dagster_environment(settings)))
"""
MAIN = [sys.executable, "-c", "from rag_pipeline.cli import main; main()"]
_GRAPHQL = [sys.executable, "-c", "from dagster_graphql.cli import main; main()"]
_LAUNCH = """
mutation($backfillParams: LaunchBackfillParams!) {
  launchPartitionBackfill(backfillParams: $backfillParams) {
    __typename
    ... on PythonError { message }
    ... on LaunchBackfillSuccess { backfillId }
  }
}
"""
_ASSETS = [
    "raw_docs", "raw_code", "raw_github_issues", "raw_github_pull_requests", "raw_webhook_drops",
    "documents", "chunks", "embeddings", "knowledge_index",
]  # fmt: skip
SILENCE_S = 12
VISIBILITY_S = 25
"""Shorter than some runs, so that Redis does offer again what is at work."""


def environment(home: Path, config: Path, token: str) -> dict[str, str]:
    """Of every process of an installation; nothing of the machine's own installation."""
    left_out = ("DATABASE_URL", "RAG_REPO", "RAG_LAKE", "DAGSTER_HOME", "DAGSTER_POSTGRES_URL", "RAG_DAGSTER_STORAGE")
    kept = {name: value for name, value in os.environ.items() if name not in left_out}
    return {**kept, "RAG_HOME": str(home), "RAG_CONFIG": str(config), "GITHUB_TOKEN": token}


def until(happened: Callable[[], bool], what: str, *, limit_s: float, told: Callable[[], str] = str) -> float:
    """Wait for it, for so long at most; the seconds that it took."""
    started = time.monotonic()
    while not happened():
        if time.monotonic() - started > limit_s:
            raise AssertionError(f"waited {limit_s:.0f} s for {what}, in vain\n{told()}")
        time.sleep(0.5)
    return time.monotonic() - started


class Cluster:
    """What runs beside each other; what they print goes to a file each, below the RAG_HOME."""

    def __init__(self, home: Path, config: Path, *, token: str) -> None:
        self.home = home
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._port = _free_port()
        self.environ = environment(home, config, token) | {
            "DAGSTER_HOME": str(_instance(home)),
            "RAG_CELERY_BROKER": f"redis://127.0.0.1:{self._port}/0",
        }

    def start(self) -> None:
        """Redis, PostgreSQL with all tables, and the daemon."""
        redis = [
            "redis-server",
            "--port",
            str(self._port),
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--dir",
            str(self.home),
        ]
        self._start("redis", redis)
        done = subprocess.run(
            [sys.executable, "-c", _PREPARE], cwd=self.home, env=self.environ, capture_output=True, text=True,
            timeout=120,
        )  # fmt: skip
        ready = [line for line in done.stdout.splitlines() if line.startswith("READY ")]
        assert ready, done.stderr[-4000:]
        self.environ |= json.loads(ready[0].removeprefix("READY "))
        workspace = f"{self.environ['DAGSTER_HOME']}/workspace.yaml"
        self._start("daemon", [sys.executable, "-m", "dagster._daemon", "run", "-w", workspace])

    def start_worker(self, name: str) -> None:
        """A worker that takes one run at a time."""
        self._start(name, [*MAIN, "worker", "--name", name])
        until(lambda: "ready." in self.printed(name), f"worker {name} to be ready", limit_s=90, told=self.all_printed)

    def launch_backfill(self, days: list[str]) -> str:
        """As the UI does when assets are chosen and materialized over a range; the backfill's id."""
        parameters = {"assetSelection": [{"path": [name]} for name in _ASSETS], "partitionNames": days}
        workspace = f"{self.environ['DAGSTER_HOME']}/workspace.yaml"
        answer = self.home / "backfill.json"
        words = ["-w", workspace, "-t", _LAUNCH, "-o", str(answer)]
        done = subprocess.run(
            [*_GRAPHQL, *words, "-v", json.dumps({"backfillParams": parameters})],
            cwd=self.home, env=self.environ, capture_output=True, text=True, timeout=180,
        )  # fmt: skip
        assert answer.is_file(), done.stderr[-4000:]
        launched = json.loads(answer.read_text())["data"]["launchPartitionBackfill"]
        assert launched["__typename"] == "LaunchBackfillSuccess", launched
        return str(launched["backfillId"])

    def kill(self, name: str) -> None:
        """End a process and all that it has started, as a power cut would."""
        os.killpg(self._running[name].pid, signal.SIGKILL)
        self._running.pop(name).wait(timeout=30)

    def end(self) -> None:
        """End whatever runs of it, but for the database."""
        for name in list(self._running):
            try:
                self.kill(name)
            except ProcessLookupError:
                self._running.pop(name, None)
        for pid in self._strays():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue

    def freshness(self) -> dict[str, str]:
        """How each source stands, as `rag-pipeline status` tells it."""
        done = subprocess.run(
            [*MAIN, "status", "--json"], cwd=self.home, env=self.environ, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, done.stderr[-4000:]
        return {f"{row['repository']} {row['source']}": row["state"] for row in json.loads(done.stdout)["freshness"]}

    def printed(self, name: str) -> str:
        """All that a process has printed."""
        return (self.home / f"{name}.log").read_text(encoding="utf-8", errors="replace")

    def all_printed(self) -> str:
        """The last words of every process."""
        return "\n".join(f"--- {log.stem}\n{self.printed(log.stem)[-3000:]}" for log in self.home.glob("*.log"))

    def _start(self, name: str, command: list[str]) -> None:
        with (self.home / f"{name}.log").open("ab") as log:
            self._running[name] = subprocess.Popen(
                command, cwd=self.home, env=self.environ, stdout=log, stderr=log, start_new_session=True
            )

    def _strays(self) -> list[int]:
        """Python processes of this RAG_HOME that have left the group they were started in, such as code servers."""
        mark, found = f"RAG_HOME={self.home}".encode(), []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                is_ours = mark in (folder / "environ").read_bytes().split(b"\0")
                is_ours = is_ours and b"python" in (folder / "cmdline").read_bytes()
            except OSError:
                continue
            if is_ours and int(folder.name) != os.getpid():
                found.append(int(folder.name))
        return found


def _instance(home: Path) -> Path:
    """A DAGSTER_HOME with what deploy/celery has, at a pace for tests: nothing else is different."""
    folder = home / "instance"
    shutil.copytree(_ROOT / "deploy" / "celery", folder)
    file = folder / "dagster.yaml"
    instance = yaml.safe_load(file.read_text(encoding="utf-8"))
    instance["run_monitoring"] |= {"poll_interval_seconds": 4, "free_slots_after_run_end_seconds": 4}
    launcher = instance["run_launcher"]["config"]
    launcher["silence_s"] = SILENCE_S
    launcher["config_source"]["broker_transport_options"]["visibility_timeout"] = VISIBILITY_S
    file.write_text(yaml.safe_dump(instance), encoding="utf-8")
    return folder


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
