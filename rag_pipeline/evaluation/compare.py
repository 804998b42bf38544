"""What makes a difference: one leg against another, and one evaluation against an earlier one. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rag_pipeline.evaluation.measures import HEADLINE
from rag_pipeline.model import Evaluation

_EQUAL = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A question that is answered differently than before."""

    query: str
    leg: str
    measure: str
    before: float
    after: float


def ablation(evaluation: Evaluation, *, against: str = "fused") -> dict[str, dict[str, float]]:
    """Leg → measure → its mean minus that of `against`: what the others add shows as how far it lies below 0."""
    metrics = evaluation.metrics
    base = metrics.get(against)
    if base is None:
        return {}
    return {
        leg: {name: value - base[name] for name, value in means.items() if name in base}
        for leg, means in metrics.items()
        if leg != against
    }


def worse(
    before: Evaluation, after: Evaluation, *, measure: str = HEADLINE[0], legs: Sequence[str] = ()
) -> list[Change]:
    """Questions that both evaluations asked and that `after` answers worse, the deepest fall first; no legs: all."""
    found = []
    for leg in legs or list(after.per_query):
        former = before.per_query.get(leg, {})
        for query, values in after.per_query.get(leg, {}).items():
            was = former.get(query, {}).get(measure)
            if was is not None and values[measure] < was - _EQUAL:
                found.append(Change(query=query, leg=leg, measure=measure, before=was, after=values[measure]))
    return sorted(found, key=lambda change: (change.after - change.before, change.leg, change.query))
