from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from rag_pipeline.embedded import EmbeddedPostgres
from rag_pipeline.index.database import Connection, connected
from rag_pipeline.index.graph import ensure_graph
from rag_pipeline.model import EmbeddingSpace, SearchHit
from rag_pipeline.retrieval.query import SearchQuery
from rag_pipeline.retrieval.search import search
from rag_pipeline.settings import Retrieval
from rag_pipeline_tests.databases import empty, new_database
from rag_pipeline_tests.knowledge import entry, space_of, store_vectors, write

DIMENSIONS = 16
RARE_EVERY = 100


@pytest.fixture
def database(reused_database: str) -> str:
    """The address of a migrated database with nothing in it."""
    empty(reused_database)
    return reused_database


@dataclass(frozen=True, kw_only=True)
class Library:
    """12,000 chunks of one tenant with their vectors, and the answers that a search must give."""

    connection: Connection
    space: EmbeddingSpace
    texts: list[str]
    vectors: NDArray[np.float32]
    """Shape (texts, dimensions), normalised, in clusters as real ones are."""

    def search(self, vector: NDArray[np.float32], **where: object) -> list[SearchHit]:
        query = SearchQuery(text="anything", tenant="acme", legs="vector", **where)  # type: ignore[arg-type]
        return search(self.connection, query, space=self.space, vector=vector, settings=Retrieval())

    def nearest(self, vector: NDArray[np.float32], k: int, *, rare: bool = False) -> list[str]:
        """What an exhaustive comparison finds."""
        halves = self.vectors.astype(np.float16).astype(np.float64)
        similarity = halves @ vector / np.linalg.norm(halves, axis=1)
        order = np.argsort(-similarity, kind="stable")
        return [self.texts[i] for i in order if not rare or i % RARE_EVERY == 0][:k]


@pytest.fixture(scope="module")
def library(server: EmbeddedPostgres, template: str) -> Iterator[Library]:
    """One chunk of a hundred lies in the repository `rare`, all others in `common`."""
    random = np.random.default_rng(3)
    centres = random.normal(size=(60, DIMENSIONS))
    vectors = centres[random.integers(0, 60, 12_000)] + 0.35 * random.normal(size=(12_000, DIMENSIONS))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    texts = [f"passage {n}" for n in range(12_000)]
    with new_database(server, "library", template=template) as url, connected(url) as connection:
        space = space_of(connection, dimensions=DIMENSIONS)
        store_vectors(connection, space, dict(zip(texts, vectors, strict=True)))
        for name, indices in (
            ("rare", range(0, 12_000, RARE_EVERY)),
            ("common", [n for n in range(12_000) if n % RARE_EVERY]),
        ):
            own = [texts[n] for n in indices]
            pages = [own[start : start + 20] for start in range(0, len(own), 20)]
            write(connection, *(entry(f"{n}.md", *page, repository=name) for n, page in enumerate(pages)))
        ensure_graph(connection, space)
        yield Library(connection=connection, space=space, texts=texts, vectors=vectors.astype(np.float32))
