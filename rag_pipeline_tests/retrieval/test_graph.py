"""Exact scan and HNSW graph give the same hits; k rows whenever k exist; row-level security costs no index."""

from __future__ import annotations

import json

import numpy as np
import pytest
from pgvector import HalfVector

from rag_pipeline.index.database import connected
from rag_pipeline.index.sql_files import queries
from rag_pipeline.retrieval import search as search_module
from rag_pipeline.retrieval import vector_leg
from rag_pipeline.retrieval.query import SearchQuery
from rag_pipeline.retrieval.reader import reading
from rag_pipeline.retrieval.search import search
from rag_pipeline.settings import Retrieval
from rag_pipeline_tests.knowledge import entry, space_of, store_vectors, write
from rag_pipeline_tests.retrieval.conftest import Library

QUESTIONS = range(0, 12_000, 1111)


@pytest.fixture(params=[10**9, 0], ids=["exact", "graph"])
def path(request, monkeypatch) -> str:
    """Both ways to the nearest chunks, whatever their number."""
    monkeypatch.setattr(search_module, "EXACT_UP_TO", request.param)
    return "graph" if request.param == 0 else "exact"


def test_the_nearest_chunks_are_found(library: Library, path):
    right = 0
    for question in QUESTIONS:
        vector = library.vectors[question]
        found = [hit.text for hit in library.search(vector, k=10)]
        assert found[0] == f"passage {question}"
        right += len(set(found) & set(library.nearest(vector, 10)))
    assert right / (10 * len(QUESTIONS)) == (1.0 if path == "exact" else pytest.approx(1.0, abs=0.05))


@pytest.mark.parametrize("k", [1, 50, 120, 200])
def test_a_filter_that_keeps_one_percent_still_gives_k_rows(library: Library, path, k):
    for question in QUESTIONS:
        found = library.search(library.vectors[question], k=k, repository="rare")
        assert {hit.repository for hit in found} == {"rare"}
        # There are 120 in all.
        assert len(found) == len({hit.chunk_id for hit in found}) == min(k, 120)
        scores = [hit.score for hit in found]
        assert scores == sorted(scores, reverse=True)


def test_few_matching_chunks_are_compared_exactly(library: Library):
    for question in QUESTIONS:
        vector = library.vectors[question]
        found = [hit.text for hit in library.search(vector, k=20, repository="rare")]
        assert found == library.nearest(vector, 20, rare=True)


def test_many_hits_are_found_through_the_graph(library: Library):
    vector = library.vectors[5]
    found = {hit.text for hit in library.search(vector, k=200)}
    assert len(found) == 200
    assert len(found & set(library.nearest(vector, 200))) > 180


def plan(library: Library, name: str, **where: object) -> str:
    values = {
        "tenant": "acme", "repository": None, "source_type": None, "language": None, "path_prefix": None, "limit": 10,
        "metadata": None, "updated_from": None, "updated_to": None,
        "query": HalfVector(library.vectors[0]),
    } | where  # fmt: skip
    statement = vector_leg.statement(name, library.space).decode()
    with library.connection.transaction():
        library.connection.execute(
            queries("search")["enter"],
            {"tenant": "acme", "scopes": [], "vectors": None, "neighbours": 40, "plans": "auto"},
        )
        row = library.connection.execute(f"EXPLAIN (FORMAT JSON) {statement}", values).fetchone()
    return json.dumps(row[0])


def test_the_graph_query_walks_the_graph_under_row_level_security(library: Library):
    made = plan(library, "graph")
    index = f"vectors_{library.space.space_id}_hnsw"
    assert f'"Index Name": "{index}"' in made
    assert '"Node Type": "Sort"' not in made
    # The policy was folded into plain comparisons: a function call per row would be ten times slower.
    assert "visible" not in made
    assert "current_setting" in made


def test_the_exact_query_leaves_the_graph_alone(library: Library):
    assert "hnsw" not in plan(library, "exact", repository="rare")


def test_vectors_written_after_the_graph_was_built_are_found_through_it(library: Library, monkeypatch):
    monkeypatch.setattr(search_module, "EXACT_UP_TO", 0)
    far = -library.vectors.mean(axis=0)
    with library.connection.transaction(force_rollback=True):
        store_vectors(library.connection, library.space, {"late": far})
        write(library.connection, entry("late.md", "late"))
        statement = vector_leg.statement("graph", library.space)
        values = {
            "tenant": "acme", "repository": None, "source_type": None, "language": None, "path_prefix": None,
            "limit": 1, "metadata": None, "updated_from": None, "updated_to": None,
            "query": HalfVector(far),
        }  # fmt: skip
        row = library.connection.execute(statement, values).fetchone()
        assert row[1] == pytest.approx(0.0, abs=1e-3)


def test_a_chunk_that_disappears_during_a_search_does_not_break_it(database):
    with connected(database) as reading, connected(database) as writing:
        space = space_of(writing)
        store_vectors(writing, space, {"one": np.eye(8)[0]})
        write(writing, entry("a.md", "one"))

        ask = search_module.ask_nearest

        def then_delete(*args, **kwargs):
            hits = ask(*args, **kwargs)()
            write(writing, entry("a.md", deleted=True, at=2))
            return lambda: hits

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(search_module, "ask_nearest", then_delete)
            query = SearchQuery(text="q", tenant="acme")
            vector = np.eye(8, dtype=np.float32)[0]
            hits = search(reading, query, space=space, vector=vector, settings=Retrieval())
        assert [hit.text for hit in hits] == ["one"]


@pytest.mark.parametrize(("vectors", "sight"), [(-1, 50), (12_000, 50), (100_000, 50), (1_000_000, 200), (1e9, 1000)])
def test_the_larger_the_graph_the_more_of_it_is_kept_in_sight(library: Library, vectors, sight):
    connection = library.connection
    count = "UPDATE pg_class SET reltuples = %s WHERE oid = 'rag.vectors_1'::regclass"
    (before,) = connection.execute("SELECT reltuples FROM pg_class WHERE oid = 'rag.vectors_1'::regclass").fetchone()
    connection.execute(count, [float(vectors)])
    try:
        with reading(connection, tenant="acme", space=library.space):
            assert connection.execute("SHOW hnsw.ef_search").fetchone() == (str(sight),)
    finally:
        connection.execute(count, [before])
