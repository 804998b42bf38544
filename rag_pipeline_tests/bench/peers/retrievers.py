"""How well we answer labelled questions, beside the pgvector retrievers of other libraries with the same model."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from statistics import fmean
from typing import Final

from rag_pipeline.embedded import EmbeddedPostgres
from rag_pipeline.embedding import make_embedder
from rag_pipeline.errors import ConfigError
from rag_pipeline.evaluation.corpus import TENANT, index_corpus
from rag_pipeline.evaluation.labelled import LabelledSet, read_labelled_set
from rag_pipeline.evaluation.measures import measure
from rag_pipeline.index.database import connected
from rag_pipeline.index.migrations import migrate
from rag_pipeline.model import EmbeddingSpace
from rag_pipeline.progress import silent
from rag_pipeline.refresh import chunking_rules
from rag_pipeline.retrieval.query import SearchQuery
from rag_pipeline.retrieval.retriever import Retriever
from rag_pipeline.settings import Embedding, Settings
from rag_pipeline_tests.bench.process import CommandFailed
from rag_pipeline_tests.bench.report import Report

_SECTION: Final = "retrievers"
_PEERS: Final = ("LlamaIndex", "LangChain", "Haystack")
_PYTHON: Final = Path(".venv/peers/bin/python")
_DEPTH: Final = 50
Rankings = Mapping[str, Sequence[str]]


def bench_retrievers(
    _repository: str, report: Report, *, start_date: date | None = None, data: Path | None = None
) -> None:
    """nDCG@10 and recall@10 of every labelled set in `data`, ours beside theirs.

    Raises:
        ConfigError: no labelled sets, or the peers are not installed.
    """
    folders = sorted(path.parent for path in data.glob("*/corpus.jsonl")) if data else []
    if not folders:
        raise ConfigError("the benchmark `retrievers` needs labelled sets: name a folder that holds them with --data")
    python = Path(os.environ.get("RAG_PEERS_PYTHON", _PYTHON))
    if not python.exists():
        raise ConfigError("the peers are not installed: run the benchmark with `make bench-peers`")
    with tempfile.TemporaryDirectory(prefix="rag-bench-") as home:
        server = EmbeddedPostgres(Path(home) / "server")
        server.start()
        try:
            for folder in folders:
                _bench_set(folder, report, server, python=python, scratch=Path(home))
        finally:
            server.erase()
    report.show(_SECTION)


def _bench_set(folder: Path, report: Report, server: EmbeddedPostgres, *, python: Path, scratch: Path) -> None:
    labelled = read_labelled_set(folder)
    found: dict[str, Rankings] = {}
    for peer in _PEERS:
        target = scratch / f"{peer}.json"
        command = [str(python), "-m", "rag_pipeline_tests.bench.peers.worker", peer, str(folder.resolve()),
                   server.url(), str(target)]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise CommandFailed(f"{peer}: {done.stderr.strip().splitlines()[-1:] or done.returncode}")
        found |= {f"{peer}, {way}": ranking for way, ranking in json.loads(target.read_text("utf-8")).items()}
    ours = _ours(labelled, server.url())
    best = 0.0
    for name, rankings in {"ours": ours, **found}.items():
        ndcg, recall = _means(labelled, rankings)
        best = best if name == "ours" else max(best, ndcg)
        report.figure(_SECTION, f"{labelled.name}: {name}", 100 * ndcg, "% nDCG@10", note=f"R@10 {100 * recall:.1f} %")
    mine, _ = _means(labelled, ours)
    report.check(
        _SECTION, f"{labelled.name}: ahead of every peer", mine > best, f"{mine:.3f}, the best peer {best:.3f}"
    )


def _ours(labelled: LabelledSet, url: str) -> Rankings:
    """The pipeline with its defaults."""
    settings = Settings()
    embedder = make_embedder(Embedding(), environ=os.environ)

    def embedder_of(_space: EmbeddingSpace) -> object:
        return make_embedder(Embedding(), environ=os.environ)

    migrate(url)
    with connected(url) as connection:
        connection.execute("TRUNCATE rag.documents, rag.segments, rag.embedding_spaces CASCADE")
        index_corpus(
            connection, labelled, settings=settings, rules=chunking_rules(settings), embedder=embedder,
            now=datetime.now(UTC), progress=silent,
        )  # fmt: skip
        retriever = Retriever(connection, embedder_of=embedder_of, settings=settings.retrieval)  # type: ignore[arg-type]
        return {query.id: _asked(retriever, query.text) for query in labelled.queries}


def _asked(retriever: Retriever, text: str) -> list[str]:
    hits = retriever.search(SearchQuery(text=text, tenant=TENANT, k=_DEPTH))
    return list(dict.fromkeys(hit.source_id for hit in hits))


def _means(labelled: LabelledSet, rankings: Rankings) -> tuple[float, float]:
    grades = {query.id: query.relevant for query in labelled.queries}
    measured = measure({query: list(ids)[:10] for query, ids in rankings.items()}, grades).values()
    return fmean(scores["nDCG@10"] for scores in measured), fmean(scores["R@10"] for scores in measured)
