"""Chunk text to vectors: the Embedder protocol, its providers, and the reuse of known vectors.

What knows a model, a tokenizer or an embedding service belongs here. Where vectors are stored does not: the store is
the `KnownVectors` protocol. Importing this package loads no model library; each is imported when it is first used.
"""

from rag_pipeline.embedding.embedder import EmbeddedBatch, Embedder, make_embedder, refusal
from rag_pipeline.embedding.reuse import EmbeddingProgress, EmbeddingReport, KnownVectors, Text, embed_missing
from rag_pipeline.embedding.spending import Spending
from rag_pipeline.embedding.tokens import TokenCounter, counting_version, token_counter

__all__ = [
    "EmbeddedBatch",
    "Embedder",
    "EmbeddingProgress",
    "EmbeddingReport",
    "KnownVectors",
    "Spending",
    "Text",
    "TokenCounter",
    "counting_version",
    "embed_missing",
    "make_embedder",
    "refusal",
    "token_counter",
]
