"""A retriever over one database: knows the active embedding space and the model that fits it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rag_pipeline.embedding import Embedder, make_embedder
from rag_pipeline.errors import ConfigError
from rag_pipeline.index.database import Connection
from rag_pipeline.index.spaces import active_space
from rag_pipeline.model import EmbeddingSpace, SearchHit
from rag_pipeline.retrieval.query import SearchQuery
from rag_pipeline.retrieval.search import search
from rag_pipeline.settings import Embedding


class Retriever:
    """Answers queries over an open connection; `embedder_of` makes the embedder of a space."""

    def __init__(self, connection: Connection, *, embedder_of: Callable[[EmbeddingSpace], Embedder]) -> None:
        self._connection = connection
        self._embedder_of = embedder_of

    def search(self, query: SearchQuery) -> list[SearchHit]:
        """At most `k` hits, best first.

        Raises:
            ConfigError: the query is not answerable as it stands, or nothing is indexed yet.
        """
        space = active_space(self._connection)
        if space is None:
            raise ConfigError("nothing is indexed yet: run `rag-pipeline up` or `rag-pipeline materialize` first")
        embedder = self._embedder_of(space)
        try:
            if embedder.recipe != space.recipe:
                raise ConfigError(
                    f"the index was embedded with recipe {space.recipe!r}, this code uses {embedder.recipe!r}: "
                    "run `rag-pipeline materialize` to bring it up to date"
                )
            return search(self._connection, query, space=space, embed_query=embedder.embed_query)
        finally:
            embedder.close()


def embedder_of(
    space: EmbeddingSpace,
    *,
    settings: Embedding,
    environ: Mapping[str, str],
    make: Callable[..., Embedder] = make_embedder,
) -> Embedder:
    """The embedder that made a space's vectors, whichever model the settings name by now."""
    wanted: dict[str, object] = {"provider": space.provider, "model": space.model}
    if settings.dimensions is not None:
        wanted["dimensions"] = space.dimensions
    return make(settings.model_copy(update=wanted), environ=environ)
