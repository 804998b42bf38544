"""How long the look at the whole index takes, over an index of the benchmark's lake."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Final

import numpy as np

from rag_pipeline.index.database import connected
from rag_pipeline.index.migrations import migrate
from rag_pipeline.index.spaces import SpaceVectors, activate, create_space
from rag_pipeline.index.stage import index_documents
from rag_pipeline.lake.derive import parts_in
from rag_pipeline.lake.schemas import ids_of
from rag_pipeline.lake.store import Lake
from rag_pipeline.model import DayRange
from rag_pipeline.progress import silent
from rag_pipeline.quality.knowledge_index import index_rules, inspect_index, judge_index
from rag_pipeline.settings import Settings
from rag_pipeline_tests.bench.report import Report
from rag_pipeline_tests.embedded.servers import temporary_postgres

_DIMENSIONS: Final = 384
_CLUSTERS: Final = 400
_DIRECTIONS: Final = 24
_NOW: Final = datetime(2024, 6, 2, tzinfo=UTC)


def bench_index_checks(
    lake: Lake, days: DayRange, size: int, report: Report, *, section: str, limit: float | None
) -> float:
    """Index the lake with vectors in clusters, and look at all of it; seconds of the look and of its judgement."""
    settings = Settings.model_validate({"start_date": days.first})
    with temporary_postgres() as server:
        migrate(server.url("postgres"))
        with connected(server.url("postgres")) as connection:
            space = create_space(connection, provider="fake", model="bench", recipe="v1", dimensions=_DIMENSIONS)
            _store(lake, days, SpaceVectors(connection, space, tenant="bench"))
            index_documents(
                lake, days, connection=connection, space=space, fingerprint="bench", now=_NOW, progress=silent
            )
            activate(connection, space)
            started = time.perf_counter()
            inspection = inspect_index(connection, lake, days, space, settings=settings, now=_NOW)
            outcome = judge_index(inspection, index_rules(settings))
            seconds = time.perf_counter() - started
    recall = inspection.recall
    note = f"{outcome.rows:,} rows; looking {inspection.seconds:.1f} s"
    if recall is not None and recall.recall is not None:
        note += f"; recall at 10 {recall.recall:.3f} of {recall.questions} vectors"
    report.figure(section, f"{size:,} chunks: knowledge_index", seconds, "s", note=note, at_most=limit)
    failed = [f"{finding.rule.name}: {finding.observed}" for finding in outcome.failed]
    report.check(section, f"{size:,} chunks: knowledge_index passes", not failed, "; ".join(failed))
    return seconds


def _store(lake: Lake, days: DayRange, vectors: SpaceVectors) -> None:
    """Vectors as those of texts lie: in clusters, and in far fewer directions than they have numbers."""
    random = np.random.default_rng(5)
    centres = random.normal(size=(_CLUSTERS, _DIRECTIONS))
    spread = random.normal(size=(_DIRECTIONS, vectors.space.dimensions)) / _DIRECTIONS**0.5
    for part in parts_in(lake, ["chunks"], days):
        for batch in lake.read("chunks", part, columns=["text_hash"]):
            hashes = ids_of(batch.column("text_hash"))
            near = centres[random.integers(0, _CLUSTERS, len(hashes))]
            made = (near + 0.5 * random.normal(size=near.shape)) @ spread
            made += 0.05 * random.normal(size=made.shape)
            vectors.store(hashes, (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32))
