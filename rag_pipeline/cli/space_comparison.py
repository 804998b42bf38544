"""How a candidate is measured against the active space: the same labelled questions to both, one after the other."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from rag_pipeline.errors import ConfigError
from rag_pipeline.evaluation.gate import SERVED, falls
from rag_pipeline.evaluation.indexed import labels_to_ask
from rag_pipeline.evaluation.labels import LabelSet
from rag_pipeline.evaluation.remembering import open_search
from rag_pipeline.evaluation.run import evaluate
from rag_pipeline.index.database import Connection
from rag_pipeline.model import EmbeddingSpace, Evaluation
from rag_pipeline.refresh import Models
from rag_pipeline.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One measure of one leg in both spaces."""

    leg: str
    measure: str
    active: float
    candidate: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What the labelled questions of one label set say of a candidate."""

    dataset: str
    questions: int
    measures: Sequence[Measured]
    falls: Sequence[str]
    """What the candidate is worse at than the tolerance allows, a line each; empty: it may be promoted."""


def compare(
    settings: Settings, connection: Connection, *, candidate: EmbeddingSpace, active: EmbeddingSpace, models: Models
) -> list[Comparison]:
    """Ask both spaces the configured questions, or mined ones; empty: there are no labelled questions."""
    try:
        sets = labels_to_ask(connection, settings.evaluation, base=settings.base, tenant=settings.tenant)
    except ConfigError:
        if settings.evaluation.labels or settings.evaluation.datasets:
            raise
        return []
    return [
        _compared(
            labels,
            *(_asked(settings, connection, labels, space=space, models=models) for space in (active, candidate)),
            tolerance=settings.evaluation.tolerance,
        )
        for labels in sets
    ]


def _asked(
    settings: Settings, connection: Connection, labels: LabelSet, *, space: EmbeddingSpace, models: Models
) -> Evaluation:
    embedder = models.unchecked(space)
    try:
        with open_search(connection, embedder, settings=settings, environ=os.environ, space=space) as search:
            asking = settings.evaluation
            return evaluate(labels, search, tenant=settings.tenant, legs=asking.legs, k=asking.k)
    finally:
        embedder.close()


def _compared(labels: LabelSet, active: Evaluation, candidate: Evaluation, *, tolerance: float) -> Comparison:
    # People get what is fused or reranked; where only single legs are measured, those decide.
    served = [leg for leg in SERVED if leg in active.per_query] or list(active.per_query)
    was, would_be = active.metrics, candidate.metrics
    return Comparison(
        dataset=labels.name, questions=active.queries,
        measures=[
            Measured(leg=leg, measure=measure, active=value, candidate=would_be[leg][measure])
            for leg, measures in was.items() for measure, value in measures.items()
        ],
        falls=[f"{labels.name}: {fall}" for fall in falls(active, candidate, tolerance=tolerance, legs=served)],
    )  # fmt: skip
