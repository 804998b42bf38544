"""What the checks of embeddings and of the index tolerate: `[quality.embeddings]` and `[quality.knowledge_index]`."""

from __future__ import annotations

from pydantic import Field

from rag_pipeline.settings.sections import Section


class EmbeddingChecks(Section):
    """Of the vectors of a part."""

    norm_tolerance: float = Field(default=0.02, gt=0, le=1)
    """How far the length of a vector may be from 1, for models that normalise; of others only 0 is refused."""
    max_identical_share: float = Field(default=0.5, ge=0, le=1)
    """Of a part's texts that have the same vector as another text; judged from ten texts on."""
    min_reused_share: float = Field(default=0.02, ge=0, le=1)
    """A run over parts that had their vectors before, and that reuses a smaller share of them, is warned of."""


class IndexChecks(Section):
    """Of the whole index."""

    min_recall: float = Field(default=0.9, ge=0, le=1)
    """Recall at 10 of the graph against an exhaustive comparison, on vectors that the index holds."""
    recall_questions: int = Field(default=20, ge=1, le=1000)
    """Stored vectors that are asked for their neighbours."""
    analyzed_chunks: int = Field(default=200, ge=1, le=100_000)
    """Chunks whose terms are compared with their postings; others with every day."""
    max_orphan_vector_share: float = Field(default=0.5, ge=0, le=1)
    """Of all vectors, those that no chunk has any more; judged from a thousand of them on."""
    max_age_hours: float = Field(default=24.0, ge=0)
    """A run looks at the whole index again when the last such look is older than this, whether or not it wrote."""
    whole_up_to_chunks: int = Field(default=50_000, ge=0)
    """An index with at most so many chunks is looked at whole after every run that wrote to it; of a larger one such a
    run looks only at the documents of its days, until `max_age_hours` are over."""
