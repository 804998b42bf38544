from __future__ import annotations

import pytest

from rag_pipeline_tests.databases import empty


@pytest.fixture
def database(reused_database: str) -> str:
    """The address of a migrated database with nothing in it."""
    empty(reused_database)
    return reused_database
