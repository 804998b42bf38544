"""The pipeline_report asset in a whole installation: from an empty index to one with runs and an evaluation."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import dagster as dg
import psycopg
import pytest

from rag_pipeline.definitions import REPORT_JOB, build_defs
from rag_pipeline.defs.assets.report import PIPELINE_REPORT
from rag_pipeline_tests.end_to_end.installation import Installation
from rag_pipeline_tests.git_repository import GitRepository

QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


@pytest.fixture
def installation(tmp_path: Path, database: str, repository: GitRepository) -> Installation:
    repository.commit("2024-01-20T10:00", {"guide.md": "# Guide\n\nHow the broker is restarted.\n", "a.py": "x = 1\n"})
    source = {"source": str(repository.path), "name": "acme/project", "branch": "main"}
    made = Installation(tmp_path / "home", database, [source], start_date=date(2024, 1, 19))
    made.instance = dg.DagsterInstance.ephemeral()
    return made


def report(installation: Installation) -> dict[str, Any]:
    """Run the report's job; its metadata."""
    job = build_defs(installation.settings, pipeline=installation.pipeline()).resolve_job_def(REPORT_JOB)
    result = job.execute_in_process(instance=installation.instance, run_config=QUIET)
    (event,) = result.asset_materializations_for_node(PIPELINE_REPORT)
    return {name: entry.value for name, entry in event.metadata.items()}


def test_an_empty_index_says_so(installation):
    found = report(installation)
    assert found["documents"] == 0 and "materialize" in found["overview"]
    assert not {"largest_lag_hours", "ndcg_at_10", "reused_share"} & set(found), "what is not known is no zero"
    assert "Nothing is indexed yet" in Path(found["page"]).read_text()
    assert Path(found["picture"]).read_bytes().startswith(b"\x89PNG")


def test_runs_make_numbers_and_a_page(installation, repository):
    installation.run("2024-01-19", "2024-01-31")
    repository.commit(
        "2024-01-30T10:00", {"copy.md": "# Guide\n\nHow the broker is restarted.\n", "b.md": "# New\n\nOf today.\n"}
    )
    installation.run("2024-01-30", "2024-01-31")
    found = report(installation)
    assert (found["documents"], found["repositories"]) == (4, 1)
    assert found["chunks"] >= 4 and found["tokens"] > 4 and found["lake_bytes"] > 0
    assert 0 < found["reused_share"] < 1
    assert found["overview"].startswith("![overview](data:image/png;base64,")
    assert "| acme/project | docs |" in found["report"]
    assert found["html"]["html"] == Path(found["page"]).read_text()
    page = Path(found["page"]).read_text()
    assert "acme/project" in page and 'aria-label="Chunks in the index.' in page
    assert found["page"] == str(installation.home / "reports" / "pipeline_report.html")
    before = sizes(installation)
    installation.run("2024-01-30", "2024-01-31")
    report(installation)
    assert sizes(installation) == before, "nothing changed: no row"


def sizes(installation: Installation) -> list[Any]:
    with psycopg.connect(installation.database) as connection:
        return connection.execute("SELECT xmin::text, s::text FROM rag.index_sizes s ORDER BY 2").fetchall()
