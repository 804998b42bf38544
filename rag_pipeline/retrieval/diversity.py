"""Hits that say the same thing once: near duplicates left out, and what is left spread over the subject. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from rag_pipeline.model import SearchHit

VectorOf = Mapping[UUID, NDArray[np.float32]]
"""Chunk ids to the vectors of their texts, in any length that is the same for all; a hit may lack one."""


def diversified(hits: Sequence[SearchHit], vectors: VectorOf, *, diversity: float, k: int) -> list[SearchHit]:
    """The best `k` hits in order of maximal marginal relevance, numbered again from 1.

    Each next hit is the one with the greatest `(1 - diversity) * relevance - diversity * similarity`, where the
    similarity is the cosine to the nearest hit that is already there (Carbonell and Goldstein 1998, with lambda =
    1 - diversity). Scores of fusions and rerankers have no common scale with cosines, so relevance is the hit's score
    between the worst (0) and the best (1) of them; its place, where the hits are not in the order of their scores.
    The first hit stays the first. With diversity 0 the order stays; a hit without a vector resembles no other.

    Raises:
        ValueError: `diversity` is not between 0 and 1.
    """
    if not 0.0 <= diversity <= 1.0:
        raise ValueError(f"diversity is {diversity}: it goes from 0 to 1")
    if diversity == 0.0 or len(hits) < 2:
        return _numbered(hits[: max(0, k)])
    relevance = _relevance(hits)
    units = _units(hits, vectors)
    nearest = np.full(len(hits), -np.inf)
    left = np.ones(len(hits), dtype=bool)
    chosen: list[int] = []
    while len(chosen) < min(k, len(hits)):
        closeness = np.maximum(nearest, 0.0) if chosen else np.zeros(len(hits))
        gain = (1.0 - diversity) * relevance - diversity * closeness
        # The first hit is the best one even where relevance counts for nothing; argmax takes the earliest of equals.
        best = int(np.argmax(np.where(left, gain, -np.inf))) if chosen else 0
        chosen.append(best)
        left[best] = False
        nearest = np.maximum(nearest, units @ units[best])
    return _numbered([hits[index] for index in chosen])


def without_near_duplicates(
    hits: Sequence[SearchHit], vectors: VectorOf, *, threshold: float = 0.95
) -> list[SearchHit]:
    """The hits without those that repeat a better one, numbered again from 1.

    A hit repeats another whose text is the same but for white space, wherever it stands, and one of its own document
    with a cosine of at least `threshold`. Similar texts of different documents both stay: that two places agree, or
    nearly do, is knowledge.
    """
    units = _units(hits, vectors)
    kept: list[int] = []
    texts: set[str] = set()
    for index, hit in enumerate(hits):
        text = " ".join(hit.text.split())
        own = [other for other in kept if hits[other].document_id == hit.document_id]
        if text in texts or any(units[index] @ units[other] >= threshold for other in own):
            continue
        texts.add(text)
        kept.append(index)
    return _numbered([hits[index] for index in kept])


def _relevance(hits: Sequence[SearchHit]) -> NDArray[np.float64]:
    """From 1, the best, down to 0."""
    scores = np.array([hit.score for hit in hits], dtype=np.float64)
    if not np.isfinite(scores).all() or any(after > before for before, after in pairwise(scores)):
        return np.linspace(1.0, 0.0, len(hits))
    spread = scores[0] - scores[-1]
    return (scores - scores[-1]) / spread if spread > 0 else np.ones(len(hits))


def _units(hits: Sequence[SearchHit], vectors: VectorOf) -> NDArray[np.float64]:
    """The hits' vectors at length 1, shape (hits, d); zeros where there is none."""
    length = next((len(vectors[hit.chunk_id]) for hit in hits if hit.chunk_id in vectors), 1)
    rows = np.zeros((len(hits), length), dtype=np.float64)
    for index, hit in enumerate(hits):
        if (vector := vectors.get(hit.chunk_id)) is not None:
            rows[index] = vector
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    units: NDArray[np.float64] = rows / np.where(norms > 0, norms, 1.0)
    return units


def _numbered(hits: Sequence[SearchHit]) -> list[SearchHit]:
    return [hit if hit.rank == rank else replace(hit, rank=rank) for rank, hit in enumerate(hits, start=1)]
