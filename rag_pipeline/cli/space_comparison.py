"""How a candidate is measured against the active space: the same labelled questions to both, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rag_pipeline.index.database import Connection
from rag_pipeline.model import EmbeddingSpace
from rag_pipeline.refresh import Models
from rag_pipeline.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One measure of one leg in both spaces."""

    leg: str
    measure: str
    active: float
    candidate: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What the labelled questions say of a candidate."""

    dataset: str
    questions: int
    measures: Sequence[Measured]
    falls: Sequence[str]
    """What the candidate is worse at than the tolerance allows, a line each; empty: it may be promoted."""


def compare(
    settings: Settings, connection: Connection, *, candidate: EmbeddingSpace, active: EmbeddingSpace, models: Models
) -> Comparison | None:
    """Ask both spaces the configured questions; None: no labelled questions are configured.

    To ask one space, whichever is active: `Retriever(connection, embedder_of=…, space=space)`.
    """
    # JOIN with evaluation/run.py (`evaluate`), evaluation/gate.py (`falls`) and index/evaluations.py: until then there
    # are no labels to ask, and a promotion needs --force.
    del settings, connection, candidate, active, models
    return None
