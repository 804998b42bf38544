from __future__ import annotations

from collections.abc import Iterator

import pytest

from rag_pipeline.embedded import EmbeddedPostgres
from rag_pipeline.index.database import Connection, connected
from rag_pipeline_tests.knowledge import empty, new_database


@pytest.fixture(scope="session")
def _shared(server: EmbeddedPostgres, template: str) -> Iterator[str]:
    with new_database(server, "shared_index", template=template) as url:
        yield url


@pytest.fixture
def database(_shared: str) -> str:
    """The address of a migrated database with nothing in it."""
    empty(_shared)
    return _shared


@pytest.fixture
def connection(database: str) -> Iterator[Connection]:
    """A connection to a new migrated database."""
    with connected(database) as connection:
        yield connection
