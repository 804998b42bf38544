"""Settings of the evaluation: what the index is measured with, and how much worse a new one may be."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from rag_pipeline.settings.sections import Section


class Evaluation(Section):
    """Which labelled questions are asked of the index, and how they are asked."""

    labels: tuple[str, ...] = ()
    """Files of labels, as globs; relative ones start beside the configuration file."""
    datasets: tuple[str, ...] = ()
    """Folders with `queries.jsonl` and `qrels.tsv` whose document ids are source ids of the index."""
    legs: tuple[Literal["lexical", "vector", "fused", "reranked"], ...] = Field(
        default=("lexical", "vector", "fused"), min_length=1
    )
    """What is measured; `reranked` needs a reranker."""
    k: int = Field(default=100, ge=20, le=200)
    """Hits that are asked for each question. Several of one document count once, so it is more than the largest cutoff
    of a measure, 20."""
    tolerance: float = Field(default=0.02, ge=0, le=1)
    """The largest fall of a measure that a promotion accepts."""
