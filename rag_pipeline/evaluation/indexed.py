"""The index as it is, asked labelled questions: measured, compared with the time before, and put on record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from rag_pipeline.errors import ConfigError
from rag_pipeline.evaluation.compare import Change, worse
from rag_pipeline.evaluation.gate import Fall, falls
from rag_pipeline.evaluation.labels import LabelSet, read_label_sets
from rag_pipeline.evaluation.mining import MOST_ISSUES, mine, mine_feedback
from rag_pipeline.evaluation.run import Leg, Search, evaluate
from rag_pipeline.index.database import Connection
from rag_pipeline.index.evaluations import (
    EvaluationPoint,
    StoredEvaluation,
    closed_issues,
    evaluation_history,
    latest_evaluation,
    missing_documents,
    record_evaluation,
)
from rag_pipeline.index.feedback import helpful_hits
from rag_pipeline.model import EmbeddingSpace, Evaluation
from rag_pipeline.progress import Progress
from rag_pipeline.settings import Evaluation as EvaluationSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of one label set."""

    labels: LabelSet
    evaluation: Evaluation
    before: StoredEvaluation | None
    """The one before with the same labels, of whichever space; None: there is none."""
    falls: Sequence[Fall]
    """What fell since then, of any leg, by more than is tolerated."""
    worse: Sequence[Change]
    """Questions that any leg answers worse than then, the deepest fall first."""
    missing: Sequence[tuple[str | None, str]]
    """Labelled documents that the index does not show: labels to look after."""
    history: Sequence[EvaluationPoint]
    """All evaluations on record, this one last."""


def labels_to_ask(connection: Connection, settings: EvaluationSettings, *, base: Path, tenant: str) -> list[LabelSet]:
    """The configured labels; without any, labels mined from closed issues.

    Raises:
        ConfigError: nothing is configured and nothing can be mined, or what is configured cannot be read.
    """
    if settings.labels or settings.datasets:
        return read_label_sets(labels=settings.labels, datasets=settings.datasets, base=base)
    return [mined_labels(connection, tenant=tenant)]


def mined_labels(connection: Connection, *, tenant: str) -> LabelSet:
    """Labels out of issues that a merged pull request closed.

    Raises:
        ConfigError: the index knows of none.
    """
    mined = mine(closed_issues(connection, tenant=tenant, limit=MOST_ISSUES))
    if not mined.questions:
        raise ConfigError(
            f"there are no labels to evaluate tenant {tenant!r} with, and the index knows no issue that a merged pull "
            "request closed: write labels (docs/evaluation.md) and name them as `labels` under [evaluation], or index "
            "a repository's issues with `github`"
        )
    return mined


def mined_feedback(connection: Connection, *, tenant: str) -> LabelSet:
    """Labels out of hits that people called helpful.

    Raises:
        ConfigError: there are none.
    """
    mined = mine_feedback(helpful_hits(connection, tenant=tenant, limit=MOST_ISSUES))
    if not mined.questions:
        raise ConfigError(
            f"nobody called a hit helpful for tenant {tenant!r} yet: give feedback on the search page, or by "
            "POST /v1/feedback with a chunk_id (docs/serving.md)"
        )
    return mined


def evaluate_index(
    connection: Connection, labels: LabelSet, search: Search, *, tenant: str, space: EmbeddingSpace,
    settings: EvaluationSettings, now: datetime, progress: Progress,
) -> Outcome:  # fmt: skip
    """Ask the questions, and put on record how they were answered; `space` is the one that `search` searches.

    Raises:
        ConfigError: no labelled document is in the index, so that the figures would say nothing about it.
    """
    missing = missing_documents(connection, labels.documents, tenant=tenant)
    if len(missing) == len(labels.documents):
        raise ConfigError(
            f"{labels.name}: none of its {len(missing)} labelled documents is in the index of tenant {tenant!r}, such "
            f"as {missing[0][1]!r}: labels name source ids, as `rag-pipeline search --json` shows them; a folder with "
            "a corpus of its own is evaluated by `rag-pipeline eval --dataset`"
        )
    legs: Sequence[Leg] = settings.legs
    evaluation = evaluate(labels, search, tenant=tenant, legs=legs, k=settings.k, progress=progress)
    before = latest_evaluation(connection, tenant=tenant, dataset=labels.name, labels_hash=labels.labels_hash)
    record_evaluation(connection, evaluation, tenant=tenant, space=space, now=now)
    return Outcome(
        labels=labels,
        evaluation=evaluation,
        before=before,
        falls=_falls(before, evaluation, tolerance=settings.tolerance),
        worse=worse(before.evaluation, evaluation) if before else [],
        missing=missing,
        history=evaluation_history(connection, tenant=tenant, dataset=labels.name),
    )


def _falls(before: StoredEvaluation | None, after: Evaluation, *, tolerance: float) -> list[Fall]:
    if before is None or not set(before.evaluation.per_query) & set(after.per_query):
        return []
    legs = list(after.per_query)
    return falls(before.evaluation, after, tolerance=tolerance, legs=legs)
