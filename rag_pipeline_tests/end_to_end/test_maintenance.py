"""Maintenance in the middle of everything: it takes nothing away that a refresh needs, and says what it did."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest

from rag_pipeline.definitions import MAINTAIN_JOB, build_defs
from rag_pipeline_tests.end_to_end.installation import Installation
from rag_pipeline_tests.git_repository import GitRepository

STAGES = (("raw_docs", "raw_code"), ("documents",), ("chunks",), ("embeddings",), ("knowledge_index",))


@pytest.fixture
def installation(tmp_path: Path, database: str, repository: GitRepository) -> Installation:
    repository.commit("2024-01-02T10:00", {"a.md": "# A\n\nThe first words.\n", "b.md": "# B\n\nOf another thing.\n"})
    repository.commit("2024-01-05T10:00", {"a.md": "# A\n\nEntirely other words.\n", "b.md": None})
    return Installation(tmp_path / "home", database, [{"source": str(repository.path), "name": "project"}])


def maintain(installation: Installation) -> dict[str, dg.MetadataValue]:
    job = build_defs(installation.settings, pipeline=installation.pipeline()).resolve_job_def(MAINTAIN_JOB)
    result = job.execute_in_process(instance=installation._dagster())
    (materialization,) = result.asset_materializations_for_node("index_maintenance")
    return dict(materialization.metadata)


@pytest.mark.slow
def test_maintenance_between_any_two_stages_changes_nothing_of_what_a_refresh_brings(installation):
    for day in ("2024-01-02", "2024-01-05"):
        for stages in STAGES:
            installation.run(day, select=stages)
            maintain(installation)
    assert installation.failures() == []
    assert installation.documents() == {"project:a.md": ["# A\n\nEntirely other words."]}
    assert len(installation.rows()["vectors_1"]) == 1
    # Days are run again as a whole: nothing is embedded, nothing is written.
    embedded, before = list(installation.embedder.embedded), installation.rows()
    installation.run("2024-01-01", "2024-01-31")
    assert (installation.embedder.embedded, installation.rows()["chunks"]) == (embedded, before["chunks"])


@pytest.mark.slow
def test_after_maintenance_old_days_can_still_be_made_again(installation):
    """Their texts' vectors are gone from the index, but not from the lake."""
    installation.run("2024-01-01", "2024-01-04")
    installation.run("2024-01-05")
    maintain(installation)
    embedded = list(installation.embedder.embedded)
    installation.more = {"chunking": {"max_tokens": 61, "min_tokens": 8}}
    for day in ("2024-01-02", "2024-01-05"):
        installation.run(day)
    assert (installation.failures(), installation.embedder.embedded) == ([], embedded)
    assert installation.documents() == {"project:a.md": ["# A\n\nEntirely other words."]}


def test_maintenance_says_what_it_did_and_why(installation):
    assert "nothing to do" in str(maintain(installation)["actions"].value)
    for day in ("2024-01-02", "2024-01-05"):
        installation.run(day)
    metadata = maintain(installation)
    assert "| remove orphan vectors of space 1 | no chunk holds their texts any more | 2 |" in metadata["actions"].value
    assert metadata["rows_removed"].value == 2
    assert "| documents |" in metadata["tables"].value
