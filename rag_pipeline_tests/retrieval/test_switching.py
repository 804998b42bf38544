"""Searches while spaces are promoted, rolled back and dropped: each answer is wholly of one space."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
import pytest

from rag_pipeline.index.database import Connection, connected
from rag_pipeline.index.graph import ensure_graph
from rag_pipeline.index.promotion import drop, promote, rollback
from rag_pipeline.index.spaces import activate
from rag_pipeline.model import EmbeddingSpace
from rag_pipeline.retrieval.query import SearchQuery
from rag_pipeline.retrieval.retriever import Retriever
from rag_pipeline_tests.knowledge import entry, space_of, store_vectors, write

TEXTS = ["first", "second", "third", "fourth"]
QUERY = SearchQuery(text="anything", tenant="acme", k=4)
ORDERS = {"a": TEXTS, "b": TEXTS[::-1]}
LENGTHS = {"a": 8, "b": 16}


class SpaceEmbedder:
    """The question lies on the first axis of its space; `meanwhile` happens while it is embedded."""

    recipe = "text/v1"

    def __init__(self, space: EmbeddingSpace, meanwhile: Callable[[], object] = lambda: None) -> None:
        self._space = space
        self._meanwhile = meanwhile

    def embed_query(self, text: str) -> np.ndarray:
        self._meanwhile()
        return np.eye(self._space.dimensions, dtype=np.float32)[0]

    def close(self) -> None:
        pass


@pytest.fixture
def spaces(connection: Connection) -> dict[str, EmbeddingSpace]:
    """Two complete spaces of different length that order the same texts the other way round; `a` is active."""
    write(connection, entry("a.md", *TEXTS))
    made = {}
    for name, order in ORDERS.items():
        made[name] = space = space_of(connection, model=name, dimensions=LENGTHS[name])
        axes = np.eye(space.dimensions)
        store_vectors(connection, space, {t: axes[0] + n * axes[1] for n, t in enumerate(order)})
        ensure_graph(connection, space)
    activate(connection, made["a"])
    return made


def texts(retriever: Retriever) -> list[str]:
    return [hit.text for hit in retriever.search(QUERY)]


def test_searches_during_switches_are_answered_by_one_space_each(database, connection, spaces):
    stop, seen, wrong = threading.Event(), set(), []

    def search() -> None:
        with connected(database) as own:
            retriever = Retriever(own, embedder_of=SpaceEmbedder)  # type: ignore[arg-type]
            while not stop.is_set():
                found = texts(retriever)
                seen.add(found[0])
                if found not in (TEXTS, TEXTS[::-1]):
                    wrong.append(found)

    searchers = [threading.Thread(target=search) for _ in range(3)]
    for searcher in searchers:
        searcher.start()
    promote(connection, spaces["b"].space_id, gate=lambda *_: [])
    for _ in range(30):
        rollback(connection)
    stop.set()
    for searcher in searchers:
        searcher.join(30)
    assert not any(searcher.is_alive() for searcher in searchers)
    assert wrong == []
    assert seen <= {"first", "fourth"}


def test_a_question_asked_during_a_switch_is_asked_again_of_the_new_space(database, connection, spaces):
    asked = []

    def switch() -> None:
        with connected(database) as other:
            promote(other, spaces["b"].space_id, gate=lambda *_: [])

    def embedder_of(space: EmbeddingSpace) -> SpaceEmbedder:
        asked.append(space.model)
        return SpaceEmbedder(space, switch if space.model == "a" else lambda: None)

    assert texts(Retriever(connection, embedder_of=embedder_of)) == TEXTS[::-1]  # type: ignore[arg-type]
    assert asked == ["a", "b"]


def test_a_question_whose_space_was_dropped_meanwhile_is_asked_again(database, connection, spaces):
    asked = []

    def switch_and_drop() -> None:
        with connected(database) as other:
            promote(other, spaces["b"].space_id, gate=lambda *_: [])
            drop(other, spaces["a"].space_id)

    def embedder_of(space: EmbeddingSpace) -> SpaceEmbedder:
        asked.append(space.model)
        return SpaceEmbedder(space, switch_and_drop if space.model == "a" else lambda: None)

    assert texts(Retriever(connection, embedder_of=embedder_of)) == TEXTS[::-1]  # type: ignore[arg-type]
    assert asked == ["a", "b"]


def test_a_space_can_be_asked_before_it_is_promoted(connection, spaces):
    retriever = Retriever(connection, embedder_of=SpaceEmbedder, space=spaces["b"])  # type: ignore[arg-type]
    assert texts(retriever) == TEXTS[::-1]
