"""A day with very many files in one part: every stage says how far it is, again and again."""

from __future__ import annotations

from datetime import date
from itertools import pairwise
from pathlib import Path

import dagster as dg
import pytest

from rag_pipeline.definitions import REFRESH_JOB, build_defs
from rag_pipeline_tests.end_to_end.installation import Installation
from rag_pipeline_tests.git_repository import GitRepository

FILES = 1100
MOST_BETWEEN = 1024
"""Units of work between two tells, and at the ends; the largest batch of any stage."""
QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


class Recorder:
    """Keeps everything that it is told, by stage and unit."""

    def __init__(self) -> None:
        self.told: dict[tuple[str, str], list[tuple[int, int | None]]] = {}

    def __call__(self, stage: str, *, done: int, total: int | None, unit: str) -> None:
        self.told.setdefault((stage, unit), []).append((done, total))


@pytest.mark.slow
def test_no_stage_is_silent_over_one_large_part(tmp_path: Path, database: str, repository: GitRepository):
    repository.commit("2024-01-20T10:00", {f"docs/{n}.md": f"# Part {n}\n\nText number {n}.\n" for n in range(FILES)})
    source = {"source": str(repository.path), "name": "acme/app", "branch": "main"}
    installation = Installation(tmp_path / "home", database, [source], start_date=date(2024, 1, 20))
    pipeline, recorder = installation.pipeline(), Recorder()
    pipeline.watch = recorder
    job = build_defs(installation.settings, pipeline=pipeline).resolve_job_def(REFRESH_JOB)
    assert job.execute_in_process(
        instance=dg.DagsterInstance.ephemeral(), tags={"dagster/partition": "2024-01-20"}, run_config=QUIET
    ).success
    counted = {
        ("raw_docs, raw_code: history of acme/app", "changed paths"): None,
        ("raw_docs, raw_code: files of acme/app", "files"): FILES,
        ("documents", "items"): FILES,
        ("chunks", "items"): FILES,
        ("embeddings", "texts"): FILES,
        ("embeddings: writing the lake", "vectors"): None,
        ("knowledge_index", "documents"): FILES,
    }
    for key, total in counted.items():
        told = recorder.told[key]
        steps = [0, *(done for done, _ in told)]
        assert all(after - before >= 0 for before, after in pairwise(steps)), key
        if key != ("embeddings", "texts"):
            assert max(after - before for before, after in pairwise(steps)) <= MOST_BETWEEN, key
        assert len(told) >= 2, key
        if total is not None:
            assert told[-1] == (total, total), key
    assert ("knowledge_index: segments and graph", "steps") in recorder.told


def test_a_run_log_of_its_own_ends_with_its_stage(tmp_path: Path, database: str, repository: GitRepository):
    repository.commit("2024-01-20T10:00", {"a.md": "# A\n\nText.\n"})
    source = {"source": str(repository.path), "name": "acme/app", "branch": "main"}
    installation = Installation(tmp_path / "home", database, [source], start_date=date(2024, 1, 20))
    pipeline = installation.pipeline()
    pipeline.watch = None
    job = build_defs(installation.settings, pipeline=pipeline).resolve_job_def(REFRESH_JOB)
    result = job.execute_in_process(
        instance=dg.DagsterInstance.ephemeral(), tags={"dagster/partition": "2024-01-20"}, run_config=QUIET
    )
    assert result.success and pipeline.log is None
