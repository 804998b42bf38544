"""How much of what an exhaustive comparison finds the graph finds, too: recall on vectors that the index really holds.

Never judged on random vectors: those have no neighbours, and say nothing about the graph that real ones walk.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from pgvector import HalfVector

from rag_pipeline.index.database import Connection
from rag_pipeline.index.graph import has_graph
from rag_pipeline.index.spaces import numbered_space
from rag_pipeline.index.sql_files import queries
from rag_pipeline.model import EmbeddingSpace
from rag_pipeline.retrieval.reader import reading
from rag_pipeline.retrieval.search import EXACT_UP_TO
from rag_pipeline.retrieval.vector_leg import statement
from rag_pipeline.settings import Retrieval

_K: Final = 10
_SAME: Final = 1e-6
"""Distances that differ by less are one: several chunks may have one text, and several texts one vector."""
_SPARE: Final = 40
"""So many more vectors are looked at than chunks are wanted, because some vectors may have no chunk any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MissedNeighbours:
    """A question that the graph answers incompletely."""

    tenant: str
    text_hash: UUID
    recall: float


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphRecall:
    """How well the graph answers, in the tenants whose searches walk it."""

    tenants: int
    """Whose chunks are so many that searches walk the graph."""
    questions: int
    recall: float | None
    """Mean recall at 10; None: no search walks the graph."""
    worst: Sequence[MissedNeighbours]
    """Questions with a neighbour missing, the worst first."""


def graph_recall(
    connection: Connection, space: EmbeddingSpace, *, settings: Retrieval, questions: int, start: UUID,
    exact_up_to: int | None = None,
) -> GraphRecall:  # fmt: skip
    """Ask for the neighbours of stored vectors at the settings that searches use, and compare with all vectors.

    `questions` are shared among the largest tenants; they are the vectors whose hashes follow `start`. Takes two passes
    over a tenant's vectors per question. `exact_up_to`: tenants with no more chunks are never asked by the graph.
    """
    limit = EXACT_UP_TO if exact_up_to is None else exact_up_to
    sizes = connection.execute(queries("search")["tenants_by_size"]).fetchall()
    large = [tenant for tenant, chunks in sizes if chunks > limit]
    # As it is now: its first graph may have been built since it was read.
    space = numbered_space(connection, space.space_id)
    if not large or not has_graph(connection, space):
        return GraphRecall(tenants=len(large), questions=0, recall=None, worst=())
    each = max(1, questions // len(large))
    found = [
        missed
        for tenant in large[:questions]
        for missed in _of_tenant(connection, space, tenant, settings=settings, questions=each, start=start)
    ]
    if not found:
        return GraphRecall(tenants=len(large), questions=0, recall=None, worst=())
    worst = sorted((one for one in found if one.recall < 1), key=lambda one: one.recall)
    mean = sum(one.recall for one in found) / len(found)
    return GraphRecall(tenants=len(large), questions=len(found), recall=mean, worst=worst)


def _of_tenant(
    connection: Connection, space: EmbeddingSpace, tenant: str, *, settings: Retrieval, questions: int, start: UUID
) -> list[MissedNeighbours]:
    wanted = max(settings.candidates, _K)
    found = []
    # One state of the index, under the reader's policies, as every search sees it.
    with reading(connection, tenant=tenant, space=space, neighbours=wanted):
        for text_hash, vector in _sample(connection, space, tenant, questions=questions, start=start):
            values = {"tenant": tenant, "query": HalfVector(vector.to_list()), "limit": wanted}
            # The graph alone: a search whose walk ends too early is repeated exactly, which hides a bad graph.
            rows = connection.execute(statement("graph_everywhere", space), values).fetchall()
            walked = sorted((1.0 - row[1] for row in rows), reverse=True)
            exact = connection.execute(
                statement("exhaustive", space), values | {"limit": _K, "most": _K + _SPARE}
            ).fetchall()
            furthest = exact[-1][0] if exact else 2.0
            right = sum(1.0 - similarity <= furthest + _SAME for similarity in walked[:_K])
            recall = right / len(exact) if exact else 1.0
            found.append(MissedNeighbours(tenant=tenant, text_hash=text_hash, recall=min(1.0, recall)))
    return found


def _sample(
    connection: Connection, space: EmbeddingSpace, tenant: str, *, questions: int, start: UUID
) -> list[tuple[UUID, HalfVector]]:
    values = {"tenant": tenant, "start": start, "limit": questions}
    rows = connection.execute(statement("sample_vectors", space), values).fetchall()
    if len(rows) < questions:
        # Round to the first of them.
        values |= {"start": UUID(int=0), "limit": questions - len(rows)}
        rows += connection.execute(statement("sample_vectors", space), values).fetchall()
    return [(row[0], row[1]) for row in rows]
