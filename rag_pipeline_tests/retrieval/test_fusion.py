"""What the fused order may depend on, and how."""

from __future__ import annotations

import math
from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_pipeline.retrieval.fusion import Candidate, Fused, FusionWeights, QueryShape, fuse

MANY = QueryShape(chunks=5_000)
RANKS = FusionWeights(vector=0, lexical=0, reciprocal_rank=1)
SHARES = FusionWeights(vector=1, lexical=0.3, adaptive=False)

COSINES = st.floats(min_value=-1, max_value=1)
BM25S = st.just(0.0) | st.floats(min_value=0, max_value=500)
PARTS = st.sampled_from([0.0, 0.3, 1.0])
WEIGHTS = st.builds(
    FusionWeights,
    vector=PARTS,
    lexical=PARTS,
    reciprocal_rank=st.sampled_from([0.05, 1.0]),
    rrf_k=st.sampled_from([1, 60]),
    adaptive=st.booleans(),
)
SHAPES = st.builds(QueryShape, chunks=st.integers(min_value=0, max_value=10**7))


@st.composite
def lists(draw: st.DrawFn, *, at_least: int = 0) -> list[Candidate[int]]:
    scores = draw(st.lists(st.tuples(COSINES, BM25S), min_size=at_least, max_size=12))
    return [Candidate(id=number, cosine=cosine, bm25=bm25) for number, (cosine, bm25) in enumerate(scores)]


def candidates(*scores: tuple[float, float]) -> list[Candidate[int]]:
    return [Candidate(id=number, cosine=cosine, bm25=bm25) for number, (cosine, bm25) in enumerate(scores)]


def order(fused: list[Fused[int]]) -> list[int]:
    return [each.id for each in fused]


@given(lists(), SHAPES, WEIGHTS, st.randoms(use_true_random=False))
def test_the_order_of_candidates_does_not_matter(
    found: list[Candidate[int]], query: QueryShape, weights: FusionWeights, random: object
) -> None:
    shuffled = list(found)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert fuse(shuffled, query=query, weights=weights) == fuse(found, query=query, weights=weights)


@given(lists(), SHAPES, WEIGHTS)
def test_scores_fall_from_at_most_one_to_at_least_zero_and_are_sums_of_their_parts(
    found: list[Candidate[int]], query: QueryShape, weights: FusionWeights
) -> None:
    fused = fuse(found, query=query, weights=weights)
    scores = [each.score for each in fused]
    assert sorted(order(fused)) == list(range(len(found)))
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 + 1e-9 for score in scores)
    assert all(math.isclose(each.score, each.vector + each.lexical + each.reciprocal_rank) for each in fused)


@given(lists(at_least=1), SHAPES, WEIGHTS, st.data())
def test_a_better_score_in_a_leg_never_costs_a_place(
    found: list[Candidate[int]], query: QueryShape, weights: FusionWeights, data: st.DataObject
) -> None:
    before = order(fuse(found, query=query, weights=weights))
    which = data.draw(st.sampled_from(found))
    better = replace(
        which,
        cosine=data.draw(st.floats(min_value=which.cosine, max_value=1)),
        bm25=data.draw(st.floats(min_value=which.bm25, max_value=1_000)),
    )
    after = order(fuse([better if each is which else each for each in found], query=query, weights=weights))
    assert after.index(which.id) <= before.index(which.id)


@given(lists(), SHAPES, WEIGHTS)
def test_without_one_leg_the_order_is_that_of_the_other(
    found: list[Candidate[int]], query: QueryShape, weights: FusionWeights
) -> None:
    no_words = [replace(each, bm25=0.0) for each in found]
    assert order(fuse(no_words, query=query, weights=weights)) == [
        each.id for each in sorted(no_words, key=lambda each: (-each.cosine, each.id))
    ]
    no_vectors = [replace(each, cosine=0.0) for each in found]
    assert order(fuse(no_vectors, query=query, weights=weights)) == [
        each.id for each in sorted(no_vectors, key=lambda each: (-each.bm25, each.id))
    ]


@pytest.mark.parametrize("weights", [FusionWeights(), SHARES, RANKS])
@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_counts_for_nothing(weights: FusionWeights, odd: float) -> None:
    found = candidates((odd, 0.0), (0.5, odd), (0.4, 3.0))
    fused = fuse(found, query=MANY, weights=weights)
    assert all(math.isfinite(each.score) for each in fused)
    assert order(fused)[-1] == 0


def test_scores_do_not_depend_on_other_candidates() -> None:
    """So that the score of a hit means the same whatever else was found."""
    alone = fuse(candidates((0.6, 9.0)), query=MANY)[0]
    among = fuse(candidates((0.6, 9.0), (0.9, 30.0), (0.1, 0.0)), query=MANY)
    assert alone in among


def test_names_and_rare_words_outrank_a_somewhat_better_cosine() -> None:
    assert order(fuse(candidates((0.55, 2.0), (0.45, 16.0)), query=MANY)) == [1, 0]


def test_a_poor_match_of_words_does_not_outrank_a_better_cosine() -> None:
    poor = candidates((0.65, 2.0), (0.55, 4.0))
    assert order(fuse(poor, query=MANY)) == [0, 1]
    assert order(fuse(poor, query=MANY, weights=SHARES)) == [1, 0]  # there, the best of poor matches is a perfect one


def test_the_same_match_says_less_among_more_chunks() -> None:
    found = candidates((0.65, 4.0), (0.55, 9.0))
    assert order(fuse(found, query=QueryShape(chunks=300))) == [1, 0]
    assert order(fuse(found, query=QueryShape(chunks=10_000_000))) == [0, 1]


def test_reciprocal_ranks_alone() -> None:
    found = candidates((0.9, 0.0), (0.8, 5.0), (0.7, 7.0))
    fused = {each.id: each.score for each in fuse(found, query=MANY, weights=RANKS)}
    assert fused[0] == pytest.approx((61 / 61 + 0) / 2)
    assert fused[1] == pytest.approx((61 / 62 + 61 / 62) / 2)
    assert fused[2] == pytest.approx((61 / 63 + 61 / 61) / 2)


def test_half_a_lexical_weight_at_twice_the_logarithm_of_the_chunks() -> None:
    only_words = FusionWeights(vector=0, lexical=1)
    (fused,) = fuse(candidates((0.5, 2 * math.log(5_000))), query=MANY, weights=only_words)
    assert fused.score == fused.lexical == pytest.approx(0.5)


@pytest.mark.parametrize("weights", [FusionWeights(), SHARES, RANKS])
def test_equals_are_ordered_by_id(weights: FusionWeights) -> None:
    ids = [UUID(int=number) for number in (3, 1, 2)]
    found = [Candidate(id=id_, cosine=0.5, bm25=2.0) for id_ in ids]
    assert [each.id for each in fuse(found, query=MANY, weights=weights)] == sorted(ids)


def test_only_proportions_of_weights_matter() -> None:
    found = candidates((0.6, 2.0), (0.5, 9.0), (0.2, 12.0))
    weights = FusionWeights(vector=0.9, lexical=1.1)
    assert [each.score for each in fuse(found, query=MANY, weights=weights)] == pytest.approx(
        [each.score for each in fuse(found, query=MANY)]
    )


@pytest.mark.parametrize(
    "wrong",
    [{"vector": -1.0}, {"lexical": math.nan}, {"reciprocal_rank": math.inf}, {"rrf_k": 0}, {"vector": 0, "lexical": 0}],
)
def test_weights_that_make_no_sense_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="weights"):
        FusionWeights(**wrong)  # type: ignore[arg-type]


def test_nothing_found() -> None:
    assert fuse([], query=QueryShape(chunks=0)) == []
