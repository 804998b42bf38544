"""A stage's connection serves the whole stage, and what it has to put down survives a server that was restarted."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from rag_pipeline.defs.failures import quarantine
from rag_pipeline.index.database import connect, connected
from rag_pipeline.model import DayRange, Failure
from rag_pipeline_tests.end_to_end.installation import Installation
from rag_pipeline_tests.knowledge import DAY, NOW

DAYS = DayRange(first=date(2024, 1, 1), last=date(2024, 12, 31))
FAILURE = Failure(
    tenant="acme", source_type="docs", source_id="handbook:a.md", stage="chunks", repository="handbook", day=DAY,
    source_updated_at=NOW, reason="cannot be cut",
)  # fmt: skip


@pytest.fixture
def installation(tmp_path: Path, database: str) -> Installation:
    return Installation(tmp_path / "home", database, [])


@pytest.mark.parametrize("is_lost", [False, True])
def test_what_failed_is_put_on_record_whatever_became_of_the_connection(
    installation: Installation, database: str, is_lost: bool
):
    pipeline = installation.pipeline()
    with pipeline.stage("chunks") as held:
        if is_lost:
            with connect(database) as other:
                other.execute("SELECT pg_terminate_backend(%s, 5000)", [held.info.backend_pid])
        found = quarantine(pipeline, held, [FAILURE], stage="chunks", days=DAYS, items={})
        assert held.closed is is_lost
    assert "cannot be cut" in str(found["quarantined_items"])
    with connected(database) as connection:
        rows = connection.execute("SELECT source_id, reason FROM rag.ingestion_failures").fetchall()
    assert rows == [("handbook:a.md", "cannot be cut")]
    assert set(pipeline.seconds) == {"chunks"}
