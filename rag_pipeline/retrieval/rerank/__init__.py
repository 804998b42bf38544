"""The best hits of a search, read a second time: the Reranker protocol, its providers, and their order applied.

What knows a reranking model or service belongs here. Importing this package loads none; each is imported when it is
first used.
"""

from rag_pipeline.retrieval.rerank.order import reranked
from rag_pipeline.retrieval.rerank.reranker import Reranker, make_reranker

__all__ = ["Reranker", "make_reranker", "reranked"]
