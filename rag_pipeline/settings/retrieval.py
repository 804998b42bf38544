"""The `[retrieval]` section: how the two legs rank and how much of each is looked at."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from rag_pipeline.settings.sections import Section


class Fusion(Section):
    """What each part counts in the fused score; only the proportions matter."""

    vector: float = Field(default=0.45, ge=0)
    lexical: float = Field(default=0.55, ge=0)
    reciprocal_rank: float = Field(default=0.0, ge=0)
    rrf_k: int = Field(default=60, ge=1)
    """The larger, the less the first ranks stand out."""
    adaptive: bool = True
    """Whether a BM25 score counts by the evidence it is; else as a share of the query's best, beside the cosine."""

    @model_validator(mode="after")
    def _something_counts(self) -> Fusion:
        if not self.vector + self.lexical + self.reciprocal_rank:
            raise ValueError("all weights are 0: give `vector`, `lexical` or `reciprocal_rank` more")
        return self


class Retrieval(Section):
    """How questions are answered from the index; changing any of it takes effect with the next question."""

    k1: float = Field(default=1.5, ge=0, le=10)
    """BM25: how soon another occurrence of a term stops counting."""
    b: float = Field(default=0.75, ge=0, le=1)
    """BM25: how much long chunks are held against them."""
    function_word_weight: float = Field(default=0.2, gt=0, le=1)
    """BM25: what `how`, `the` and their like count in a question, against 1 for every other term."""
    lexical: Literal["postings", "pg_search"] = "postings"
    """`postings`: our own, on any PostgreSQL; `pg_search`: ParadeDB's index, where the server has the extension."""
    noise_similarity: float | None = Field(default=None, ge=0, le=1)
    """A question whose words no document holds finds nothing unless the cosine similarity of some chunk reaches this;
    none: as measured for the local model, and 0, which keeps all, for others."""
    candidates: int = Field(default=50, ge=10, le=1000)
    """Of each leg, as many of the best are fused, and at least as many as hits are asked for."""
    fusion: Fusion = Fusion()
    diversity: float = Field(default=0.0, ge=0, le=1)
    """0: by score alone; 1: hits as different from each other as can be (MMR)."""
