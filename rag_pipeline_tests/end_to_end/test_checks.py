"""Bad data stops in front of the next stage: checks run in the refresh itself, and say what to do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path

import dagster as dg
import pytest

from rag_pipeline.cli.runs import reason_of
from rag_pipeline.definitions import build_defs
from rag_pipeline.defs.assets import knowledge
from rag_pipeline.errors import CheckFailed
from rag_pipeline.lake.schemas import CHUNKS, DOCUMENTS, chunks_of, documents_of, to_batches
from rag_pipeline.lake.store import Lake, Part
from rag_pipeline.quality import expectations
from rag_pipeline_tests.end_to_end.installation import Installation
from rag_pipeline_tests.git_repository import GitRepository

DAY = "2024-01-02"
PART = Part(tenant="default", repository="handbook", day=date(2024, 1, 2))
TOKEN = "ghp_" + "x9Kq2LmN4pRsT6vWyZ1aBc3dEf5gHi7jKl8m"


@pytest.fixture
def installation(tmp_path: Path, database: str, repository: GitRepository) -> Installation:
    repository.commit(
        "2024-01-02T10:00",
        {
            "guide.md": "# Guide\n\nHow to start the engine of the rocket.\n",
            "engine.py": "def start() -> None:\n    print('ignition')\n",
        },
    )
    source = {"source": str(repository.path), "name": "handbook"}
    return Installation(tmp_path / "home", database, [source], checks=True)


def evaluations(result: dg.ExecuteInProcessResult) -> dict[str, dg.AssetCheckEvaluation]:
    # A run over an old day makes nothing fresh; test_freshness has that.
    found = [one for one in result.get_asset_check_evaluations() if one.check_name != "index_is_fresh"]
    return {f"{e.asset_key.to_user_string()}.{e.check_name}": e for e in found}


def rewrite(lake: Lake, stage: str, change: Callable[[list], list]) -> None:
    """What a defect of the stage would have left in the lake."""
    schema, nouns_of = {"documents": (DOCUMENTS, documents_of), "chunks": (CHUNKS, chunks_of)}[stage]
    nouns = [noun for batch in lake.read(stage, PART) for noun in nouns_of(batch)]
    fingerprint = lake.fingerprint(stage, PART) or ""
    with lake.writer(stage, PART, schema=schema) as writer:
        for batch in to_batches(change(nouns), schema):
            writer.add(batch)
        writer.fingerprint = f"{fingerprint}!"


def with_defect(monkeypatch: pytest.MonkeyPatch, stage: str, change: Callable[[list], list]) -> None:
    """Let the stage's work be followed by a change of what it wrote."""
    name = {"documents": "clean_items", "chunks": "chunk_documents"}[stage]
    work = getattr(knowledge, name)

    def defective(lake, *args, **kwargs):
        report = work(lake, *args, **kwargs)
        rewrite(lake, stage, change)
        return report

    monkeypatch.setattr(knowledge, name, defective)


def test_a_healthy_refresh_passes_every_check_and_the_next_one_looks_at_nothing(installation, monkeypatch):
    result, _ = installation.try_run(DAY)
    assert result.success
    found = evaluations(result)
    assert {name for name in found if found[name].passed} == set(found)
    assert {"raw_docs.identities", "raw_code.days", "documents.no_secrets", "chunks.coverage"} <= set(found)
    assert "passed" in found["chunks.coverage"].metadata["expectations"].value
    assert found["chunks.coverage"].metadata["rows_checked"].value > 0
    assert found["chunks.coverage"].metadata["days"].value == DAY

    def never(*_: object) -> None:
        raise AssertionError("nothing changed, and yet something was judged")

    monkeypatch.setattr(expectations, "judge", never)
    again, _ = installation.try_run(DAY)
    assert again.success
    assert all(e.passed for e in evaluations(again).values())
    assert evaluations(again)["chunks.coverage"].metadata["parts_that_passed_before"].value == "1"


def test_documents_with_a_secret_are_not_cut_until_they_are_mended(installation, monkeypatch):
    def leak(documents):
        return [replace(d, text=f"{d.text}\ntoken = {TOKEN}\n") if d.path == "guide.md" else d for d in documents]

    with monkeypatch.context() as defect:
        with_defect(defect, "documents", leak)
        result, pipeline = installation.try_run(DAY)
    assert not result.success
    failed = evaluations(result)["documents.no_secrets"]
    assert (failed.passed, failed.severity) == (False, dg.AssetCheckSeverity.ERROR)
    assert "chunks" not in pipeline.reports
    assert installation.documents() == {}
    reason = reason_of(result)
    assert isinstance(reason, CheckFailed)
    assert "documents.no_secrets failed: expected that the detector of secrets finds none" in str(reason)
    assert "redaction.allowed" in str(reason)
    assert TOKEN not in str([e.metadata for e in evaluations(result).values()])
    assert "handbook:guide.md" in failed.metadata["sample_of_no_secrets"].value

    mended, _ = installation.try_run(DAY)
    assert mended.success
    assert set(installation.documents()) == {"handbook:guide.md", "handbook:engine.py"}


def test_chunks_that_leave_something_out_do_not_reach_the_index(installation, monkeypatch):
    with_defect(monkeypatch, "chunks", lambda chunks: chunks[1:])
    result, pipeline = installation.try_run(DAY)
    assert not result.success
    assert "embeddings" not in pipeline.reports
    assert "chunks.all_cut failed" in str(reason_of(result))
    installation.more = {"quality": {"accepted": ["chunks.all_cut"]}}
    accepted, _ = installation.try_run(DAY)
    assert accepted.success
    assert "accepted by quality.accepted" in evaluations(accepted)["chunks.coverage"].metadata["expectations"].value


def test_checks_launched_alone_look_at_everything_afresh(installation):
    installation.run(DAY)
    rewrite(installation.pipeline().lake(), "chunks", lambda chunks: [*chunks, chunks[0]])
    defs = build_defs(installation.settings, pipeline=installation.pipeline())
    alone = dg.define_asset_job("alone", selection=dg.AssetSelection.checks_for_assets("chunks"))
    merged = dg.Definitions.merge(defs, dg.Definitions(jobs=[alone]))
    result = merged.resolve_job_def("alone").execute_in_process(
        instance=dg.DagsterInstance.ephemeral(), raise_on_error=False
    )
    assert not result.success
    failed = evaluations(result)["chunks.identities"]
    assert failed.metadata["days"].value == "all"
    assert "chunks.chunk_unique failed" in str(failed.description)


def test_a_finding_that_is_not_there_cannot_be_accepted(installation):
    installation.more = {"quality": {"accepted": ["chunks.no_such_thing"]}}
    with pytest.raises(Exception, match=r"no finding 'chunks.no_such_thing': choose from .*chunks.covered"):
        build_defs(installation.settings)
