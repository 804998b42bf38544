"""Hits in the order of a reranker; when it fails or is too slow, in the order that they had."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from rag_pipeline.errors import PermanentError, RagPipelineError
from rag_pipeline.model import LegResult, SearchHit
from rag_pipeline.retrieval.deadline import within
from rag_pipeline.retrieval.rerank.reranker import Reranker


def reranked(
    question: str, hits: Sequence[SearchHit], reranker: Reranker, top_n: int, *, timeout_s: float | None = None
) -> tuple[list[SearchHit], str | None]:
    """The hits with the first `top_n` in the reranker's order, and None; or all as they were, and what went wrong.

    Those that it read carry its score as theirs, and a LegResult `rerank`; equal scores keep their order. Hits after
    `top_n` stay after them, as they are. All are numbered again from 1. Longer than `timeout_s` seconds it is not
    waited for; None: as long as it takes. Raises nothing but what stops a program.
    """
    first, rest = list(hits[: max(0, top_n)]), list(hits[max(0, top_n) :])
    if len(first) < 2:
        return list(hits), None
    try:
        if timeout_s is None:
            scores = reranker.scores(question, first)
        else:
            scores = within(timeout_s, lambda: reranker.scores(question, first))
        ordered = _in_order(first, _checked(scores, count=len(first)))
    except RagPipelineError as error:
        return list(hits), f"reranker {reranker.name}: {error}"
    except TimeoutError as error:
        return list(hits), f"reranker {reranker.name}: {str(error) or 'it took too long'}"
    except Exception as error:  # what a library lets through must not fail the search either
        return list(hits), f"reranker {reranker.name}: {type(error).__name__}: {error}"
    return [replace(hit, rank=rank) for rank, hit in enumerate([*ordered, *rest], start=1)], None


def _checked(scores: Sequence[float], *, count: int) -> list[float]:
    if len(scores) != count:
        raise PermanentError(f"it gave {len(scores)} scores for {count} passages")
    if not all(math.isfinite(score) for score in scores):
        raise PermanentError("it gave a score that is no number")
    return [float(score) for score in scores]


def _in_order(hits: Sequence[SearchHit], scores: Sequence[float]) -> list[SearchHit]:
    order = sorted(range(len(hits)), key=lambda index: -scores[index])
    return [
        replace(
            hits[index],
            score=scores[index],
            legs=(*hits[index].legs, LegResult(leg="rerank", rank=rank, score=scores[index])),
        )
        for rank, index in enumerate(order, start=1)
    ]
