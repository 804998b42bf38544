"""One refresh as `rag-pipeline materialize` does it, with vectors that cost nothing, in a process of its own.

`python -m rag_pipeline_tests.bench.scale_worker`, in the folder of a `rag_pipeline.toml` and a `lines.npy`, with
RAG_HOME set. Prints as JSON what the run took, stage by stage, and what it did. Libraries are loaded before.
"""

from __future__ import annotations

import importlib
import json
import os
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from rag_pipeline_tests.bench.scale_corpus import ProjectedEmbedder


def main() -> None:
    """Plan, run the job over the days that are due, tell."""
    from rag_pipeline.cli.environment import dagster_environment
    from rag_pipeline.cli.runs import prepare
    from rag_pipeline.index.database import connected
    from rag_pipeline.lake.store import Lake
    from rag_pipeline.refresh import Models, plan, serving_space
    from rag_pipeline.settings import load_settings

    _load()
    settings = load_settings()
    os.environ.update(dagster_environment(settings))
    Path(os.environ["RAG_DAGSTER_STORAGE"]).mkdir(parents=True, exist_ok=True)
    url = prepare(settings)
    embedder = ProjectedEmbedder(np.load("lines.npy", mmap_mode="r"))

    def make(*_: object, **__: object) -> ProjectedEmbedder:
        return embedder

    started, busy = time.perf_counter(), time.process_time()
    with connected(url) as connection:
        written = _written(connection)
        space = serving_space(connection, Models(settings=settings.embedding, environ={}, make=make))
        lake = Lake(settings.lake_url)
        found = plan(settings, connection=connection, space=space, access=None, lake=lake, now=datetime.now(UTC))
    seconds = {"plan": time.perf_counter() - started}
    done: dict[str, Any] = {"rows_written": 0, "embedded": 0, "failures": 0, "days": 0, "segments_merged": 0}
    for days in found.ranges:
        done["days"] += len(days)
        _run(settings, days, make, seconds, done)
    with connected(url) as connection:
        done["wal_bytes"] = _written(connection) - written
    done["processor_s"] = time.process_time() - busy
    print(json.dumps(done | {"seconds": seconds}))


def _load() -> None:
    """Libraries that a stage would load when it first needs them: that takes seconds, whatever there is to do."""
    for name in ("great_expectations", "matplotlib.figure", "matplotlib.dates", "pandas", "rag_pipeline.definitions"):
        importlib.import_module(name)


def _run(settings: Any, days: Any, make: Any, seconds: dict[str, float], done: dict[str, Any]) -> None:
    import dagster as dg

    from rag_pipeline.cli.runs import reason_of
    from rag_pipeline.definitions import REFRESH_JOB, build_defs
    from rag_pipeline.defs.resources import Pipeline
    from rag_pipeline.progress import silent

    with dg.DagsterInstance.get() as instance:
        pipeline = Pipeline(settings=settings, watch=silent, make_embedder=make)
        job = build_defs(settings, pipeline=pipeline).resolve_job_def(REFRESH_JOB)
        tags = {"dagster/partition": days.last.isoformat()} if len(days) == 1 else {
            "dagster/asset_partition_range_start": days.first.isoformat(),
            "dagster/asset_partition_range_end": days.last.isoformat(),
        }  # fmt: skip
        result = job.execute_in_process(
            instance=instance, tags=tags, raise_on_error=False,
            run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
        )  # fmt: skip
        if not result.success:
            raise reason_of(result)
    for stage, took in pipeline.seconds.items():
        seconds[stage] = seconds.get(stage, 0.0) + took
    reports: dict[str, Any] = pipeline.reports
    done["rows_written"] += reports["knowledge_index"].written.rows
    done["segments_merged"] += reports["knowledge_index"].segments_merged
    done["embedded"] += reports["embeddings"].embedded
    done["failures"] += sum(len(reports[stage].failures) for stage in ("raw", "documents", "chunks", "knowledge_index"))


def _written(connection: Any) -> int:
    """Bytes that the server has written to its log so far."""
    (place,) = connection.execute("SELECT pg_current_wal_lsn() - '0/0'::pg_lsn").fetchone()
    return int(place)


if __name__ == "__main__":
    main()
