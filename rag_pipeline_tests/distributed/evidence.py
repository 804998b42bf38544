"""What Dagster's storage and the index say of what has happened."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import psycopg

from rag_pipeline.embedded import EmbeddedPostgres

POOL_OF = {"raw_git": "git", "raw_github": "github", "raw_webhook_drops": "drops", "embeddings": "embedding"}
_IDENTITY = "d.tenant_id, d.source_type, d.source_id"
_INDEX = {
    "documents": "SELECT tenant_id, source_type, source_id, repository, scope, path, language, title, url, anchor,"
    " metadata::text, content_hash, fingerprint, state_hash, source_updated_at, deleted FROM rag.documents"
    " ORDER BY 1, 2, 3",
    "chunks": f"SELECT {_IDENTITY}, c.chunk_id, c.position, c.text, c.text_hash, c.heading_path, c.start_char,"
    " c.end_char, c.start_line, c.end_line, c.tokens, c.anchor, c.lead"
    f" FROM rag.documents d JOIN rag.chunks c USING (document_id) ORDER BY {_IDENTITY}, c.position",
    "links": f"SELECT {_IDENTITY}, l.kind, l.target FROM rag.documents d JOIN rag.links l USING (document_id)"
    f" ORDER BY {_IDENTITY}, l.kind, l.target",
    "vectors": "SELECT DISTINCT tenant_id, text_hash, embedding::text FROM rag.vectors_1 JOIN rag.chunks c"
    " USING (text_hash, tenant_id) ORDER BY 1, 2",
    "terms": "SELECT s.tenant_id, p.term, sum(p.chunks - p.removed)"
    " FROM rag.postings p JOIN rag.segments s USING (segment_id)"
    " GROUP BY 1, 2 HAVING sum(p.chunks - p.removed) > 0 ORDER BY 1, 2",
}
Rows = list[tuple[object, ...]]


def index_of(home: Path) -> dict[str, Rows]:
    """Everything that queries see, in an order that does not depend on how it came there."""
    server = EmbeddedPostgres(home)
    server.start()
    with psycopg.connect(server.url()) as connection:
        return {name: connection.execute(query).fetchall() for name, query in _INDEX.items()}


@dataclass(frozen=True, kw_only=True)
class Run:
    """A run of Dagster's, as it is on record."""

    id: str
    status: str
    began: float | None
    ended: float | None
    tags: Mapping[str, str]

    @property
    def worker(self) -> str:
        """Who took it; empty: nobody yet."""
        return self.tags.get("rag/worker", "").partition("@")[0]

    @property
    def days(self) -> str:
        """Of its partitions."""
        first = self.tags.get("dagster/asset_partition_range_start") or self.tags.get("dagster/partition", "")
        return f"{first} to {self.tags.get('dagster/asset_partition_range_end', first)}"

    @property
    def is_over(self) -> bool:
        """Whether nothing will happen in it any more."""
        return self.status in ("SUCCESS", "FAILURE", "CANCELED")


@dataclass(frozen=True, kw_only=True)
class Step:
    """A step at work, from its beginning to its end, or to that of its run."""

    run: str
    key: str
    began: float
    ended: float | None


class Records:
    """Dagster's storage of one RAG_HOME."""

    def __init__(self, home: Path) -> None:
        self._url = EmbeddedPostgres(home).url("dagster")

    def runs(self) -> dict[str, Run]:
        """All runs, in the order in which they were made."""
        rows = self._all("SELECT run_id, status, start_time, end_time FROM runs ORDER BY id")
        tags: dict[str, dict[str, str]] = {}
        for run, key, value in self._all("SELECT run_id, key, value FROM run_tags"):
            tags.setdefault(str(run), {})[str(key)] = str(value)
        return {
            str(id_): Run(id=str(id_), status=str(status), began=began, ended=ended, tags=tags.get(str(id_), {}))  # type: ignore[arg-type]
            for id_, status, began, ended in rows
        }

    def steps(self) -> list[Step]:
        """All steps that began, in that order."""
        query = (
            "SELECT run_id, step_key, dagster_event_type, extract(epoch FROM timestamp)::float8 FROM event_logs"
            " WHERE dagster_event_type IN ('STEP_START', 'STEP_SUCCESS', 'STEP_FAILURE') ORDER BY id"
        )
        began, ended = {}, {}
        for run, step, event, at in self._all(query):
            (began if event == "STEP_START" else ended)[str(run), str(step)] = float(at)  # type: ignore[arg-type]
        return [
            Step(run=run, key=key, began=at, ended=ended.get((run, key))) for (run, key), at in began.items()
        ]  # fmt: skip

    def backfill_status(self, id_: str) -> str:
        """Of a backfill."""
        ((status,),) = self._all("SELECT status FROM bulk_actions WHERE key = %s", id_)
        return str(status)

    def times_said(self, words: str) -> int:
        """Events in the log whose words hold these."""
        ((count,),) = self._all("SELECT count(*) FROM event_logs WHERE event LIKE %s", f"%{words}%")
        return int(count)  # type: ignore[call-overload]

    def places_held(self) -> Rows:
        """Places in pools that a run has or waits for."""
        return self._all(
            "SELECT concurrency_key, run_id FROM concurrency_slots WHERE run_id IS NOT NULL"
            " UNION ALL SELECT concurrency_key, run_id FROM pending_steps"
        )

    def _all(self, query: str, *values: object) -> Rows:
        with psycopg.connect(self._url) as connection:
            return connection.execute(query.encode(), values or None).fetchall()
