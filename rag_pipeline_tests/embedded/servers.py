"""Real servers for tests: `temporary_postgres` gives one that is gone afterwards."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from rag_pipeline.embedded.binaries import Binaries
from rag_pipeline.embedded.postgres import EmbeddedPostgres

START = """
import sys
from pathlib import Path
from rag_pipeline.embedded.postgres import EmbeddedPostgres
EmbeddedPostgres(Path(sys.argv[1]), durable=False).start()
"""


@contextmanager
def temporary_home() -> Iterator[Path]:
    """A RAG_HOME that PostgreSQL's user can enter, which pytest's own temporary folders (0700) are not."""
    home = Path(tempfile.mkdtemp(prefix="rag-test-"))
    home.chmod(0o755)
    try:
        yield home
    finally:
        EmbeddedPostgres(home).erase()
        shutil.rmtree(home)


@contextmanager
def temporary_postgres(*, binaries: Binaries | None = None) -> Iterator[EmbeddedPostgres]:
    """A started server (about 1 s); stopped and deleted at the end."""
    with temporary_home() as home:
        server = EmbeddedPostgres(home, durable=False, binaries=binaries)
        server.start()
        yield server


def pid_of(server: EmbeddedPostgres) -> int:
    return int(server._pid_file.read_text().splitlines()[0])


def answer(server: EmbeddedPostgres, query: str = "SELECT 1", database: str = "rag") -> object:
    with psycopg.connect(server.url(database)) as connection:
        row = connection.execute(query.encode()).fetchone()
        return row and row[0]


def starting_in_another_process(home: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", START, str(home)], start_new_session=True)


def leave_a_trace(server: EmbeddedPostgres) -> None:
    with psycopg.connect(server.url()) as connection:
        connection.execute("CREATE TABLE trace AS SELECT 42 AS n")
