"""Two scores per chunk to one order: what the vectors find alike, and what holds the words of the question.

A fixed mixture of normalised scores must lose somewhere: dividing BM25 by the query's best hit makes the best of many
poor matches look like a perfect one. So BM25 stays on its own scale, which is that of evidence: its idf is the
logarithm of how rare a term is, and among N chunks the luckiest one matches rarities worth about ln N by chance alone.
A match counts by how it compares with that:

    fused = vector * cosine^3 + lexical * b^2 / (b^2 + (2 ln N)^2) + reciprocal_rank * mean((k + 1) / (k + rank))

Both powers say the same of both legs: strong matches can be trusted, differences between weak ones cannot. So a query
whose words say little is ordered by the vectors, and one with names and rare words by those. docs/retrieval.md has the
measurements. Reciprocal ranks are those of Cormack et al. 2009 (https://doi.org/10.1145/1571941.1572114).
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Final, Generic, Protocol, TypeVar

_COSINE_POWER: Final = 3
_CHANCES: Final = 2.0
"""A match of so many times ln N, in nats of BM25, is half convincing."""


class Sortable(Protocol):
    """Something that can break ties: a UUID, a string, a number."""

    def __lt__(self, other: Any, /) -> bool: ...
    def __hash__(self) -> int: ...


Id = TypeVar("Id", bound=Sortable)


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate(Generic[Id]):
    """A chunk that one leg at least has found, with the exact scores of both."""

    id: Id
    cosine: float
    """-1 to 1."""
    bm25: float
    """Sum of idf times saturated frequency (below 1, as in Lucene 8 and later) over the question's terms; 0 where none
    matches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryShape:
    """What else of a query the fusion depends on."""

    chunks: int
    """Among how many chunks it looks: the N of its idf."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FusionWeights:
    """What each part counts; only their proportions matter.

    Raises:
        ValueError: a weight is negative or not a number, or all of them are 0.
    """

    vector: float = 0.45
    lexical: float = 0.55
    reciprocal_rank: float = 0.0
    rrf_k: int = 60
    """The larger, the less the first ranks stand out."""
    adaptive: bool = True
    """Whether BM25 counts as evidence, as above; else as a share of the query's best hit, beside the plain cosine."""

    def __post_init__(self) -> None:
        weights = (self.vector, self.lexical, self.reciprocal_rank)
        if not all(math.isfinite(weight) and weight >= 0 for weight in weights) or self.rrf_k < 1:
            raise ValueError(f"{self}: weights are numbers from 0 on, and rrf_k from 1 on")
        if not sum(weights):
            raise ValueError("all weights are 0: nothing would be ahead of anything")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fused(Generic[Id]):
    """A chunk in its place, and where its score comes from: `score` is the sum of the three parts after it."""

    id: Id
    score: float
    """0 to 1, comparable between queries over the same chunks unless ranks or shares of the best hit are in it."""
    vector: float
    lexical: float
    reciprocal_rank: float


def fuse(
    candidates: Sequence[Candidate[Id]],
    *,
    query: QueryShape,
    weights: FusionWeights | None = None,
    limit: int | None = None,
) -> list[Fused[Id]]:
    """The candidates, at most `limit` of them, best first; where scores are equal, by cosine, by BM25, by id."""
    weights = weights or FusionWeights()
    cosines = [min(1.0, _known(candidate.cosine)) for candidate in candidates]
    bm25s = [_known(candidate.bm25) for candidate in candidates]
    total = weights.vector + weights.lexical + weights.reciprocal_rank
    of_vector, of_lexical, of_rank = weights.vector / total, weights.lexical / total, weights.reciprocal_rank / total
    by_cosine, by_bm25 = _curves(bm25s, query=query, adaptive=weights.adaptive)
    # What counts nothing is not worked out.
    ranks = _reciprocal_ranks(cosines, bm25s, k=weights.rrf_k) if of_rank else [0.0] * len(candidates)
    keyed = []
    for candidate, cosine, bm25, rank in zip(candidates, cosines, bm25s, ranks, strict=True):
        vector, lexical, ranked = of_vector * by_cosine(cosine), of_lexical * by_bm25(bm25), of_rank * rank
        opposite = candidate.cosine if -1 <= candidate.cosine < 0 else cosine
        keyed.append(((-(vector + lexical + ranked), -opposite, -bm25, candidate.id), (vector, lexical, ranked)))
    keyed.sort(key=itemgetter(0))
    return [
        Fused(id=key[3], score=-key[0], vector=vector, lexical=lexical, reciprocal_rank=ranked)
        for key, (vector, lexical, ranked) in keyed[:limit]
    ]


def _known(score: float) -> float:
    """The score, not below 0; 0 for what is no number, as the cosine of a vector of zeros."""
    return score if score > 0 and math.isfinite(score) else 0.0


Curve = Callable[[float], float]


def _curves(bm25s: Sequence[float], *, query: QueryShape, adaptive: bool) -> tuple[Curve, Curve]:
    """What a cosine and what a BM25 score is worth, each from 0 to 1 and never falling."""
    if not adaptive:
        best = max(bm25s, default=0.0) or 1.0
        return lambda cosine: cosine, lambda bm25: bm25 / best
    by_chance = _CHANCES * math.log(max(2, query.chunks))
    return lambda cosine: cosine**_COSINE_POWER, lambda bm25: _half_saturated(bm25 / by_chance)


def _half_saturated(evidence: float) -> float:
    """0 for no evidence, half for 1, and so much less for weaker and never quite 1 for the strongest."""
    return evidence**2 / (1 + evidence**2) if evidence < 1e9 else 1.0


def _reciprocal_ranks(cosines: Sequence[float], bm25s: Sequence[float], *, k: int) -> list[float]:
    """Mean over both legs, 0 to 1; equal scores share a rank, and what a leg has not found has none in it."""
    legs = []
    for scores in (cosines, bm25s):
        rising = sorted(scores)
        ranks = [len(rising) - bisect_right(rising, score) + 1 for score in scores]
        legs.append([(k + 1) / (k + rank) if score > 0 else 0.0 for score, rank in zip(scores, ranks, strict=True)])
    return [(vector + lexical) / 2 for vector, lexical in zip(*legs, strict=True)]
