"""All stages over a range of days without Dagster and without the model: what a run costs apart from both.

As a program it does one such run in a process of its own, for measuring its memory:
`python -m rag_pipeline_tests.bench.stages FOLDER DATABASE_URL FIRST LAST`, where FOLDER holds a `rag_pipeline.toml`.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path

import numpy as np

from rag_pipeline.chunking.stage import chunk_documents
from rag_pipeline.documents.stage import clean_items
from rag_pipeline.embedding import EmbeddedBatch
from rag_pipeline.embedding.embedder import Vectors
from rag_pipeline.embedding.stage import embed_chunks
from rag_pipeline.index.bookkeeping import record_part, stored_parts
from rag_pipeline.index.database import Connection, connected
from rag_pipeline.index.spaces import SpaceVectors, create_space
from rag_pipeline.index.stage import index_documents
from rag_pipeline.lake.store import Lake, Part
from rag_pipeline.model import DayRange, EmbeddingSpace
from rag_pipeline.progress import silent
from rag_pipeline.refresh import RAW_STAGES, Readings, chunking_rules, note_progress, pipeline_fingerprint
from rag_pipeline.settings import Settings, load_settings
from rag_pipeline.sources.git.stage import read_git
from rag_pipeline_tests.bench.wordwise import Wordwise

_DIMENSIONS = 64


class InstantEmbedder(Wordwise):
    """A text's vector is its hash: deterministic, costs nothing, means nothing."""

    provider = "local"
    model = "instant"
    recipe = "hash/v1"
    dimensions: int | None = _DIMENSIONS
    model_seconds = 0.0

    def embed(self, texts: Sequence[str]) -> Iterator[EmbeddedBatch]:
        for start in range(0, len(texts), 64):
            indices = range(start, min(start + 64, len(texts)))
            vectors = np.stack([self.embed_query(texts[index]) for index in indices])
            yield EmbeddedBatch(indices=indices, vectors=vectors, tokens=0)

    def embed_query(self, text: str) -> Vectors:
        digest = hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=_DIMENSIONS).digest()
        vector = np.frombuffer(digest, dtype=np.uint8).astype(np.float32) - 127.5
        return np.asarray(vector / np.linalg.norm(vector), dtype=np.float32)


@dataclass(slots=True, kw_only=True)
class StagesRun:
    """What one run did."""

    rows_written: int = 0
    failures: int = 0
    seconds: dict[str, float] = field(default_factory=dict)


@dataclass(kw_only=True)
class _Stored:
    connection: Connection
    space: EmbeddingSpace
    known: dict[Part, str]

    def fingerprint(self, part: Part) -> str | None:
        return self.known.get(part)

    def record(self, part: Part, fingerprint: str) -> None:
        now = datetime.now(UTC)
        record_part(self.connection, self.space, part, stage="embeddings", fingerprint=fingerprint, now=now)


def run_stages(settings: Settings, days: DayRange, *, connection: Connection) -> StagesRun:
    """What the assets of the refresh job do over these days, on a migrated database."""
    run, lake, embedder = StagesRun(), Lake(settings.lake_url), InstantEmbedder()
    space = create_space(
        connection, provider=embedder.provider, model=embedder.model, recipe=embedder.recipe, dimensions=_DIMENSIONS
    )
    with _timed(run, "raw"):
        read = read_git(settings, lake, days, now=datetime.now(UTC), progress=silent)
    with _timed(run, "documents"):
        documents = clean_items(lake, days, inputs=RAW_STAGES, threads=settings.threads, progress=silent)
    with _timed(run, "chunks"):
        chunks = chunk_documents(
            lake, days, rules=chunking_rules(settings), limits=settings.documents, progress=silent,
        )  # fmt: skip
    with _timed(run, "embeddings"):
        stored = stored_parts(connection, space, days, stage="embeddings")
        embed_chunks(
            lake, days, space=space, embedder=embedder, progress=silent,
            vectors_of=lambda tenant: SpaceVectors(connection, space, tenant=tenant),
            stored=_Stored(connection=connection, space=space, known=stored),
        )  # fmt: skip
    with _timed(run, "knowledge_index"):
        index = index_documents(
            lake, days, connection=connection, space=space, now=datetime.now(UTC), progress=silent,
            fingerprint=pipeline_fingerprint(settings),
        )  # fmt: skip
        note_progress(
            settings, lake, days, connection=connection, space=space, now=datetime.now(UTC), git=read,
            readings=Readings(),
        )  # fmt: skip
    run.rows_written = index.written.rows
    run.failures = len(documents.failures) + len(chunks.failures) + len(index.failures)
    return run


@contextmanager
def _timed(run: StagesRun, stage: str) -> Iterator[None]:
    started = time.perf_counter()
    yield
    run.seconds[stage] = time.perf_counter() - started


def main(folder: str, database: str, first: str, last: str) -> None:
    """One run, its seconds as JSON."""
    settings = load_settings(environ={"RAG_HOME": str(Path(folder) / "home")}, cwd=Path(folder))
    days = DayRange(first=date.fromisoformat(first), last=date.fromisoformat(last))
    with connected(database) as connection:
        run = run_stages(settings, days, connection=connection)
    print(json.dumps({"rows_written": run.rows_written, "failures": run.failures, "seconds": run.seconds}))


if __name__ == "__main__":
    main(*sys.argv[1:])
