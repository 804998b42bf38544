"""Documents to chunks: where to cut, and counting tokens. Pure functions of text and settings."""

from __future__ import annotations

from rag_pipeline.chunking.chunk import CHUNKING_VERSION, chunk_document
from rag_pipeline.chunking.tokens import TokenCounter, count_words

__all__ = ["CHUNKING_VERSION", "TokenCounter", "chunk_document", "count_words"]
