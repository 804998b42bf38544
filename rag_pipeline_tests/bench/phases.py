"""One refresh as `rag-pipeline materialize` does it, phase by phase: `python -m rag_pipeline_tests.bench.phases`.

Run in the folder of a `rag_pipeline.toml`, with RAG_HOME set; prints seconds per phase as JSON, in order.
"""

from __future__ import annotations

import json
import time

_last = time.perf_counter()
_seconds: dict[str, float] = {}


def _ends(phase: str) -> None:
    global _last
    now = time.perf_counter()
    _seconds[phase] = now - _last
    _last = now


def main() -> None:
    """The phases; every import stands where the command has it."""
    import os
    from datetime import UTC, datetime
    from pathlib import Path

    from rag_pipeline.cli import app  # noqa: F401
    from rag_pipeline.cli.environment import dagster_environment
    from rag_pipeline.cli.runs import plan_refresh, prepare
    from rag_pipeline.settings import load_settings

    _ends("imports of the command")
    settings = load_settings()
    os.environ.update(dagster_environment(settings))
    Path(os.environ["RAG_DAGSTER_STORAGE"]).mkdir(parents=True, exist_ok=True)
    url = prepare(settings)
    _ends("database and migrations")
    ranges = plan_refresh(settings, url).ranges
    _ends("plan: fetch, positions")
    import dagster as dg

    _ends("import of dagster")
    from rag_pipeline.definitions import REFRESH_JOB, build_defs
    from rag_pipeline.defs.resources import Pipeline
    from rag_pipeline.progress import silent

    _ends("import of the definitions")
    with dg.DagsterInstance.get() as instance:
        _ends("Dagster's storage")
        pipeline = Pipeline(settings=settings, watch=silent, clock=lambda: datetime.now(UTC))
        job = build_defs(settings, pipeline=pipeline).resolve_job_def(REFRESH_JOB)
        _ends("definitions of the job")
        for days in ranges:
            tags = {"dagster/partition": days.last.isoformat()} if len(days) == 1 else {
                "dagster/asset_partition_range_start": days.first.isoformat(),
                "dagster/asset_partition_range_end": days.last.isoformat(),
            }  # fmt: skip
            job.execute_in_process(
                instance=instance, tags=tags,
                run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
            )  # fmt: skip
        _ends("run")
    _ends("end")
    stages = sum(pipeline.seconds.values())
    _seconds["run"] -= stages
    ordered = {}
    for phase, seconds in _seconds.items():
        if phase == "run":
            ordered |= {f"stage {stage}": spent for stage, spent in pipeline.seconds.items()}
            phase = "run without its stages: Dagster's events"
        ordered[phase] = seconds
    print(json.dumps(ordered))


if __name__ == "__main__":
    main()
