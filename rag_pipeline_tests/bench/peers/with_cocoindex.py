"""CocoIndex: its example `code_embedding`, files to pgvector, with memoised functions and rows that it owns.

RecursiveSplitter at 1,000 characters, at least 300, 300 shared, by language (where short chunks are asked for, at as
many as ours have, with none shared); 64 texts at most a call of the model, as
in its SentenceTransformerEmbedder. The example declares a vector index without naming a method, which is ivfflat;
where an index is asked for it is HNSW. https://cocoindex.io/docs: "Postgres connector", "Functions".
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Annotated, Any

os.environ["COCOINDEX_DISABLE_USAGE_TRACKING"] = "1"  # read when it is imported

import asyncpg
import cocoindex as coco
import numpy as np
from cocoindex.connectors import localfs, postgres
from cocoindex.ops.text import RecursiveSplitter, detect_code_language
from cocoindex.resources.chunk import Chunk
from cocoindex.resources.file import FileLike
from cocoindex.resources.id import IdGenerator
from cocoindex.resources.schema import VectorSchema
from numpy.typing import NDArray
from pgvector.asyncpg import register_vector

from rag_pipeline_tests.bench.peers.index_worker import HNSW, SHORT, SHORT_CHARACTERS, Job
from rag_pipeline_tests.bench.peers.models import DIMENSIONS, Counted

_DATABASE = coco.ContextKey[asyncpg.Pool]("peer_database")
_VECTOR = VectorSchema(dtype=np.dtype(np.float32), size=DIMENSIONS)
_splitter = RecursiveSplitter()
_opened: dict[str, Any] = {}


@dataclass
class Page:
    """A row."""

    id: int
    filename: str
    code: str
    embedding: Annotated[NDArray[np.float32], _VECTOR]
    start_line: int
    end_line: int


@coco.lifespan
async def _lifespan(builder: coco.EnvironmentBuilder) -> AsyncIterator[None]:
    job: Job = _opened["job"]
    builder.settings.db_path = Path(job.state) / "cocoindex.db"
    async with asyncpg.create_pool(job.url) as pool:
        builder.provide(_DATABASE, pool)
        yield


@coco.fn.as_async(batching=True, runner=coco.GPU, max_batch_size=64)
def _embed_batch(texts: list[str]) -> list[NDArray[np.float32]]:
    return list(_opened["model"].passages(texts))


@coco.fn(memo=True, version=1, logic_tracking="self")
async def _embed(text: str) -> NDArray[np.float32]:
    return await _embed_batch(text)  # type: ignore[no-any-return, arg-type]


@coco.fn
async def _process_chunk(
    chunk: Chunk, filename: PurePath, id_gen: IdGenerator, table: postgres.TableTarget[Page]
) -> None:
    row = Page(
        id=await id_gen.next_id(chunk.text), filename=str(filename), code=chunk.text,
        embedding=await _embed(chunk.text), start_line=chunk.start.line, end_line=chunk.end.line,
    )  # fmt: skip
    table.declare_row(row=row)


def _sizes() -> dict[str, int]:
    if _opened["job"].variant == SHORT:
        return {"chunk_size": SHORT_CHARACTERS, "min_chunk_size": 3 * SHORT_CHARACTERS // 10, "chunk_overlap": 0}
    return {"chunk_size": 1000, "min_chunk_size": 300, "chunk_overlap": 300}


@coco.fn(memo=True)
async def _process_file(file: FileLike, table: postgres.TableTarget[Page]) -> None:
    text = await file.read_text()
    language = detect_code_language(filename=str(file.file_path.path.name))
    chunks = _splitter.split(text, language=language, **_sizes())
    id_gen = IdGenerator()
    path = file.file_path.path.relative_to(_opened["job"].folder)
    await coco.map(_process_chunk, chunks, path, id_gen, table)


@coco.fn
async def _main(folder: Path, indexed: bool) -> None:
    schema = await postgres.TableSchema.from_class(Page, primary_key=["id"])
    table = await postgres.mount_table_target(_DATABASE, table_name="pages", table_schema=schema)
    if indexed:
        table.declare_vector_index(column="embedding", method="hnsw")
    else:
        table.declare_vector_index(column="embedding")
    await coco.mount_each(_process_file, localfs.walk_dir(folder, recursive=True).items(), table)


def open_peer(job: Job, model: Counted) -> CocoIndex:
    """The library; it connects when it is used."""
    _opened.update(job=job, model=model)
    return CocoIndex(job)


class CocoIndex:
    """See the module."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._loop = asyncio.new_event_loop()
        self._connection: asyncpg.Connection | None = None

    def refresh(self, folder: Path) -> None:
        """Update the app."""
        app = coco.App(coco.AppConfig(name="Pages"), _main, folder=folder, indexed=self._job.variant in (HNSW, SHORT))
        app.update_blocking()
        coco.stop_blocking()

    def ask(self, text: str, vector: list[float]) -> list[tuple[str, str]]:
        """With the query of its example."""
        return self._loop.run_until_complete(self._asked(np.array(vector, dtype=np.float32)))

    async def _asked(self, vector: NDArray[np.float32]) -> list[tuple[str, str]]:
        if self._connection is None:
            self._connection = await asyncpg.connect(self._job.url)
            await register_vector(self._connection)
        rows = await self._connection.fetch(
            "SELECT filename, code, embedding <=> $1 AS distance FROM pages ORDER BY distance ASC LIMIT 10", vector
        )
        return [(row["filename"], row["code"]) for row in rows]
