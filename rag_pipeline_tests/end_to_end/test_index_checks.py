"""The checks of embeddings and of the index, in the refresh itself: what they stop, and when they look again."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import dagster as dg
import numpy as np
import psycopg
import pytest

from rag_pipeline.cli.runs import reason_of
from rag_pipeline.definitions import build_defs
from rag_pipeline.quality import expectations
from rag_pipeline_tests.end_to_end.installation import Installation
from rag_pipeline_tests.git_repository import GitRepository

DAY = "2024-01-02"
CHECKS = {"agrees_with_lake", "no_orphans", "findable", "recall", "indexes_valid", "isolation"}


@pytest.fixture
def installation(tmp_path: Path, database: str, repository: GitRepository) -> Installation:
    repository.commit(
        "2024-01-02T10:00",
        {"guide.md": "# Guide\n\nHow to start the engine.\n", "engine.py": "def start() -> None:\n    print('on')\n"},
    )
    source = {"source": str(repository.path), "name": "handbook"}
    return Installation(tmp_path / "home", database, [source], checks=True)


def evaluations(
    result: dg.ExecuteInProcessResult, asset: str = "knowledge_index"
) -> dict[str, dg.AssetCheckEvaluation]:
    found = result.get_asset_check_evaluations()
    # A run over an old day makes nothing fresh; test_freshness has that.
    found = [evaluation for evaluation in found if evaluation.check_name != "index_is_fresh"]
    return {e.check_name: e for e in found if e.asset_key.to_user_string() == asset}


def alone(installation: Installation, asset: str = "knowledge_index") -> dg.ExecuteInProcessResult:
    """Checks launched without a run, as from the UI."""
    defs = build_defs(installation.settings, pipeline=installation.pipeline())
    job = dg.define_asset_job("alone", selection=dg.AssetSelection.checks_for_assets(asset))
    merged = dg.Definitions.merge(defs, dg.Definitions(jobs=[job]))
    return merged.resolve_job_def("alone").execute_in_process(
        instance=dg.DagsterInstance.ephemeral(), raise_on_error=False,
        run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
    )  # fmt: skip


def execute(installation: Installation, *statements: str) -> None:
    with psycopg.connect(installation.database, autocommit=True) as connection:
        connection.execute("SET session_replication_role = 'replica'")
        for statement in statements:
            connection.execute(statement)


def test_the_index_is_looked_at_after_a_run_that_wrote_and_then_once_a_day(installation, monkeypatch):
    looked: list[int] = []
    judge = expectations.judge
    monkeypatch.setattr(expectations, "judge", lambda *given: (looked.append(1), judge(*given))[1])

    result, _ = installation.try_run(DAY)
    found = evaluations(result)
    assert result.success and found.keys() == CHECKS and all(e.passed for e in found.values())
    assert found["agrees_with_lake"].metadata["lake_documents"].value == "2"
    assert "every search is exact" in found["recall"].metadata["not_looked_at"].value
    looked.clear()

    again, _ = installation.try_run(DAY)
    found = evaluations(again)
    assert looked == [] and all(e.passed for e in found.values())
    assert found["findable"].metadata["looked_at_whole"].value.startswith("2024-01-31 12:00")

    installation.now += timedelta(days=1)
    later, _ = installation.try_run(DAY)
    assert looked == [1] and "looked_at_whole" not in evaluations(later)["findable"].metadata


def test_of_a_large_index_a_run_looks_at_its_own_days_and_once_a_day_at_all(installation, repository):
    installation.more = {"quality": {"knowledge_index": {"whole_up_to_chunks": 0}}}
    installation.run(DAY)
    execute(installation, "DELETE FROM rag.postings WHERE term = 'engin'")
    repository.commit("2024-01-03T10:00", {"more.md": "# More\n\nSomething else.\n"})
    result, _ = installation.try_run("2024-01-03")
    found = evaluations(result)
    assert result.success and found["findable"].metadata["looked_at_whole"].value.startswith("2024-01-31 12:00")
    assert "only what the run's days hold" in found["findable"].metadata["not_looked_at"].value
    assert found["agrees_with_lake"].metadata["lake_documents"].value == "1"

    repository.commit("2024-01-04T10:00", {"last.md": "# Last\n\nThe last of all.\n"})
    installation.now += timedelta(days=1)
    result, _ = installation.try_run("2024-01-04")
    assert not result.success and not evaluations(result)["findable"].passed


@pytest.mark.slow
def test_what_a_run_did_not_bring_into_a_large_index_fails_it(installation, repository):
    installation.more = {"quality": {"knowledge_index": {"whole_up_to_chunks": 0}}}
    installation.run(DAY)
    repository.commit("2024-01-03T10:00", {"more.md": "# More\n\nSomething else.\n"})
    installation.run("2024-01-03")
    execute(installation, "DELETE FROM rag.chunks WHERE text LIKE '%Something%'")
    repository.commit("2024-01-03T11:00", {"other.md": "# Other\n\nOne more of this day.\n"})
    result, _ = installation.try_run("2024-01-03")
    assert not result.success and not evaluations(result)["agrees_with_lake"].passed
    # The next run looks at everything, though it writes nothing.
    again, _ = installation.try_run("2024-01-03")
    assert "looked_at_whole" not in evaluations(again)["findable"].metadata and not again.success


def test_what_was_broken_fails_the_run_until_it_is_mended(installation, repository):
    installation.run(DAY)
    execute(installation, "DELETE FROM rag.postings WHERE term = 'engin'", "DROP INDEX rag.chunks_document")
    repository.commit("2024-01-03T10:00", {"more.md": "# More\n\nSomething else.\n"})
    result, _ = installation.try_run("2024-01-03")
    assert not result.success
    found = evaluations(result)
    assert {name for name, e in found.items() if not e.passed} == {"findable", "indexes_valid"}
    assert found["findable"].severity == dg.AssetCheckSeverity.ERROR and found["findable"].blocking
    assert "no posting of 'engin'" in found["findable"].metadata["sample_of_wrong_postings"].value
    assert "CREATE INDEX chunks_document ON" in found["indexes_valid"].metadata["sample_of_missing_indexes"].value
    assert "knowledge_index.wrong_postings failed" in str(reason_of(result))
    assert "TRUNCATE rag.segments" in str(reason_of(result))
    # A run that writes nothing looks again, because the last look found something.
    assert not installation.try_run("2024-01-03")[0].success
    execute(
        installation, "CREATE INDEX chunks_document ON rag.chunks (document_id, position)",
        "TRUNCATE rag.segments, rag.postings",
    )  # fmt: skip
    assert installation.try_run("2024-01-03")[0].success


@pytest.mark.slow
def test_what_is_accepted_stops_nothing_and_is_still_shown(installation):
    installation.run(DAY)
    execute(installation, "ALTER TABLE rag.usage DISABLE ROW LEVEL SECURITY")
    assert not alone(installation).success
    installation.more = {"quality": {"accepted": ["knowledge_index.tables_without_row_security"]}}
    result = alone(installation)
    assert result.success
    shown = evaluations(result)["isolation"].metadata
    assert "rag.usage" in shown["sample_of_tables_without_row_security"].value


def test_vectors_that_tell_nothing_apart_do_not_reach_the_index(installation, repository, monkeypatch):
    repository.commit("2024-01-03T10:00", {f"{n}.md": f"# Page {n}\n\nWhat stands on it.\n" for n in range(12)})
    embedder = installation.embedder
    with monkeypatch.context() as defect:
        defect.setattr(type(embedder), "embed_query", lambda self, _: np.full(self.dimensions, self.dimensions**-0.5))
        result, pipeline = installation.try_run(DAY, "2024-01-03")
    assert not result.success
    assert "knowledge_index" not in pipeline.reports and installation.documents() == {}
    found = evaluations(result, "embeddings")
    assert {name for name, e in found.items() if not e.passed} == {"vectors"}
    assert "embeddings.not_constant failed" in str(reason_of(result))
    # As the remedy says.
    execute(installation, "DELETE FROM rag.vectors_1")
    for path in (Path(installation.settings.lake_url) / "embeddings").rglob("*.parquet"):
        path.unlink()
    installation.run(DAY, "2024-01-03")
    assert len(installation.documents()) == 14
    assert alone(installation, "embeddings").success
