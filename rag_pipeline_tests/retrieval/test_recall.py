"""Recall of the graph, measured on vectors that the index holds."""

from __future__ import annotations

from uuid import UUID

import pytest

from rag_pipeline.index.graph import ensure_graph
from rag_pipeline.retrieval.recall import graph_recall
from rag_pipeline.settings import Retrieval
from rag_pipeline_tests.retrieval.conftest import Library

START = UUID(int=2**127)


def measured(library: Library, **more: object):
    return graph_recall(
        library.connection, library.space, settings=Retrieval(), questions=20, **{"start": START, **more}
    )  # fmt: skip


def test_a_good_graph_finds_what_an_exhaustive_comparison_finds(library: Library):
    found = measured(library)
    assert (found.tenants, found.questions) == (1, 20)
    assert found.recall == pytest.approx(1.0, abs=0.03)


def test_the_sample_goes_round_to_the_first_vectors(library: Library):
    assert measured(library, start=UUID(int=2**128 - 1)).questions == 20


def test_tenants_whose_searches_are_exact_are_not_measured(library: Library):
    found = measured(library, exact_up_to=12_000)
    assert (found.tenants, found.questions, found.recall) == (0, 0, None)


def test_a_graph_with_hardly_any_edges_is_told_with_the_questions_that_it_answers_worst(library: Library):
    build = "CREATE INDEX vectors_1_hnsw ON rag.vectors_1 USING hnsw (embedding halfvec_cosine_ops)"
    library.connection.execute("DROP INDEX rag.vectors_1_hnsw")
    library.connection.execute(f"{build} WITH (m = 2, ef_construction = 4)")
    try:
        found = measured(library)
    finally:
        library.connection.execute("DROP INDEX rag.vectors_1_hnsw")
        ensure_graph(library.connection, library.space)
    assert found.recall is not None and found.recall < 0.9
    assert found.worst[0].recall <= found.worst[-1].recall < 1
