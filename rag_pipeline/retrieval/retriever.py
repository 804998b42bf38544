"""A retriever over one database: knows the active embedding space and the model that fits it."""

from __future__ import annotations

from collections.abc import Callable

import psycopg

from rag_pipeline.embedding import Embedder
from rag_pipeline.errors import ConfigError
from rag_pipeline.index.database import Connection
from rag_pipeline.index.spaces import active_space
from rag_pipeline.model import EmbeddingSpace, SearchHit
from rag_pipeline.retrieval.query import SearchQuery
from rag_pipeline.retrieval.search import search


class Retriever:
    """Answers queries over an open connection; `embedder_of` makes the embedder of a space.

    `space`: search this one, whichever is active; it is how a space is measured before it answers anybody.
    """

    def __init__(
        self, connection: Connection, *, embedder_of: Callable[[EmbeddingSpace], Embedder],
        space: EmbeddingSpace | None = None,
    ) -> None:  # fmt: skip
        self._connection = connection
        self._embedder_of = embedder_of
        self._space = space

    def search(self, query: SearchQuery) -> list[SearchHit]:
        """At most `k` hits, best first, all of them from one embedding space.

        Raises:
            ConfigError: the query is not answerable as it stands, or nothing is indexed yet.
        """
        while True:
            space = self._space or self._active()
            try:
                return self._search(query, space)
            except psycopg.errors.UndefinedTable:
                # Between our look and the search another space was promoted and this one dropped.
                if self._space is not None or self._active().space_id == space.space_id:
                    raise

    def _active(self) -> EmbeddingSpace:
        space = active_space(self._connection)
        if space is None:
            raise ConfigError("nothing is indexed yet: run `rag-pipeline up` or `rag-pipeline materialize` first")
        return space

    def _search(self, query: SearchQuery, space: EmbeddingSpace) -> list[SearchHit]:
        embedder = self._embedder_of(space)
        try:
            if embedder.recipe != space.recipe:
                raise ConfigError(
                    f"the index was embedded with recipe {space.recipe!r}, this code uses {embedder.recipe!r}: "
                    "run `rag-pipeline materialize` to bring it up to date"
                )
            # The space is read once: a switch while we embed the question leaves this answer wholly in the old space.
            return search(self._connection, query, space=space, embed_query=embedder.embed_query)
        finally:
            embedder.close()
