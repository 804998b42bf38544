"""Killed at any moment, or run twice at once: a rerun ends in the same index as an undisturbed run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from rag_pipeline.embedded import EmbeddedPostgres
from rag_pipeline_tests.embedded.servers import temporary_home
from rag_pipeline_tests.git_repository import GitRepository

pytestmark = [pytest.mark.slow, pytest.mark.faults]
COMMAND = [sys.executable, "-c", "from rag_pipeline.cli import main; main()", "up", "--once"]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> GitRepository:
    repository = GitRepository(tmp_path_factory.mktemp("faults") / "project")
    for day in range(1, 9):
        files = {
            f"docs/page_{day}_{n}.md": "\n\n".join(
                f"## Section {s}\n\n"
                + f"Page {n} of day {day} says in section {s} what matters about topic {day * n + s}. " * 4
                for s in range(6)
            )
            for n in range(12)
        }  # fmt: skip
        repository.commit(f"2024-01-{day:02}T10:00", files)
    return repository


@pytest.fixture
def home() -> Iterator[Path]:
    with temporary_home() as home:
        yield home


def start(project: GitRepository, home: Path, command: str = "") -> subprocess.Popen[bytes]:
    environ = {**os.environ, "RAG_HOME": str(home), "RAG_REPO": str(project.path)}
    with log_of(home).open("ab") as log:
        words = [*COMMAND[:3], command] if command else COMMAND
        return subprocess.Popen(words, cwd=project.path.parent, env=environ, stdout=log, stderr=log)


def log_of(home: Path) -> Path:
    """What the commands printed."""
    return home / "up.log"


def finishes(process: subprocess.Popen[bytes], home: Path) -> None:
    """Wait for a command, which must succeed; its words are shown where it does not."""
    assert process.wait(timeout=240) == 0, log_of(home).read_text(encoding="utf-8", errors="replace")[-4000:]


def index_of(home: Path) -> list[tuple[object, ...]]:
    """Everything that queries can see, vectors included."""
    server = EmbeddedPostgres(home)
    server.start()
    with psycopg.connect(server.url()) as connection:
        return connection.execute(
            "SELECT d.source_id, d.title, d.deleted, c.position, c.text, v.embedding::text"
            " FROM rag.documents d LEFT JOIN rag.chunks c USING (document_id)"
            " LEFT JOIN rag.vectors_1 v USING (text_hash) ORDER BY 1, 4"
        ).fetchall()


@pytest.fixture(scope="module")
def undisturbed(project: GitRepository) -> list[tuple[object, ...]]:
    with temporary_home() as home:
        finishes(start(project, home), home)
        rows = index_of(home)
    assert len(rows) > 100
    assert all(row[5] for row in rows)
    return rows


@pytest.mark.parametrize("after_s", [1.5, 3.0, 4.5, 6.0, 8.0])
def test_a_killed_run_converges_when_run_again(project, home, undisturbed, after_s):
    process = start(project, home)
    time.sleep(after_s)
    process.send_signal(signal.SIGKILL)
    process.wait()
    finishes(start(project, home), home)
    assert index_of(home) == undisturbed


def test_a_killed_database_and_run_converge(project, home, undisturbed):
    process = start(project, home)
    time.sleep(5)
    server = EmbeddedPostgres(home)
    if server.is_running():
        os.kill(int(server._pid_file.read_text().splitlines()[0]), signal.SIGKILL)
    assert process.wait(timeout=180) in (0, 1)
    finishes(start(project, home), home)
    assert index_of(home) == undisturbed


def test_two_runs_at_once_give_the_same_index(project, home, undisturbed):
    first, second = start(project, home), start(project, home)
    finishes(first, home)
    finishes(second, home)
    assert index_of(home) == undisturbed


def test_a_killed_run_leaves_no_lock_and_no_place_taken_and_maintenance_takes_nothing_from_it(
    project, home, undisturbed
):
    process = start(project, home)
    wait_for(lambda: "embeddings: " in log_of(home).read_text(encoding="utf-8", errors="replace"), process)
    process.send_signal(signal.SIGKILL)
    process.wait()
    finishes(start(project, home, "maintain"), home)
    assert locks_of(home) == ([], [])
    finishes(start(project, home), home)
    assert index_of(home) == undisturbed
    assert locks_of(home) == ([], [])


@pytest.mark.parametrize("asked", [signal.SIGTERM, signal.SIGINT])
def test_a_run_that_is_asked_to_stop_says_so_in_a_line_and_goes_on_next_time(project, home, undisturbed, asked):
    process = start(project, home)
    wait_for(lambda: "embeddings: " in log_of(home).read_text(encoding="utf-8", errors="replace"), process)
    process.send_signal(asked)
    assert process.wait(timeout=60) == 130, log_of(home).read_text(encoding="utf-8", errors="replace")
    said = log_of(home).read_text(encoding="utf-8", errors="replace")
    assert "stopped; what was done so far is kept" in said
    assert "Traceback" not in said
    finishes(start(project, home), home)
    assert index_of(home) == undisturbed
    assert locks_of(home) == ([], [])


def wait_for(happened: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    """Until it has, or the command has ended; one that does neither is ended."""
    until = time.monotonic() + 120
    while not happened() and process.poll() is None:
        if time.monotonic() > until:
            process.kill()
            raise AssertionError("the command hangs")
        time.sleep(0.1)


def locks_of(home: Path) -> tuple[list[tuple[object, ...]], list[tuple[object, ...]]]:
    """Advisory locks that somebody holds, and places in pools that a run has."""
    server = EmbeddedPostgres(home)
    server.start()
    with psycopg.connect(server.url()) as connection:
        held = connection.execute("SELECT * FROM pg_locks WHERE locktype = 'advisory'").fetchall()
    with psycopg.connect(server.url("dagster")) as connection:
        places = connection.execute(
            "SELECT concurrency_key, run_id FROM concurrency_slots WHERE run_id IS NOT NULL"
            " UNION ALL SELECT concurrency_key, run_id FROM pending_steps"
        ).fetchall()
    return held, places
