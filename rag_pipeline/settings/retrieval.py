"""The `[retrieval]` section: how the two legs rank and how much of each is looked at."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from rag_pipeline.settings.sections import Section


class Retrieval(Section):
    """How questions are answered from the index; changing any of it takes effect with the next question."""

    k1: float = Field(default=1.2, ge=0, le=10)
    """BM25: how soon another occurrence of a term stops counting."""
    b: float = Field(default=0.75, ge=0, le=1)
    """BM25: how much long chunks are held against them."""
    lexical: Literal["postings", "pg_search"] = "postings"
    """`postings`: our own, on any PostgreSQL; `pg_search`: ParadeDB's index, where the server has the extension."""
    candidates: int = Field(default=100, ge=10, le=1000)
    """Of each leg, as many of the best are fused, and at least as many as hits are asked for."""
    diversity: float = Field(default=0.0, ge=0, le=1)
    """0: by score alone; 1: hits as different from each other as can be (MMR)."""
