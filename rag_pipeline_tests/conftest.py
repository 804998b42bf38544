"""What most tests need: a real PostgreSQL with pgvector, a migrated database each, and repositories made to order."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from hypothesis import settings
from hypothesis.internal.conjecture import providers

from rag_pipeline.embedded import EmbeddedPostgres
from rag_pipeline.index.database import Connection, connected
from rag_pipeline.index.migrations import migrate
from rag_pipeline_tests.databases import new_database
from rag_pipeline_tests.embedded.servers import temporary_postgres
from rag_pipeline_tests.faults.table import pytest_collection_modifyitems, pytest_terminal_summary
from rag_pipeline_tests.git_repository import GitRepository
from rag_pipeline_tests.long import pytest_runtest_setup

__all__ = ["pytest_collection_modifyitems", "pytest_runtest_setup", "pytest_terminal_summary"]

# The same examples every time: a red test means that this change broke something. New ones are looked for on purpose,
# with `make test ARGS=--hypothesis-profile=explore`. How long an example takes says how busy the machine is.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.register_profile("explore", derandomize=False, deadline=None, print_blob=True)
settings.load_profile("repeatable")
# Hypothesis also draws constants from whatever local modules happen to be loaded, so that the examples of a test would
# change with the files that the same process has collected before.
if hasattr(providers, "_get_local_constants"):
    providers._get_local_constants = lambda: providers._local_constants

_numbers = itertools.count()


@pytest.fixture(scope="session")
def server() -> Iterator[EmbeddedPostgres]:
    """One embedded PostgreSQL for each test process."""
    with temporary_postgres() as server:
        yield server


@pytest.fixture(scope="session")
def template(server: EmbeddedPostgres) -> str:
    """The name of a migrated database that tests copy."""
    with psycopg.connect(server.url("postgres"), autocommit=True) as connection:
        connection.execute("CREATE DATABASE template_rag")
    migrate(server.url("template_rag"))
    return "template_rag"


@pytest.fixture
def empty_database(server: EmbeddedPostgres) -> Iterator[str]:
    """The address of a new database without our schema."""
    with new_database(server, f"test_{next(_numbers)}") as url:
        yield url


@pytest.fixture
def other_empty_database(server: EmbeddedPostgres) -> Iterator[str]:
    """The address of a second new database without our schema."""
    with new_database(server, f"test_{next(_numbers)}") as url:
        yield url


@pytest.fixture
def database(server: EmbeddedPostgres, template: str) -> Iterator[str]:
    """The address of a new migrated database."""
    with new_database(server, f"test_{next(_numbers)}", template=template) as url:
        yield url


@pytest.fixture
def other_database(server: EmbeddedPostgres, template: str) -> Iterator[str]:
    """The address of a second new migrated database."""
    with new_database(server, f"test_{next(_numbers)}", template=template) as url:
        yield url


@pytest.fixture(scope="session")
def reused_database(server: EmbeddedPostgres, template: str) -> Iterator[str]:
    """The address of a migrated database that many tests empty and use in turn."""
    with new_database(server, "reused", template=template) as url:
        yield url


@pytest.fixture
def connection(database: str) -> Iterator[Connection]:
    """A connection to the test's migrated database."""
    with connected(database) as connection:
        yield connection


@pytest.fixture
def repository(tmp_path: Path) -> GitRepository:
    """An empty git repository to commit to."""
    return GitRepository(tmp_path / "project")


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test reaches a real service or another's database by what happens to be set."""
    for name in list(os.environ):
        if (name.startswith(("RAG_", "DAGSTER_")) and name != "RAG_TEST_DATA") or name.endswith("_API_KEY"):
            monkeypatch.delenv(name)
    monkeypatch.delenv("DATABASE_URL", raising=False)
