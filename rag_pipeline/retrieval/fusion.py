"""Two rankings to one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A chunk with what both legs say of it."""

    id: int
    cosine: float
    bm25: float


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryShape:
    """What is known of the question."""

    best_possible: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FusionWeights:
    """How much each leg counts."""

    vector: float = 1.0
    lexical: float = 0.4


@dataclass(frozen=True, slots=True, kw_only=True)
class Fused:
    """A chunk with its fused score."""

    id: int
    score: float


def fuse(candidates: Sequence[Candidate], *, query: QueryShape, weights: FusionWeights) -> list[Fused]:
    """Best first."""
    most = query.best_possible or 1.0
    scored = [Fused(id=c.id, score=weights.vector * c.cosine + weights.lexical * c.bm25 / most) for c in candidates]
    return sorted(scored, key=lambda fused: (-fused.score, fused.id))
