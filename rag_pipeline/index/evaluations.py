"""Evaluations on record: how good a space was at answering which labels, and when; and what labels can be made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from psycopg.types.json import Jsonb

from rag_pipeline.index.database import Connection
from rag_pipeline.index.sql_files import queries
from rag_pipeline.model import EmbeddingSpace, Evaluation


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredEvaluation:
    """An evaluation on record, question by question."""

    evaluation: Evaluation
    space_id: int
    evaluated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationPoint:
    """The means of an evaluation on record."""

    evaluated_at: datetime
    space_id: int
    model: str
    labels_hash: str
    queries: int
    metrics: Mapping[str, Mapping[str, float]]
    """Leg → measure → mean."""


def record_evaluation(
    connection: Connection, evaluation: Evaluation, *, tenant: str, space: EmbeddingSpace, now: datetime
) -> int:
    """Put an evaluation on record; returns its number."""
    values = {
        "now": now, "tenant": tenant, "dataset": evaluation.dataset, "labels_hash": evaluation.labels_hash,
        "space": space.space_id, "queries": evaluation.queries, "metrics": Jsonb(evaluation.metrics),
        "per_query": Jsonb(evaluation.per_query),
    }  # fmt: skip
    row = connection.execute(queries("evaluations")["record"], values).fetchone()
    assert row is not None
    return int(row[0])


def latest_evaluation(
    connection: Connection, *, tenant: str, dataset: str, labels_hash: str, space: EmbeddingSpace | None = None
) -> StoredEvaluation | None:
    """The newest evaluation of just these labels, of one space or of any."""
    values = {
        "tenant": tenant, "dataset": dataset, "labels_hash": labels_hash, "space": space.space_id if space else None,
    }  # fmt: skip
    row = connection.execute(queries("evaluations")["latest"], values).fetchone()
    if row is None:
        return None
    evaluation = Evaluation(dataset=row[0], labels_hash=row[1], per_query=row[2])
    return StoredEvaluation(evaluation=evaluation, space_id=row[3], evaluated_at=row[4])


def evaluation_history(
    connection: Connection, *, tenant: str, dataset: str, limit: int = 200
) -> list[EvaluationPoint]:  # fmt: skip
    """The newest evaluations of a dataset, the oldest of them first, whatever its labels were at the time."""
    values = {"tenant": tenant, "dataset": dataset, "limit": limit}
    return [
        EvaluationPoint(
            evaluated_at=row[0], space_id=row[1], model=row[2], labels_hash=row[3], queries=row[4], metrics=row[5]
        )
        for row in connection.execute(queries("evaluations")["history"], values)
    ]


def missing_documents(
    connection: Connection, documents: Sequence[tuple[str | None, str]], *, tenant: str
) -> list[tuple[str | None, str]]:
    """Those of the documents (source type, None: any; source id) that the index does not show."""
    values = {
        "tenant": tenant, "source_types": [kind for kind, _ in documents], "source_ids": [id_ for _, id_ in documents],
    }  # fmt: skip
    return [(row[0], row[1]) for row in connection.execute(queries("evaluations")["missing"], values)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedIssue:
    """An issue, a merged pull request that closed it, and the files it changed that the index holds."""

    issue: str
    """Source id, as all of these."""
    reference: str
    """`owner/name#number`."""
    title: str
    pull_request: str
    files: Sequence[tuple[str, str]]
    """Source type (`docs` or `code`) and source id of each."""


def closed_issues(connection: Connection, *, tenant: str, limit: int) -> list[ClosedIssue]:
    """What the index knows of issues and the pull requests that closed them, the newest first; nothing with a scope."""
    rows = connection.execute(queries("evaluations")["closed_issues"], {"tenant": tenant, "limit": limit})
    return [
        ClosedIssue(
            issue=row[0], reference=row[1], title=row[2], pull_request=row[3],
            files=[(kind, id_) for kind, _, id_ in (file.partition(" ") for file in row[4])],
        )
        for row in rows
    ]  # fmt: skip
