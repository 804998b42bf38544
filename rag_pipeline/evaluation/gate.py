"""Whether one evaluation is good enough to take the place of another. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rag_pipeline.errors import ConfigError
from rag_pipeline.model import Evaluation

SERVED: Final = ("fused", "reranked")
"""The legs that people get answers from; a single leg may fall while both together rise."""
_ROUNDING: Final = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Fall:
    """A mean that fell by more than what is tolerated."""

    leg: str
    measure: str
    before: float
    after: float

    def __str__(self) -> str:
        return f"{self.leg} {self.measure} fell from {self.before:.3f} to {self.after:.3f}"


def falls(
    before: Evaluation, after: Evaluation, *, tolerance: float, legs: Sequence[str] = SERVED
) -> list[Fall]:  # fmt: skip
    """Measures whose mean fell by more than `tolerance` (0 to 1), the deepest fall first; a rise is never a fall.

    Raises:
        ConfigError: the two cannot be compared, because the labels differ or no leg of `legs` is in both.
    """
    if before.labels_hash != after.labels_hash:
        raise ConfigError(
            f"{after.dataset}: the labels changed between the two evaluations: evaluate both with the same labels"
        )
    common = [leg for leg in legs if leg in before.per_query and leg in after.per_query]
    if not common:
        raise ConfigError(f"{after.dataset}: no leg of {', '.join(legs)} was measured both times: evaluate both again")
    was, is_ = before.metrics, after.metrics
    found = [
        Fall(leg=leg, measure=measure, before=value, after=is_[leg][measure])
        for leg in common
        for measure, value in was[leg].items()
        if measure in is_[leg] and value - is_[leg][measure] > tolerance + _ROUNDING
    ]
    return sorted(found, key=lambda fall: (fall.after - fall.before, fall.leg, fall.measure))
