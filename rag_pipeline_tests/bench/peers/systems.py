"""What is compared: the pipeline and each other library behind one interface, as processes that a user would run."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

import numpy as np
import psycopg
from numpy.typing import NDArray

from rag_pipeline.embedding.local import QUANTISED
from rag_pipeline.index.database import Connection, connected
from rag_pipeline.index.spaces import active_space
from rag_pipeline.model import EmbeddingSpace
from rag_pipeline.retrieval import search as search_module
from rag_pipeline.retrieval.query import SearchQuery
from rag_pipeline.retrieval.search import search
from rag_pipeline.settings import Retrieval
from rag_pipeline_tests.bench.peers.corpora import Corpus
from rag_pipeline_tests.bench.peers.process_tree import kill_after, run_tree
from rag_pipeline_tests.bench.place import Place

K: Final = 10
OURS: Final = "ours"
LONG: Final = "512 tokens"
"""A variant: with chunks as long as LlamaIndex's, so that both write and index as many."""
LONG_CHUNKS: Final = "[chunking]\nmax_tokens = 512\n"
IN_INT8: Final = "int8"
"""A variant: with the quantised model, where the processor can."""
INT8_MODEL: Final = f'[embedding]\nmodel = "{QUANTISED}"\n'
_ROOT: Final = Path(__file__).resolve().parents[3]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """With its vector in the model that is used."""

    text: str
    vector: NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Refreshed:
    """One refresh of one system."""

    wall_s: float
    own_s: float
    """Without the process's start, imports and, for the pipeline, Dagster."""
    peak_mb: float
    calls: int
    """Of the model."""
    texts: int
    characters: int
    tokens: int
    model_s: float
    stages: Mapping[str, float] = field(default_factory=dict)
    """Of the pipeline's own work; other libraries do not tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """To each question its hits, as (path, text)."""

    hits: Sequence[Sequence[tuple[str, str]]]
    ms: Sequence[float]


class System(Protocol):
    """One column of the table."""

    @property
    def name(self) -> str: ...

    @property
    def model(self) -> str:
        """One of `models.MODELS`."""

    def refresh(self) -> Refreshed:
        """Bring the index to the state of the corpus."""

    def kill_during(self, seconds: float) -> bool:
        """The same, killed after so long; False when it had ended."""

    def rows(self) -> list[tuple[str, str]]:
        """Path and text of every row that can be found."""

    def embedded(self) -> set[str]:
        """What tells apart the texts that have a vector: those that are alike need only one."""

    def ask(self, questions: Sequence[Question]) -> Answers:
        """Each question, the second time that it is asked."""

    def exact(self, questions: Sequence[Question]) -> list[set[str]]:
        """Texts of the ten rows that are nearest, and of all that are as near as the tenth, by an exact scan."""

    def settle(self) -> None:
        """Let the server finish what it would do later, so that nobody pays for another's work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Where a library keeps its rows: a table, and expressions over it."""

    table: str
    path: str
    text: str


LAYOUTS: Final = {
    "LlamaIndex": Layout(table="data_pages", path="metadata_->>'path'", text="text"),
    "LangChain": Layout(table="pages", path="langchain_metadata->>'source'", text="content"),
    "Haystack": Layout(table="haystack_documents", path="meta->>'path'", text="content"),
    "CocoIndex": Layout(table="pages", path="filename", text="code"),
}


class OtherLibrary:
    """A library in an environment of its own, with a database of its own."""

    def __init__(
        self, peer: str, corpus: Corpus, *, python: Path, variant: str, model: str, memory: Path | None = None,
        tag: str = "",
    ) -> None:  # fmt: skip
        self.peer, self.variant, self.model = peer, variant, model
        self._corpus, self._python, self._memory = corpus, python, memory
        self._database = re.sub(r"\W+", "_", f"peer_{peer}_{variant or 'default'}{tag}".lower())
        self._state = corpus.place.folder / self._database
        self._layout = LAYOUTS[peer]

    @property
    def name(self) -> str:
        return f"{self.peer}, {self.variant}" if self.variant else self.peer

    @property
    def url(self) -> str:
        """Of its database."""
        return self._corpus.place.server.url(self._database)

    def create(self) -> None:
        """An empty database with pgvector, and an empty folder."""
        self._state.mkdir()
        with psycopg.connect(self._corpus.place.server.url(), autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{self._database}"'.encode())
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute("CREATE EXTENSION vector")

    def refresh(self) -> Refreshed:
        result = self._state / "result.json"
        ended = run_tree(self._command(result), cwd=_ROOT, env=self._env())
        found = json.loads(result.read_text("utf-8"))
        return Refreshed(
            wall_s=ended.wall_s, own_s=found["own_s"], peak_mb=ended.peak_mb, calls=found["calls"],
            texts=found["texts"], characters=found["characters"], tokens=found["tokens"], model_s=found["seconds"],
        )  # fmt: skip

    def kill_during(self, seconds: float) -> bool:
        return kill_after(seconds, self._command(self._state / "result.json"), cwd=_ROOT, env=self._env())

    def rows(self) -> list[tuple[str, str]]:
        layout = self._layout
        query = f"SELECT {layout.path}, {layout.text} FROM {layout.table}"
        with psycopg.connect(self.url) as connection:
            return connection.execute(query.encode()).fetchall()

    def embedded(self) -> set[str]:
        return {text for _, text in self.rows()}

    def ask(self, questions: Sequence[Question]) -> Answers:
        asked = self._state / "questions.json"
        rows = [{"text": question.text, "vector": question.vector.tolist()} for question in questions]
        asked.write_text(json.dumps(rows), encoding="utf-8")
        result = self._state / "answers.json"
        run_tree(self._command(result, questions=asked), cwd=_ROOT, env=self._env())
        found = json.loads(result.read_text("utf-8"))
        hits = [[(path, text) for path, text in answer["hits"]] for answer in found]
        return Answers(hits=hits, ms=[answer["ms"] for answer in found])

    def exact(self, questions: Sequence[Question]) -> list[set[str]]:
        layout = self._layout
        query = (
            f"SELECT {layout.text}, embedding <=> %(vector)s::vector AS distance FROM {layout.table}"
            f" ORDER BY distance LIMIT {10 * K}"
        )
        found = []
        with psycopg.connect(self.url) as connection:
            connection.execute("SET enable_indexscan = off")
            for question in questions:
                vector = json.dumps(question.vector.tolist())
                found.append(_nearest(connection.execute(query.encode(), {"vector": vector}).fetchall()))
        return found

    def settle(self) -> None:
        _settle(self.url)

    def _command(self, result: Path, *, questions: Path | None = None) -> list[str]:
        job = {
            "peer": self.peer, "variant": self.variant, "model": self.model, "folder": str(self._corpus.folder),
            "url": self.url, "state": str(self._state), "questions": str(questions or ""),
            "memory": str(self._memory or ""), "recalls": bool(self.variant),
        }  # fmt: skip
        file = self._state / "job.json"
        file.write_text(json.dumps(job), encoding="utf-8")
        return [str(self._python), "-m", "rag_pipeline_tests.bench.peers.index_worker", str(file), str(result)]

    def _env(self) -> Mapping[str, str]:
        """No telemetry, nothing from a hub, and this checkout's code."""
        return self._corpus.place.env | {
            "PYTHONPATH": str(_ROOT), "HAYSTACK_TELEMETRY_ENABLED": "False", "COCOINDEX_DISABLE_USAGE_TRACKING": "1",
            "LANGSMITH_TRACING": "false", "LANGCHAIN_TRACING_V2": "false", "DO_NOT_TRACK": "1", "HF_HUB_OFFLINE": "1",
            "COCOINDEX_LMDB_MAP_SIZE": str(1 << 36),
        }  # fmt: skip


class OurPipeline:
    """`rag-pipeline materialize` in the place of the corpus, or in another one with the same files."""

    def __init__(self, corpus: Corpus, *, model: str, place: Place | None = None, variant: str = "") -> None:
        self._place, self.model, self.variant = place or corpus.place, model, variant

    @property
    def name(self) -> str:
        return f"{OURS}, {self.variant}" if self.variant else OURS

    def create(self) -> None:
        """A migrated database."""
        self._place.cli("migrate")

    def refresh(self) -> Refreshed:
        counts = self._place.folder / "counts.json"
        ended = run_tree(self._command(counts), cwd=self._place.folder, env=self._env())
        summary, found = json.loads(ended.stdout), json.loads(counts.read_text("utf-8"))
        before = found["before"]
        before_s = before["prepare"] - before["ready_storage"] + before["plan_refresh"]
        return Refreshed(
            wall_s=ended.wall_s, own_s=before_s + sum(summary["seconds"].values()),
            peak_mb=ended.peak_mb, calls=found["calls"], texts=found["texts"], characters=found["characters"],
            tokens=found["tokens"], model_s=summary["model_seconds"],
            stages={"before the run": before_s, **summary["seconds"]},
        )  # fmt: skip

    def kill_during(self, seconds: float) -> bool:
        counts = self._place.folder / "counts.json"
        return kill_after(seconds, self._command(counts), cwd=self._place.folder, env=self._env())

    def rows(self) -> list[tuple[str, str]]:
        with psycopg.connect(self._url) as connection:
            return connection.execute(
                "SELECT path, text FROM rag.chunks JOIN rag.documents USING (document_id)"
            ).fetchall()

    def embedded(self) -> set[str]:
        """Hashes: a chunk may be embedded with the name of its function before it."""
        with psycopg.connect(self._url) as connection:
            return {str(row[0]) for row in connection.execute("SELECT DISTINCT text_hash FROM rag.chunks")}

    def ask(self, questions: Sequence[Question], *, legs: str = "fused") -> Answers:
        """`legs` as a `SearchQuery` takes them; `fused` is what users get."""
        ms: list[float] = []
        hits: list[list[tuple[str, str]]] = []
        with connected(self._url) as connection:
            space = active_space(connection)
            for turn in range(2):
                for question in questions:
                    started = time.perf_counter()
                    found = _search(connection, question, space, legs)
                    if turn:
                        ms.append(1e3 * (time.perf_counter() - started))
                        hits.append(found)
        return Answers(hits=hits, ms=ms)

    def exact(self, questions: Sequence[Question]) -> list[set[str]]:
        least = search_module.EXACT_UP_TO
        search_module.EXACT_UP_TO = 10**9  # type: ignore[misc]
        try:
            with connected(self._url) as connection:
                space = active_space(connection)
                found = [_search(connection, question, space, "vector") for question in questions]
        finally:
            search_module.EXACT_UP_TO = least  # type: ignore[misc]
        return [{text for _, text in hits} for hits in found]

    def settle(self) -> None:
        _settle(self._url)
        _settle(self._place.server.url("dagster"))

    @property
    def _url(self) -> str:
        return self._place.server.url()

    def _command(self, counts: Path) -> list[str]:
        worker = "rag_pipeline_tests.bench.peers.ours_worker"
        return [sys.executable, "-m", worker, str(counts), self.model, "materialize", "--json"]

    def _env(self) -> Mapping[str, str]:
        return self._place.env | {"PYTHONPATH": str(_ROOT)}


def _search(
    connection: Connection, question: Question, space: EmbeddingSpace | None, legs: str
) -> list[tuple[str, str]]:
    query = SearchQuery(text=question.text, tenant="default", k=K, legs=legs)  # type: ignore[arg-type]
    hits = search(connection, query, space=space, vector=question.vector, settings=Retrieval())
    return [(hit.source_id.partition(":")[2], hit.text) for hit in hits]


def _nearest(rows: Sequence[tuple[str, float]]) -> set[str]:
    """Rows of (text, distance), nearest first."""
    if not rows:
        return set()
    limit = rows[min(K, len(rows)) - 1][1] + 1e-6
    return {text for text, distance in rows if distance <= limit}


def _settle(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")
        connection.execute("CHECKPOINT")
