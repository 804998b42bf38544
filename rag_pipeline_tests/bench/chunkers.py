"""How well chunks are found: labelled questions, one embedder, one ranking, and different ways to cut.

Chunks are ranked by exact cosine similarity to the question; a document stands where its best chunk stands. With a
token budget, as a prompt has one, only the chunks that fit into it are read: that is the fair comparison, because
larger chunks cost more.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rag_pipeline.embedding import Embedder, make_embedder
from rag_pipeline.embedding.tokens import count_word_pieces
from rag_pipeline.errors import ConfigError
from rag_pipeline.evaluation.labelled import LabelledSet, is_python, read_labelled_set
from rag_pipeline.evaluation.measures import measure
from rag_pipeline.settings import Embedding
from rag_pipeline_tests.bench.report import Report
from rag_pipeline_tests.bench.splitters import Splitter, ours, sentence_splitter, structure_splitter

_SECTION = "chunkers"
_BUDGETS: Final = (1_000, 2_000, 4_000)
_CUTOFF: Final = 10
_OURS: Final = "ours"


def bench_chunkers(
    _repository: str, report: Report, *, start_date: date | None = None, data: Path | None = None
) -> None:
    """nDCG@10 and recall@10 of every labelled set in `data` (a folder of folders in BEIR's layout) for each chunker.

    Raises:
        ConfigError: no `data`, or nothing in it that is a labelled set.
    """
    if data is None or not (folders := sorted(path.parent for path in data.glob("*/corpus.jsonl"))):
        raise ConfigError("the benchmark `chunkers` needs labelled sets: name a folder that holds them with --data")
    splitters = {
        _OURS: ours,
        "SentenceSplitter 512/50": sentence_splitter(),
        "MarkdownNodeParser / CodeSplitter": structure_splitter(),
        "ours, text alone": partial(ours, context="none"),
        "ours, with headings": partial(ours, context="headings"),
        "ours, 128 tokens": partial(ours, tokens=128),
        "ours, 256 tokens": partial(ours, tokens=256),
    }
    embed = _Vectors(make_embedder(Embedding(), environ=os.environ))
    for folder in folders:
        labelled = read_labelled_set(folder)
        found = {name: _scores(labelled, splitter, embed) for name, splitter in splitters.items()}
        _report(report, labelled.name, found)
    report.show(_SECTION)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scores:
    """Means over the questions, per budget in tokens; 0: no budget."""

    chunks: int
    ndcg: dict[int, float]
    recall: dict[int, float]


def _report(report: Report, name: str, found: dict[str, _Scores]) -> None:
    for splitter, scores in found.items():
        for budget in (*_BUDGETS, 0):
            label = f"{name}, {budget:,} tokens" if budget else f"{name}, no budget"
            note = f"{splitter}; recall@10 {100 * scores.recall[budget]:.2f} %; {scores.chunks:,} chunks"
            report.figure(_SECTION, label, 100 * scores.ndcg[budget], "% nDCG@10", note=note)
    for splitter in [name for name in found if not name.startswith(_OURS)]:
        for figure in ("ndcg", "recall"):
            one, other = (getattr(found[each], figure) for each in (_OURS, splitter))
            ahead = [budget for budget in _BUDGETS if one[budget] > other[budget]]
            equal = [budget for budget in _BUDGETS if one[budget] == other[budget]]
            detail = f"ahead at {ahead} tokens, equal at {equal}, of {list(_BUDGETS)}"
            behind = len(ahead) + len(equal) < len(_BUDGETS)
            report.check(_SECTION, f"{name}: {figure}@10 not behind {splitter}", not behind, detail)


def _scores(labelled: LabelledSet, splitter: Splitter, embed: _Vectors) -> _Scores:
    path = "document.py" if is_python(labelled.documents) else "document.md"
    owners: list[int] = []
    texts: list[str] = []
    for number, document in enumerate(labelled.documents):
        parts = splitter(path, document.text)
        texts += parts
        owners += [number] * len(parts)
    tokens = np.array(count_word_pieces(texts))
    similarities = embed.of([query.text for query in labelled.queries]) @ embed.of(texts).T
    rankings: dict[int, dict[str, list[str]]] = {budget: {} for budget in (*_BUDGETS, 0)}
    for query, row in zip(labelled.queries, similarities, strict=True):
        order = np.argsort(-row, kind="stable")
        read = np.cumsum(tokens[order])
        for budget, found in rankings.items():
            fitting = order[: max(1, int(np.searchsorted(read, budget, side="right")))] if budget else order
            best = dict.fromkeys(owners[i] for i in fitting)
            found[query.id] = [labelled.documents[owner].id for owner in best][:_CUTOFF]
    grades = {query.id: query.relevant for query in labelled.queries}
    measured = {budget: measure(found, grades).values() for budget, found in rankings.items()}
    return _Scores(
        chunks=len(texts),
        ndcg={budget: fmean(scores[f"nDCG@{_CUTOFF}"] for scores in found) for budget, found in measured.items()},
        recall={budget: fmean(scores[f"R@{_CUTOFF}"] for scores in found) for budget, found in measured.items()},
    )


class _Vectors:
    """An embedder that remembers: the ways to cut have many chunks in common."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._known: dict[str, NDArray[np.float32]] = {}

    def of(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Shape (len(texts), dimensions)."""
        self._learn(text for text in dict.fromkeys(texts) if text not in self._known)
        return np.stack([self._known[text] for text in texts])

    def _learn(self, unknown: Iterable[str]) -> None:
        texts = list(unknown)
        for batch in self._embedder.embed(texts) if texts else ():
            self._known.update(zip((texts[i] for i in batch.indices), batch.vectors, strict=True))
