"""`rag-pipeline dev`: Dagster and the search page as children of one command, which ends with them."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import psutil
import pytest

from rag_pipeline_tests.embedded.servers import temporary_home

_WITHIN_S = 240.0

pytestmark = pytest.mark.slow


class Dev:
    """A running `rag-pipeline dev`, and what it has said so far."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path, port: int) -> None:
        self.process = process
        self.url = f"http://127.0.0.1:{port}"
        self._log = log

    @property
    def said(self) -> str:
        return self._log.read_text()

    def children(self) -> dict[str, psutil.Process]:
        """By what they do: `dagster`, and `serve` where there is a search page."""
        found = {}
        for child in psutil.Process(self.process.pid).children():
            with suppress(psutil.NoSuchProcess):  # it has ended since
                if words := {"dagster", "serve"} & set(child.cmdline()):
                    found[words.pop()] = child
        return found

    def wait_until(self, happened: Callable[[], object]) -> None:
        deadline = time.monotonic() + _WITHIN_S
        while not happened():
            assert self.process.poll() is None, self.said
            assert time.monotonic() < deadline, self.said
            time.sleep(0.1)


@contextmanager
def dev(folder: Path, home: Path, *words: str) -> Iterator[Dev]:
    port = free_port()
    command = [sys.executable, "-c", "from rag_pipeline.cli import main; main()", "dev", "--port", str(port), *words]
    log = folder / "said"
    with log.open("wb") as written:
        environ = {**os.environ, "RAG_HOME": str(home), "COLUMNS": "160"}
        process = subprocess.Popen(command, cwd=folder, env=environ, stdout=written, stderr=written)
    try:
        yield Dev(process, log, port)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            process.wait(timeout=_WITHIN_S)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "rag_pipeline.toml").write_text('[[repositories]]\nsource = "https://example.invalid/a.git"\n')
    with temporary_home() as home:
        yield home


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


def answers(url: str) -> bool:
    try:
        return httpx.get(url, timeout=30).status_code == 200
    except httpx.HTTPError:
        return False


def none_runs(processes: Sequence[psutil.Process]) -> bool:
    return not any(runs(process) for process in processes)


def runs(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_dagster_and_the_search_page_run_side_by_side_and_end_together(tmp_path, home):
    search_port = free_port()
    with dev(tmp_path, home, "--search-port", str(search_port)) as running:
        page = f"http://127.0.0.1:{search_port}"
        running.wait_until(lambda: answers(f"{page}/health/live") and answers(f"{running.url}/server_info"))
        assert re.search(rf"Dagster UI: +http://localhost:{running.url.rpartition(':')[2]}\n", running.said)
        assert f"Search page: http://localhost:{search_port}  (Ctrl-C stops both)" in running.said
        assert "<title>Search" in httpx.get(page).text
        assert httpx.get(f"{page}/v1/sources").json() == {"sources": []}
        assert '"message": "request"' not in running.said  # what went well is no news on a terminal
        children = list(running.children().values())
        assert len(children) == 2
        running.process.send_signal(signal.SIGINT)
        assert running.process.wait(timeout=_WITHIN_S) == 0
        assert none_runs(children)
        assert "the search page ended" not in running.said


def test_a_page_that_dies_is_told_of_and_leaves_dagster_alone(tmp_path, home):
    with dev(tmp_path, home, "--search-port", str(free_port())) as running:
        running.wait_until(lambda: answers(f"{running.url}/server_info"))
        running.children()["serve"].kill()
        running.wait_until(lambda: "the search page ended (exit code -9)" in running.said)
        assert answers(f"{running.url}/server_info")
        assert list(running.children()) == ["dagster"]


def test_a_port_that_is_taken_costs_the_page_and_zero_asks_for_none(tmp_path, home):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with dev(tmp_path, home, "--search-port", str(port)) as running:
            running.wait_until(lambda: "dagster" in running.children())
            said = [line for line in running.said.splitlines() if "search page" in line]
            assert len(said) == 1
            assert f"no search page: port {port} on 127.0.0.1 cannot be used (Address already in use)" in said[0]
            assert "--search-port" in said[0]
            assert "serve" not in running.children()
    with dev(tmp_path, home, "--search-port", "0") as running:
        running.wait_until(lambda: "dagster" in running.children())
        assert "serve" not in running.children()
        assert "search page" not in running.said.lower()
