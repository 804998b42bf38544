"""Measures: the values that trec_eval gives, by hand; and what cannot be measured."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_pipeline.evaluation.measures import CUTOFFS, HEADLINE, MEASURES, measure


def test_the_values_are_those_of_the_definitions():
    found = measure({"q": ["a", "x", "b", "y", "z"]}, {"q": {"a": 1, "b": 1, "c": 1}})["q"]
    gain = 1 + 1 / math.log2(4)
    best = 1 + 1 / math.log2(3) + 1 / math.log2(4)
    assert found["nDCG@5"] == pytest.approx(gain / best)
    assert (found["P@5"], found["P@10"]) == (pytest.approx(0.4), pytest.approx(0.2))
    assert found["R@5"] == pytest.approx(2 / 3)
    assert (found["RR@5"], found["Success@5"]) == (1.0, 1.0)


def test_grades_are_gains():
    first, second = (
        measure({"q": ranking}, {"q": {"best": 3, "good": 1}})["q"] for ranking in (["best", "good"], ["good", "best"])
    )
    assert first["nDCG@5"] == pytest.approx(1.0)
    assert second["nDCG@5"] == pytest.approx((1 + 3 / math.log2(3)) / (3 + 1 / math.log2(3)))
    assert first["P@5"] == second["P@5"]


def test_what_was_not_found_counts_as_nothing():
    found = measure({"q": ["x"], "r": []}, {"q": {"a": 1}, "r": {"a": 1}, "s": {"a": 1}})
    assert set(found) == {"q", "r", "s"}
    assert all(value == 0 for values in found.values() for value in values.values())


def test_a_question_that_nothing_answers_and_a_ranking_with_repetitions_are_refused():
    with pytest.raises(ValueError, match="nothing is relevant to question 'q'"):
        measure({"q": ["a"]}, {"q": {"a": 0}})
    with pytest.raises(ValueError, match="names something twice"):
        measure({"q": ["a", "a"]}, {"q": {"a": 1}})


def test_any_name_may_be_used():
    names = ["", " ", "a\tb", "ü\udc80", "0", "label\n1"]
    assert measure({name: [name] for name in names}, {name: {name: 1} for name in names})["\t".join("ab")]["P@5"]


def test_every_measure_is_there_and_those_for_people_are_among_them():
    (values,) = measure({"q": ["a"]}, {"q": {"a": 1}}).values()
    assert tuple(values) == MEASURES
    assert len(MEASURES) == 5 * len(CUTOFFS)
    assert set(HEADLINE) <= set(MEASURES)


names = st.lists(st.sampled_from("abcdefghij"), unique=True)


@settings(deadline=None)  # the first example imports trec_eval
@given(names, st.dictionaries(st.sampled_from("abcdefghij"), st.integers(1, 3), min_size=1))
def test_measures_are_shares_and_a_perfect_ranking_is_perfect(ranking, grades):
    values = measure({"q": ranking}, {"q": grades})["q"]
    assert all(0 <= value <= 1 + 1e-9 for value in values.values())
    assert values["R@5"] <= values["R@10"] <= values["R@20"]
    ideal = measure({"q": sorted(grades, key=grades.__getitem__, reverse=True)}, {"q": grades})["q"]
    assert ideal["nDCG@10"] == pytest.approx(1.0)
    assert ideal["RR@5"] == ideal["Success@5"] == 1.0
