"""A whole installation for one test: settings, lake, database, Dagster, a clock, and a model made of words."""

from __future__ import annotations

import functools
import os
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import numpy as np
import psycopg

from rag_pipeline.definitions import RECONCILE_JOB, REFRESH_JOB, build_defs
from rag_pipeline.defs.assets.evaluation import RETRIEVAL_EVALUATION
from rag_pipeline.defs.assets.reconciliation import RECONCILIATION
from rag_pipeline.defs.resources import Pipeline, during_runs
from rag_pipeline.embedding import EmbeddedBatch
from rag_pipeline.index.database import connected
from rag_pipeline.model import DayRange
from rag_pipeline.progress import silent
from rag_pipeline.refresh import Plan, plan, serving_space
from rag_pipeline.settings import Embedding, Settings
from rag_pipeline_tests.github_server.server import GitHubServer

_DIMENSIONS = 64
_QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
_DROPPED_AGO_S = 60.0


class WordEmbedder:
    """Each word is a direction: texts that share words are near. Deterministic, instant, and remembers its texts."""

    provider = "local"
    recipe = "words/v1"
    model_seconds = 0.0

    def __init__(self, model: str = "words", dimensions: int = _DIMENSIONS) -> None:
        self.model = model
        self.dimensions = dimensions
        self.embedded: list[str] = []
        self.calls = 0
        self.refuse: set[str] = set()
        self.fail_after: int | None = None

    def embed(self, texts: Sequence[str]) -> Iterator[EmbeddedBatch]:
        self.calls += 1
        for start in range(0, len(texts), 8):
            if self.fail_after is not None and len(self.embedded) >= self.fail_after:
                raise KeyboardInterrupt
            part = range(start, min(start + 8, len(texts)))
            failures = [(i, "refused") for i in part if any(word in texts[i] for word in self.refuse)]
            good = [i for i in part if i not in dict(failures)]
            self.embedded += [texts[i] for i in good]
            vectors = np.array([self.embed_query(texts[i]) for i in good], dtype=np.float32)
            yield EmbeddedBatch(
                indices=good,
                vectors=vectors.reshape(len(good), -1) if good else np.empty((0, self.dimensions), dtype=np.float32),
                tokens=sum(self.count_tokens([texts[i] for i in good])),
                failures=failures,
            )

    def embed_query(self, text: str) -> np.ndarray[Any, Any]:
        vector = np.full(self.dimensions, 0.01, dtype=np.float32)
        for word in re.findall(r"\w+", text.lower()):
            vector[zlib.crc32(word.encode()) % self.dimensions] += 1.0
        return vector / np.linalg.norm(vector)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(text.split()) for text in texts]

    def input_tokens(self, texts: Sequence[str]) -> list[int]:
        return self.count_tokens(texts)

    def close(self) -> None:
        pass


@dataclass
class Installation:
    """A pipeline from its sources to the index, driven through Dagster as a user would.

    With `github`, time passes on both sides at once: whoever looks at a clock, the other one moves with it.
    """

    home: Path
    database: str
    repositories: Sequence[Mapping[str, Any]]
    start_date: date = date(2024, 1, 1)
    embedder: WordEmbedder = field(default_factory=WordEmbedder)
    """Of the model that the settings name."""
    others: list[WordEmbedder] = field(default_factory=list)
    """Of other models, for spaces that remember them."""
    now: datetime = datetime(2024, 1, 31, 12, tzinfo=UTC)
    instance: dg.DagsterInstance | None = None
    """Where Dagster keeps what happened; for tests that look there. Without it, nothing is kept."""
    more: Mapping[str, Any] = field(default_factory=dict)
    checks: bool = False
    """Whether refreshes check what they make, which takes as long as all the rest of one so small."""
    github: GitHubServer | None = None
    environ: Mapping[str, str] = field(default_factory=dict)
    _made: tuple[Settings, dg.Definitions] | None = None
    _given: Pipeline | None = None

    @property
    def settings(self) -> Settings:
        repositories = [{"tenant": "default", **repository} for repository in self.repositories]
        more = {"embedding": {"model": self.embedder.model}, **self.more}
        if self.github is not None:
            more["github"] = {"base_url": self.github.url, **more.get("github", {})}
        return Settings.model_validate({
            "repositories": repositories, "start_date": self.start_date, "home": self.home,
            "database_url": self.database, "chunking": {"max_tokens": 60, "min_tokens": 8}, **more,
            "quality": {"in_refresh": self.checks, **more.get("quality", {})},
        })  # fmt: skip

    def pipeline(self, *, planned: Plan | None = None) -> Pipeline:
        return Pipeline(
            settings=self.settings, environ=self.environ, clock=self._tick, sleep=self.pass_time, watch=silent,
            make_embedder=self.embedder_for, github_was_asked=planned is not None,
            github_unread=planned.github_unread if planned else (),
            git_read=planned.git_read if planned else frozenset(),
        )  # fmt: skip

    def embedder_for(self, settings: Embedding, *, environ: Mapping[str, str]) -> WordEmbedder:
        """The embedder of the model that these settings name."""
        return next(e for e in [self.embedder, *self.others] if e.model == settings.model)

    def run(
        self,
        first: str | date,
        last: str | date | None = None,
        *,
        select: Sequence[str] = (),
        planned: Plan | None = None,
    ) -> Pipeline:
        """One run over a day or a range; fails the test when the run fails."""
        result, pipeline = self.try_run(first, last, select=select, planned=planned)
        _require_success(result)
        return pipeline

    def try_run(
        self,
        first: str | date,
        last: str | date | None = None,
        *,
        select: Sequence[str] = (),
        planned: Plan | None = None,
    ) -> tuple[dg.ExecuteInProcessResult, Pipeline]:
        pipeline = self.pipeline(planned=planned)
        job = self.job(REFRESH_JOB, pipeline)
        tags = {"dagster/partition": str(first)}
        if last is not None and str(last) != str(first):
            tags = {
                "dagster/asset_partition_range_start": str(first),
                "dagster/asset_partition_range_end": str(last),
            }
        result = job.execute_in_process(
            instance=self._dagster(), tags=tags, raise_on_error=False,
            asset_selection=[dg.AssetKey(name) for name in select] or None, run_config=_QUIET,
        )  # fmt: skip
        return result, pipeline

    def refresh(self) -> list[Pipeline]:
        """What `rag-pipeline materialize` does without days: whatever the index has not seen."""
        todo = self.plan()
        return [self.run(days.first, days.last, planned=todo) for days in todo.ranges]

    def plan(self) -> Plan:
        with connected(self.database) as connection:
            pipeline = self.pipeline()
            space = serving_space(connection, pipeline.models)
            return plan(
                self.settings, connection=connection, space=space, access=pipeline.access, lake=pipeline.lake(),
                now=self._tick(),
            )  # fmt: skip

    def planned(self) -> Sequence[DayRange]:
        return self.plan().ranges

    def reconcile(self, *, confirm: bool = False, repositories: Sequence[str] = ()) -> list[dict[str, Any]]:
        """What `rag-pipeline reconcile` does; what it found, an entry per repository."""
        result, pipeline = self.try_reconcile(confirm=confirm, repositories=repositories)
        _require_success(result)
        found = pipeline.reports["reconciliation"]
        assert isinstance(found, list)
        return found

    def try_reconcile(
        self, *, confirm: bool = False, repositories: Sequence[str] = ()
    ) -> tuple[dg.ExecuteInProcessResult, Pipeline]:
        pipeline = self.pipeline()
        config = {"confirm_removals": confirm, "repositories": list(repositories)}
        result = (
            self.job(RECONCILE_JOB, pipeline)
            .execute_in_process(
                instance=self._dagster(), raise_on_error=False,
                run_config={**_QUIET, "ops": {RECONCILIATION: {"config": config}}},
            )
        )  # fmt: skip
        return result, pipeline

    def evaluate(self) -> dg.ExecuteInProcessResult:
        """One materialization of the retrieval evaluation, as from the UI."""
        job = build_defs(self.settings, pipeline=self.pipeline()).resolve_implicit_global_asset_job_def()
        return job.execute_in_process(
            instance=self._dagster(), asset_selection=[dg.AssetKey(RETRIEVAL_EVALUATION)], raise_on_error=False,
            run_config=_QUIET,
        )  # fmt: skip

    def drop(self, name: str, content: bytes | str, *, seconds_ago: float = _DROPPED_AGO_S) -> Path:
        """A file that was put into the inbox a while ago, by this installation's clock."""
        path = Path(self.settings.inbox_url) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        written = self.now.timestamp() - seconds_ago
        os.utime(path, (written, written))
        return path

    def inbox(self) -> list[str]:
        """Every file there is in the inbox, by its path below it."""
        root = Path(self.settings.inbox_url)
        return sorted(path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file())

    def documents(self, *, tenant: str = "default") -> dict[str, list[str]]:
        """What the index shows: chunk texts in order, by source id, of everything that is not deleted."""
        with psycopg.connect(self.database) as connection:
            rows = connection.execute(
                "SELECT d.source_id, c.text FROM rag.documents d LEFT JOIN rag.chunks c USING (document_id)"
                " WHERE NOT d.deleted AND d.tenant_id = %s ORDER BY d.source_id, c.position",
                (tenant,),
            ).fetchall()
        found: dict[str, list[str]] = {}
        for source_id, text in rows:
            found.setdefault(source_id, []).extend([text] if text is not None else [])
        return found

    def shown(self) -> dict[tuple[str, str], tuple[Any, ...]]:
        """All that the index shows of each living document, with its chunks, by tenant and source id."""
        with psycopg.connect(self.database) as connection:
            rows = connection.execute(
                "SELECT d.tenant_id, d.source_id, d.source_type, d.repository, d.scope, d.title, d.url, d.metadata,"
                " d.source_updated_at, array_agg(row(c.text, c.anchor, c.scope, c.heading_path)::text"
                " ORDER BY c.position) FROM rag.documents d LEFT JOIN rag.chunks c USING (document_id)"
                " WHERE NOT d.deleted GROUP BY d.document_id ORDER BY 1, 2"
            ).fetchall()
        return {(tenant, source_id): tuple(rest) for tenant, source_id, *rest in rows}

    def rows(self) -> dict[str, list[tuple[Any, ...]]]:
        """Every row of the index that a run may write, with the transaction that wrote it."""
        tables = ("documents", "chunks", "embedding_spaces", "vectors_1", "source_progress", "stored_parts")
        with psycopg.connect(self.database) as connection:
            return {
                table: connection.execute(
                    psycopg.sql.SQL("SELECT xmin::text, t::text FROM rag.{} t ORDER BY 2").format(
                        psycopg.sql.Identifier(table)
                    )
                ).fetchall()
                for table in tables
            }

    def failures(self) -> list[tuple[str, str, str]]:
        """What is quarantined: stage, source id and reason."""
        with psycopg.connect(self.database) as connection:
            return connection.execute(
                "SELECT stage, source_id, reason FROM rag.ingestion_failures WHERE resolved_at IS NULL ORDER BY 1, 2"
            ).fetchall()

    def pass_time(self, seconds: float) -> None:
        """Let time pass, here and on GitHub."""
        if self.github is not None:
            self.now = max(self.now, self.github.forge.now)
        self.now += timedelta(seconds=seconds)
        if self.github is not None:
            self.github.forge.now = self.now

    def definitions(self) -> dg.Definitions:
        """What Dagster knows; made again only for other settings, as making them takes as long as running a day."""
        settings = self.settings
        if self._made is None or self._made[0] != settings:
            self._made = settings, build_defs(settings, pipeline=during_runs(lambda: self._given))
        return self._made[1]

    def job(self, name: str, pipeline: Pipeline) -> dg.JobDefinition:
        """A job whose next run gets this pipeline."""
        self._given = pipeline
        return self.definitions().resolve_job_def(name)

    def _dagster(self) -> dg.DagsterInstance:
        return self.instance or _forgetful()

    def _tick(self) -> datetime:
        # Real clocks move between two looks at them.
        self.pass_time(1)
        return self.now


@functools.cache
def _forgetful() -> dg.DagsterInstance:
    """Dagster without a memory of events: keeping one for each asset and day takes half the time of a run so small."""
    instance = dg.DagsterInstance.ephemeral()
    instance.event_log_storage.store_event = lambda event: None  # type: ignore[method-assign]
    return instance


def _require_success(result: dg.ExecuteInProcessResult) -> None:
    assert result.success, [
        (event.message, getattr(event.event_specific_data, "error_display_string", ""))
        for event in result.all_events
        if event.is_failure
    ]
