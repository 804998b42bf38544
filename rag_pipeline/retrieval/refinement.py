"""What happens to hits after the legs: duplicates, reranking, diversity, stitching, each only when it is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from rag_pipeline.index.database import Connection
from rag_pipeline.index.sql_files import queries
from rag_pipeline.model import EmbeddingSpace, SearchHit
from rag_pipeline.retrieval.diversity import VectorOf, diversified, without_near_duplicates
from rag_pipeline.retrieval.linked import linked_hits
from rag_pipeline.retrieval.observer import NOBODY, Observer, timed
from rag_pipeline.retrieval.query import SearchQuery
from rag_pipeline.retrieval.reader import reading
from rag_pipeline.retrieval.rerank import Reranker, reranked
from rag_pipeline.retrieval.stitching import Place, Places, stitched
from rag_pipeline.retrieval.vector_leg import statement
from rag_pipeline.settings import Rerank, Retrieval

_CHOICE = 3
"""Hits per wanted one that diversity chooses from."""
_LINKED = 3
"""Of each hit's document, so many others that it is linked to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refinement:
    """What one query's hits go through."""

    connection: Connection
    query: SearchQuery
    space: EmbeddingSpace | None
    settings: Retrieval
    rerank: Rerank
    reranker: Reranker | None
    observer: Observer = NOBODY

    @property
    def diversity(self) -> float:
        """0: by score alone."""
        return self.settings.diversity if self.query.diversity is None else self.query.diversity

    @property
    def is_reranked(self) -> bool:
        """Whether a reranker reads the hits."""
        return self.reranker is not None and self.query.rerank is not False

    @property
    def depth(self) -> int:
        """How many hits the legs shall give."""
        k = self.query.k
        return max(k, self.rerank.top_n if self.is_reranked else 0, _CHOICE * k if self.diversity else 0)

    def apply(self, hits: Sequence[SearchHit]) -> tuple[list[SearchHit], str]:
        """At most `k` hits, behind them what they are linked to, and what could not be done."""
        found, problem = list(hits), ""
        vectors = self._vectors(found) if self.diversity else {}
        if self.diversity:
            first = without_near_duplicates(found, vectors)
            # Who asked for k hits gets k, duplicates rather than none.
            kept = {hit.chunk_id for hit in first}
            found = [*first, *(hit for hit in found if hit.chunk_id not in kept)][: max(len(first), self.query.k)]
        if self.is_reranked and self.reranker is not None:
            with timed(self.observer, "rerank"):
                found, failed = reranked(
                    self.query.text, found, self.reranker, self.rerank.top_n, timeout_s=self.rerank.timeout_s
                )
            problem = f"not reranked: {failed}" if failed else ""
        found = diversified(found, vectors, diversity=self.diversity, k=self.query.k)
        if self.query.stitch:
            found = stitched(found, self._places(found))
        found = [replace(hit, rank=rank) for rank, hit in enumerate(found, start=1)]
        return found + (self._linked(found) if self.query.linked else []), problem

    def _linked(self, hits: Sequence[SearchHit]) -> list[SearchHit]:
        with reading(self.connection, tenant=self.query.tenant, scopes=self.query.scopes):
            return linked_hits(self.connection, hits, limit=_LINKED)

    def _vectors(self, hits: Sequence[SearchHit]) -> VectorOf:
        if self.space is None or not hits:
            return {}
        values = {"chunks": [hit.chunk_id for hit in hits], "tenant": self.query.tenant}
        with (
            reading(self.connection, tenant=self.query.tenant, scopes=self.query.scopes),
            self.connection.cursor(binary=True) as cursor,
        ):
            rows = cursor.execute(statement("vectors", self.space), values).fetchall()
        return {row[0]: np.asarray(row[1].to_numpy(), dtype=np.float32) for row in rows}

    def _places(self, hits: Sequence[SearchHit]) -> Places:
        values = {"chunks": [hit.chunk_id for hit in hits], "tenant": self.query.tenant}
        with reading(self.connection, tenant=self.query.tenant, scopes=self.query.scopes):
            rows = self.connection.execute(queries("search")["places"], values).fetchall()
        return {row[0]: Place(position=row[1], start_char=row[2], end_char=row[3]) for row in rows}
