"""Late interaction with the local embedding model: each word of the question looks for its best match in the passage.

MaxSim of ColBERT (Khattab and Zaharia 2020, https://arxiv.org/abs/2004.12832) over the token vectors of all-MiniLM,
which was not trained for it: alone it is worse than the order it is given, so it only corrects that order. What it
gains and costs is measured in docs/retrieval-options.md.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rag_pipeline.embedding.local import LocalEmbedder, TokenVectors
from rag_pipeline.errors import ConfigError
from rag_pipeline.model import SearchHit
from rag_pipeline.settings import Embedding, Rerank

_WEIGHT: Final = 0.3
"""Of MaxSim beside the order that is given, both from 0 (the worst hit) to 1 (the best)."""

Scores = NDArray[np.float64]


class LocalMaxSim:
    """The hits' own scores, corrected by how well the words of the question are met. One thread at a time."""

    def __init__(self, settings: Rerank) -> None:
        if settings.model:
            raise ConfigError("rerank.provider is 'local-maxsim', which has one model only: remove rerank.model")
        self._embedder = LocalEmbedder(Embedding(threads=settings.threads))
        self._lock = threading.Lock()
        self.name = f"local-maxsim {self._embedder.model}"

    def scores(self, question: str, hits: Sequence[SearchHit]) -> list[float]:
        with self._lock:
            asked, *passages = self._embedder.token_vectors([question, *(hit.text for hit in hits)])
        given = _from_0_to_1(np.array([hit.score for hit in hits], dtype=np.float64))
        met = _from_0_to_1(max_similarity(asked, passages))
        return [float(score) for score in given + _WEIGHT * met]

    def close(self) -> None:
        self._embedder.close()


def max_similarity(asked: TokenVectors, passages: Sequence[TokenVectors]) -> Scores:
    """For each passage the mean, over the question's tokens, of the cosine to the passage's nearest token. Pure.

    Tokens that most of the passages hold count for less (inverse document frequency of BM25, over these passages).
    A question or passage without a token scores 0.
    """
    weights = _rarity(asked.ids, passages)
    if not weights.sum() > 0:
        return np.zeros(len(passages))
    nearest = [
        (asked.vectors @ passage.vectors.T).max(axis=1) if len(passage.ids) else np.zeros(len(asked.ids))
        for passage in passages
    ]
    scores: Scores = np.stack(nearest).astype(np.float64) @ weights / weights.sum()
    return scores


def _rarity(ids: Sequence[int], passages: Sequence[TokenVectors]) -> Scores:
    holding = Counter(token for passage in passages for token in set(passage.ids))
    found = np.array([holding[token] for token in ids], dtype=np.float64)
    return np.log1p((len(passages) - found + 0.5) / (found + 0.5))


def _from_0_to_1(scores: Scores) -> Scores:
    low, high = scores.min(), scores.max()
    return (scores - low) / (high - low) if high > low else np.zeros_like(scores)
