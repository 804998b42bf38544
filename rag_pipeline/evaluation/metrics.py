"""Measures of one ranking against what is relevant to its query (binary relevance).

Definitions as in trec_eval and BEIR (Thakur et al. 2021, https://arxiv.org/abs/2104.08663).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence


def ndcg_at(k: int, ranking: Sequence[str], relevant: Collection[str]) -> float:
    """Normalised discounted cumulative gain of the first k, 0 to 1 (Järvelin and Kekäläinen 2002).

    Raises:
        ValueError: nothing is relevant, so that no ranking could be better than another.
    """
    _require(relevant)
    gain = sum(1 / math.log2(rank + 1) for rank, found in enumerate(ranking[:k], start=1) if found in relevant)
    best = sum(1 / math.log2(rank + 1) for rank in range(1, min(k, len(relevant)) + 1))
    return gain / best


def recall_at(k: int, ranking: Sequence[str], relevant: Collection[str]) -> float:
    """Share of what is relevant that is among the first k.

    Raises:
        ValueError: nothing is relevant.
    """
    _require(relevant)
    return len(set(ranking[:k]) & set(relevant)) / len(relevant)


def reciprocal_rank_at(k: int, ranking: Sequence[str], relevant: Collection[str]) -> float:
    """One divided by the rank of the first relevant one among the first k, 0 when there is none; its mean is MRR@k.

    Raises:
        ValueError: nothing is relevant.
    """
    _require(relevant)
    return next((1 / rank for rank, found in enumerate(ranking[:k], start=1) if found in relevant), 0.0)


def _require(relevant: Collection[str]) -> None:
    if not relevant:
        raise ValueError("nothing is relevant to this query: leave it out of the mean")
