"""A graph over short codes: what it finds is ranked by the vectors themselves, filtered and separated as ever."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from uuid import UUID

import numpy as np
import pytest
from numpy.typing import NDArray
from pgvector import HalfVector

from rag_pipeline.embedded import EmbeddedPostgres
from rag_pipeline.index.database import Connection, connected
from rag_pipeline.index.graph import ensure_graph
from rag_pipeline.index.partitioning import partition
from rag_pipeline.index.spaces import activate, create_space, numbered_space
from rag_pipeline.model import Graph
from rag_pipeline.progress import silent
from rag_pipeline.retrieval import search as search_module
from rag_pipeline.retrieval import vector_leg
from rag_pipeline.retrieval.query import SearchQuery
from rag_pipeline.retrieval.reader import reading
from rag_pipeline.retrieval.recall import graph_recall
from rag_pipeline.retrieval.retriever import Retriever
from rag_pipeline.settings import Retrieval
from rag_pipeline_tests.databases import new_database
from rag_pipeline_tests.knowledge import entry, space_of, store_vectors, write
from rag_pipeline_tests.retrieval.conftest import Library

DIMENSIONS = 256
MANY = 3_000
QUESTIONS = range(0, MANY, 97)


@pytest.fixture(autouse=True)
def by_the_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_module, "EXACT_UP_TO", 0)


@pytest.fixture(scope="module")
def coded(server: EmbeddedPostgres, template: str) -> Iterator[Library]:
    """One chunk of thirty lies in the repository `rare`, all others in `common`; vectors are long enough for codes."""
    random = np.random.default_rng(3)
    made = random.normal(size=(60, DIMENSIONS))[random.integers(0, 60, MANY)]
    made = made + 0.5 * random.normal(size=(MANY, DIMENSIONS))
    vectors = (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)
    texts = [f"passage {n}" for n in range(MANY)]
    with new_database(server, "coded", template=template) as url, connected(url) as connection:
        space = space_of(connection, dimensions=DIMENSIONS)
        store_vectors(connection, space, dict(zip(texts, vectors, strict=True)))
        for name, own in (("rare", texts[::30]), ("common", [t for n, t in enumerate(texts) if n % 30])):
            pages = [own[start : start + 20] for start in range(0, len(own), 20)]
            write(connection, *(entry(f"{n}.md", *page, repository=name) for n, page in enumerate(pages)))
        ensure_graph(connection, space)
        space = numbered_space(connection, space.space_id)
        yield Library(connection=connection, space=space, texts=texts, vectors=vectors)


def test_the_nearest_are_found_and_stand_in_the_order_of_their_vectors(coded: Library) -> None:
    right = 0
    for question in QUESTIONS:
        vector = coded.vectors[question]
        hits = coded.search(vector, k=10)
        assert hits[0].text == f"passage {question}"
        scores = [hit.score for hit in hits]
        assert scores == sorted(scores, reverse=True)
        exact = {text: float(vector @ coded.vectors[coded.texts.index(text)]) for text in (hit.text for hit in hits)}
        assert [hit.score for hit in hits] == pytest.approx(list(exact.values()), abs=2e-3)
        right += len({hit.text for hit in hits} & set(coded.nearest(vector, 10)))
    assert right / (10 * len(QUESTIONS)) > 0.97


@pytest.mark.parametrize("k", [1, 50, 100])
def test_a_filter_gives_k_rows(coded: Library, k: int) -> None:
    for question in list(QUESTIONS)[:8]:
        found = coded.search(coded.vectors[question], k=k, repository="rare")
        assert {hit.repository for hit in found} == {"rare"}
        assert len({hit.chunk_id for hit in found}) == k


def test_more_than_are_compared_by_default_are_found(coded: Library) -> None:
    vector = coded.vectors[5]
    found = {hit.text for hit in coded.search(vector, k=200)}
    assert len(found) == 200
    # A quarter of them lies in the question's own cluster, the rest is about as near as anything else.
    assert len(found & set(coded.nearest(vector, 40))) > 38


def test_another_tenant_sees_none_of_it(coded: Library) -> None:
    with reading(coded.connection, tenant="other", space=coded.space):
        values = {"tenant": "acme", "query": HalfVector(coded.vectors[0]), "limit": 10}
        rows = coded.connection.execute(vector_leg.statement("graph_everywhere", coded.space), values)
    assert rows.fetchall() == []


@pytest.mark.parametrize("way", ["graph", "graph_everywhere"])
def test_the_graph_is_walked_under_row_level_security(coded: Library, way: str) -> None:
    values = {
        "tenant": "acme", "repository": None, "source_type": None, "language": None, "path_prefix": None, "limit": 10,
        "metadata": None, "updated_from": None, "updated_to": None, "query": HalfVector(coded.vectors[0]),
    }  # fmt: skip
    statement = vector_leg.statement(way, coded.space).decode()
    with reading(coded.connection, tenant="acme", space=coded.space):
        # As it is with more of them.
        coded.connection.execute("SET LOCAL enable_seqscan = off")
        coded.connection.execute("SET LOCAL enable_bitmapscan = off")
        row = coded.connection.execute(f"EXPLAIN (FORMAT JSON) {statement}".encode(), values).fetchone()
    assert row is not None
    made = json.dumps(row[0])
    assert '"Index Name": "vectors_1_hnsw"' in made
    # The policy was folded into plain comparisons: a function call per row would be ten times slower.
    assert "visible" not in made and "current_setting" in made


def test_what_was_written_after_the_graph_was_built_is_found_through_it(coded: Library) -> None:
    far = -coded.vectors.mean(axis=0)
    far /= np.linalg.norm(far)
    with coded.connection.transaction(force_rollback=True):
        store_vectors(coded.connection, coded.space, {"late": far})
        write(coded.connection, entry("late.md", "late"))
        values = {"tenant": "acme", "query": HalfVector(far), "limit": 1}
        row = coded.connection.execute(
            vector_leg.statement("graph_everywhere", coded.space), values
        ).fetchone()  # fmt: skip
    assert row is not None and row[1] == pytest.approx(0.0, abs=1e-3)


def test_neighbours_that_stand_in_no_chunk_any_more_hide_nothing(connection: Connection) -> None:
    """All that is near, and more than a search compares, is of documents that are gone; their vectors stay a while."""
    space = space_of(connection, dimensions=DIMENSIONS)
    random = np.random.default_rng(4)
    near = np.eye(DIMENSIONS)[0] + 0.02 * random.normal(size=(1_000, DIMENSIONS))
    far = np.eye(DIMENSIONS)[1] + 0.02 * random.normal(size=(60, DIMENSIONS))
    store_vectors(connection, space, {f"near {n}": vector for n, vector in enumerate(near)})
    store_vectors(connection, space, {f"far {n}": vector for n, vector in enumerate(far)})
    write(connection, entry("far.md", *(f"far {n}" for n in range(60))))
    ensure_graph(connection, space)
    space = numbered_space(connection, space.space_id)
    library = Library(connection=connection, space=space, texts=[], vectors=far.astype(np.float32))
    found = library.search(np.eye(DIMENSIONS, dtype=np.float32)[0], k=10)
    assert len({hit.chunk_id for hit in found}) == 10


def test_its_recall_is_measured_as_that_of_any_graph(coded: Library) -> None:
    found = graph_recall(
        coded.connection, coded.space, settings=Retrieval(), questions=20, start=UUID(int=2**127), exact_up_to=0
    )  # fmt: skip
    assert found.recall is not None and found.recall > 0.97


@pytest.mark.parametrize(("kind", "sight"), [("vectors", 50), ("codes", 100)])
def test_of_a_graph_over_codes_more_is_kept_in_sight(connection: Connection, kind: str, sight: int) -> None:
    space = create_space(
        connection, provider="fake", model="m", recipe="text/v1", dimensions=DIMENSIONS, graph=kind  # type: ignore[arg-type]
    )  # fmt: skip
    with reading(connection, tenant="acme", space=replace(space, coded=kind == "codes")):
        assert connection.execute("SHOW hnsw.ef_search").fetchone() == (str(sight),)


def test_a_vector_without_a_direction_is_not_found(coded: Library) -> None:
    with coded.connection.transaction(force_rollback=True):
        store_vectors(coded.connection, coded.space, {"nothing": np.zeros(DIMENSIONS)})
        write(coded.connection, entry("nothing.md", "nothing"))
        values = {"tenant": "acme", "query": HalfVector(coded.vectors[0]), "limit": 3_200}
        rows = coded.connection.execute(vector_leg.statement("graph_everywhere", coded.space), values).fetchall()
    assert rows and all(row[1] == row[1] for row in rows)


def test_before_there_are_codes_a_search_compares_all_vectors(connection: Connection) -> None:
    space = space_of(connection, dimensions=DIMENSIONS)
    vectors = np.eye(DIMENSIONS, dtype=np.float32)[:20]
    store_vectors(connection, space, {f"text {n}": vector for n, vector in enumerate(vectors)})
    write(connection, entry("a.md", *(f"text {n}" for n in range(20))))
    library = Library(connection=connection, space=space, texts=[], vectors=vectors)
    assert [hit.text for hit in library.search(vectors[3], k=1)] == ["text 3"]


class FirstAxis:
    """The question lies on the first axis; `meanwhile` happens while it is embedded for the first time."""

    recipe = "text/v1"

    def __init__(self, meanwhile: Callable[[], object]) -> None:
        self._meanwhile = [meanwhile]

    def embed_query(self, text: str) -> NDArray[np.float32]:
        for work in self._meanwhile[:1]:
            self._meanwhile.clear()
            work()
        return np.eye(DIMENSIONS, dtype=np.float32)[0]

    def close(self) -> None:
        pass


@pytest.mark.parametrize("kind", ["vectors", "codes"])
def test_a_search_during_which_the_graph_becomes_another_one_is_asked_again(
    database: str, connection: Connection, kind: Graph
) -> None:
    space = create_space(
        connection, provider="fake", model="m", recipe="text/v1", dimensions=DIMENSIONS,
        graph="codes" if kind == "vectors" else "vectors",
    )  # fmt: skip
    random = np.random.default_rng(4)
    texts = [f"text {n}" for n in range(1_000)]
    store_vectors(connection, space, dict(zip(texts, random.normal(size=(1_000, DIMENSIONS)), strict=True)))
    write(connection, entry("a.md", *texts))
    ensure_graph(connection, space)
    activate(connection, space)
    with connected(database) as other:
        embedder = FirstAxis(lambda: partition(other, space.space_id, graph=kind, progress=silent))
        retriever = Retriever(connection, embedder_of=lambda _: embedder)
        hits = retriever.search(SearchQuery(text="q", tenant="acme", legs="vector", k=3))
    assert len(hits) == 3
    assert numbered_space(connection, space.space_id).graph == kind
