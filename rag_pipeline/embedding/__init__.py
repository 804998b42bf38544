"""Chunk text to vectors: the Embedder protocol, its providers, and the reuse of known vectors."""
