"""How sure one may be that what was found answers the question: evidence of the hits, and of the answer made of them.

The evidence is a logistic regression on the two measures that told answerable questions from others best on labelled
sets: the highest cosine similarity of a hit, and which share of the question's terms one hit holds, the rare ones
counting more. Fused scores did worse, since long questions gather BM25 without meaning. Fitted with the local model:
another embedder has other cosines, and needs another `answering.min_evidence` (docs/answering.md). Pure.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from rag_pipeline.answering.support import source_text
from rag_pipeline.answering.terms import content_terms, rarities
from rag_pipeline.lexical.analyzer import terms_of
from rag_pipeline.model import SearchHit

_LOOKED_AT: Final = 8
_COSINE, _COVERAGE, _OFFSET = 18.0, 5.0, -11.0
_COVERAGE_ALONE, _OFFSET_ALONE = 6.0, -3.0
"""Where no vectors were compared."""


def evidence(question: str, hits: Sequence[SearchHit]) -> float:
    """How likely these hits, best first, answer the question, 0 to 1; 0 without hits."""
    looked_at = hits[:_LOOKED_AT]
    if not looked_at:
        return 0.0
    covered = coverage(question, looked_at)
    cosines = [leg.score for hit in looked_at for leg in hit.legs if leg.leg == "vector" and math.isfinite(leg.score)]
    if not cosines:
        return _logistic(_COVERAGE_ALONE * covered + _OFFSET_ALONE)
    return _logistic(_COSINE * max(cosines) + _COVERAGE * covered + _OFFSET)


def coverage(question: str, hits: Sequence[SearchHit]) -> float:
    """Of the question's terms, weighed by how rare they are among the hits, the largest share that one hit holds."""
    terms = content_terms(question)
    texts = [source_text(hit) for hit in hits]
    if not terms or not texts:
        return 0.0
    rarity = rarities(texts)
    total = rarity.total(terms)
    return max(rarity.total(set(terms) & set(terms_of(text))) for text in texts) / total


def of_answer(evidence: float, support: float) -> float:
    """Of an answer: no surer than what it was made from, nor than it stands on it."""
    return math.sqrt(max(0.0, evidence) * max(0.0, support))


def _logistic(value: float) -> float:
    return 1 / (1 + math.exp(-value))
