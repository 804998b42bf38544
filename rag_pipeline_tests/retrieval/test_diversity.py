"""Diversity: near duplicates are left out, the rest is spread over the subject, and nothing else changes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_pipeline.retrieval.diversity import diversified, without_near_duplicates
from rag_pipeline_tests.retrieval.hits import hit, ranked, vectors_of

DIVERSITIES = st.floats(0, 1, allow_nan=False)


def test_without_diversity_the_order_stays():
    hits = ranked("a", "b", "c")
    vectors = vectors_of(hits, [[1, 0], [1, 0], [0, 1]])
    assert diversified(hits, vectors, diversity=0, k=2) == hits[:2]
    assert diversified(hits, vectors, diversity=0, k=9) == hits


def test_a_hit_of_another_subject_comes_before_a_repetition():
    hits = ranked("deploy with helm", "deploy by helm", "deploy with terraform")
    vectors = vectors_of(hits, [[1, 0], [1, 0.01], [0, 1]])
    found = diversified(hits, vectors, diversity=0.6, k=3)
    assert [h.text for h in found] == ["deploy with helm", "deploy with terraform", "deploy by helm"]
    assert [h.rank for h in found] == [1, 2, 3]
    assert found[1].score == hits[2].score
    assert diversified(hits, vectors, diversity=0.6, k=2) == found[:2]


def test_full_diversity_starts_with_the_best_and_looks_only_at_difference():
    hits = ranked("best", "near the best", "far", "opposite")
    vectors = vectors_of(hits, [[1, 0], [0.9, 0.1], [0.2, 1], [0, 1]])
    assert [h.text for h in diversified(hits, vectors, diversity=1, k=2)] == ["best", "opposite"]


def test_scores_of_any_scale_weigh_the_same():
    vectors_for = [[1, 0], [0.8, 0.6], [0.6, 0.8], [0, 1]]
    small = [hit(t, rank=n, score=s) for n, (t, s) in enumerate(zip("abcd", (0.9, 0.7, 0.6, 0.1), strict=True), 1)]
    large = [hit(t, rank=n, score=s) for n, (t, s) in enumerate(zip("abcd", (90, 70, 60, 10), strict=True), 1)]
    found = [diversified(hits, vectors_of(hits, vectors_for), diversity=0.4, k=4) for hits in (small, large)]
    assert [h.text for h in found[0]] == [h.text for h in found[1]]


def test_places_count_where_scores_are_not_in_their_order():
    """As after reranking, when the hits that were not read again keep the score of another scale."""
    hits = [hit(text, rank=n, score=s) for n, (text, s) in enumerate([("a", -3.0), ("b", 5.0), ("c", 5.0)], start=1)]
    assert [h.text for h in diversified(hits, {}, diversity=0.3, k=3)] == ["a", "b", "c"]


def test_a_diversity_that_is_none_is_refused():
    with pytest.raises(ValueError, match="0 to 1"):
        diversified(ranked("a", "b"), {}, diversity=1.5, k=2)


@given(st.data(), DIVERSITIES, st.integers(0, 12))
def test_any_diversity_gives_k_of_the_hits_the_best_one_first(data, diversity, k):
    count = data.draw(st.integers(0, 8))
    hits = ranked(*(f"text {n}" for n in range(count)))
    rows = data.draw(st.lists(st.lists(st.floats(-1, 1, width=16), min_size=3, max_size=3), min_size=0, max_size=count))
    found = diversified(hits, vectors_of(hits[: len(rows)], rows), diversity=diversity, k=k)
    assert len(found) == min(k, count)
    assert len({h.chunk_id for h in found}) == len(found)
    assert [h.rank for h in found] == list(range(1, len(found) + 1))
    assert {h.text for h in found} <= {h.text for h in hits}
    if found:
        assert found[0] == hits[0]


def test_the_same_text_counts_once_wherever_it_stands():
    hits = ranked("pip  install\nrag", "something else", "pip install rag")
    assert [h.text for h in without_near_duplicates(hits, {})] == ["pip  install\nrag", "something else"]


def test_nearly_the_same_text_counts_once_in_one_document_only():
    hits = [hit("a", rank=1, document="x"), hit("a!", rank=2, document="x"), hit("a?", rank=3, document="y")]
    vectors = vectors_of(hits, [[1, 0], [1, 0.01], [1, 0]])
    found = without_near_duplicates(hits, vectors)
    assert [(h.text, h.rank) for h in found] == [("a", 1), ("a?", 2)]
    assert without_near_duplicates(hits, vectors, threshold=1.01) == hits


def test_a_chain_of_likenesses_is_measured_from_what_is_kept():
    hits = [hit(f"text {n}", rank=n, document="x") for n in (1, 2, 3)]
    angles = np.deg2rad([0, 15, 30])
    vectors = vectors_of(hits, [[np.cos(a), np.sin(a)] for a in angles])
    assert [h.text for h in without_near_duplicates(hits, vectors)] == ["text 1", "text 3"]


def test_hits_without_vectors_or_with_empty_ones_resemble_nothing():
    hits = [hit(f"text {n}", rank=n, document="x") for n in (1, 2)]
    assert without_near_duplicates(hits, {}) == hits
    assert without_near_duplicates(hits, vectors_of(hits, [[0, 0], [0, 0]])) == hits
    assert without_near_duplicates([], {}) == []
