"""Labelled questions through a search, leg by leg, to an evaluation. Pure but for the search that it is given."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal

from rag_pipeline.errors import ConfigError
from rag_pipeline.evaluation.labels import LabelSet
from rag_pipeline.evaluation.measures import measure
from rag_pipeline.evaluation.ranking import grades_of, judged
from rag_pipeline.model import Evaluation, SearchHit
from rag_pipeline.progress import Progress, silent
from rag_pipeline.retrieval.query import SearchQuery

Leg = Literal["lexical", "vector", "fused", "reranked"]
LEGS: Final[tuple[Leg, ...]] = ("lexical", "vector", "fused")
Search = Callable[[SearchQuery], Sequence[SearchHit]]

_ASKED: Final[Mapping[Leg, Mapping[str, Any]]] = {
    "lexical": {"legs": "lexical", "rerank": False},
    "vector": {"legs": "vector", "rerank": False},
    "fused": {"legs": "fused", "rerank": False},
    "reranked": {"legs": "fused", "rerank": True},
}


def evaluate(
    labels: LabelSet, search: Search, *, tenant: str, legs: Sequence[Leg] = LEGS, k: int = 100,
    progress: Progress = silent,
) -> Evaluation:  # fmt: skip
    """Ask each question of each leg for `k` hits, and measure what came back.

    Several hits of one document count once, so `k` is to be larger than the largest cutoff of a measure.

    Raises:
        ConfigError: there is no question or no leg; and what `search` raises.
    """
    if not labels.questions or not legs:
        raise ConfigError(f"{labels.name}: nothing to evaluate: name one question and one leg at least")
    rankings: dict[Leg, dict[str, list[str]]] = {leg: {} for leg in legs}
    for done, question in enumerate(labels.questions, start=1):
        for leg in legs:
            hits = search(SearchQuery(text=question.text, tenant=tenant, k=k, **_ASKED[leg]))
            rankings[leg][question.id] = judged(question, hits)
        progress("questions", done=done, total=len(labels.questions), unit="questions")
    grades = {question.id: grades_of(question) for question in labels.questions}
    return Evaluation(
        dataset=labels.name,
        labels_hash=labels.labels_hash,
        per_query={leg: measure(rankings[leg], grades) for leg in legs},
    )
