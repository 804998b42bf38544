"""Evaluations: every leg is asked, what got worse is found, and the gate closes only on a real fall."""

from __future__ import annotations

import pytest

from rag_pipeline.errors import ConfigError
from rag_pipeline.evaluation.compare import ablation, worse
from rag_pipeline.evaluation.gate import falls
from rag_pipeline.evaluation.labels import Label, LabelSet, Question
from rag_pipeline.evaluation.run import evaluate
from rag_pipeline.model import Evaluation
from rag_pipeline_tests.evaluation.answers import FixedSearch, hit

RIGHT, WRONG, OTHER = hit("right.md"), hit("wrong.md"), hit("other.md")
LABELS = LabelSet(
    name="ours",
    questions=[
        Question(id=f"q{n}", text=text, relevant=[Label(source_id="right.md")])
        for n, text in enumerate(["one?", "two?"])
    ],
)  # fmt: skip
ANSWERS = {
    "one?": {"lexical": [RIGHT], "vector": [WRONG, RIGHT], "fused": [RIGHT, WRONG], "reranked": [WRONG, OTHER, RIGHT]},
    "two?": {"lexical": [], "vector": [RIGHT], "fused": [WRONG, RIGHT], "reranked": [RIGHT]},
}


def made(**legs):
    """An evaluation in which these legs have these values of nDCG@10, question by question."""
    per_query = {
        leg: {f"q{n}": {"nDCG@10": value} for n, value in enumerate(values)} for leg, values in legs.items()
    }  # fmt: skip
    return Evaluation(dataset="ours", labels_hash="h", per_query=per_query)


def test_each_leg_is_asked_each_question_and_measured():
    search = FixedSearch(ANSWERS)
    told = []
    found = evaluate(
        LABELS, search, tenant="acme", legs=("lexical", "vector", "fused", "reranked"), k=50,
        progress=lambda stage, *, done, total, unit: told.append((done, total)),
    )  # fmt: skip
    assert told == [(1, 2), (2, 2)]
    assert {(q.tenant, q.k) for q in search.asked} == {("acme", 50)}
    assert [(q.text, q.legs, q.rerank) for q in search.asked[:4]] == [
        ("one?", "lexical", False), ("one?", "vector", False), ("one?", "fused", False), ("one?", "fused", True),
    ]  # fmt: skip
    assert (found.dataset, found.labels_hash, found.queries) == ("ours", LABELS.labels_hash, 2)
    assert {leg: means["RR@10"] for leg, means in found.metrics.items()} == {
        "lexical": 0.5, "vector": 0.75, "fused": 0.75, "reranked": pytest.approx(2 / 3),
    }  # fmt: skip
    assert found.per_query["lexical"]["q1"]["R@20"] == 0


def test_nothing_to_ask_is_an_error():
    with pytest.raises(ConfigError, match="nothing to evaluate"):
        evaluate(LabelSet(name="empty", questions=[]), FixedSearch({}), tenant="acme")
    with pytest.raises(ConfigError, match="nothing to evaluate"):
        evaluate(LABELS, FixedSearch({}), tenant="acme", legs=())


def test_the_ablation_is_what_each_leg_lies_below_the_fused():
    difference = ablation(made(lexical=[0.5, 0.5], vector=[1.0, 0.8], fused=[0.9, 0.7]))
    assert difference == {"lexical": {"nDCG@10": pytest.approx(-0.3)}, "vector": {"nDCG@10": pytest.approx(0.1)}}
    assert ablation(made(lexical=[0.5])) == {}


def test_questions_that_got_worse_are_named_with_before_and_after():
    before = made(fused=[1.0, 0.5, 0.5, 0.2], vector=[0.5, 0.5, 0.5, 0.5])
    after = made(fused=[0.9, 0.1, 0.5, 0.3], vector=[0.5, 0.5, 0.5, 0.4], lexical=[0.0, 0.0, 0.0, 0.0])
    assert [(c.leg, c.query, c.before, c.after) for c in worse(before, after)] == [
        ("fused", "q1", 0.5, 0.1), ("fused", "q0", 1.0, 0.9), ("vector", "q3", 0.5, 0.4),
    ]  # fmt: skip
    assert [c.query for c in worse(before, after, legs=["vector"])] == ["q3"]
    assert worse(after, after) == []


def test_a_fall_within_the_tolerance_passes_and_a_deeper_one_does_not():
    before = made(fused=[0.80, 0.80], vector=[0.9, 0.9])
    assert falls(before, made(fused=[0.78, 0.78], vector=[0.1, 0.1]), tolerance=0.02) == []
    (fall,) = falls(before, made(fused=[0.70, 0.80]), tolerance=0.02)
    assert str(fall) == "fused nDCG@10 fell from 0.800 to 0.750"
    assert falls(before, made(fused=[1.0, 1.0]), tolerance=0.0) == []
    assert [f.leg for f in falls(before, made(vector=[0.1, 0.1]), tolerance=0.02, legs=["vector"])] == ["vector"]


def test_what_cannot_be_compared_is_refused_rather_than_passed():
    before = made(fused=[0.8])
    other = Evaluation(dataset="ours", labels_hash="other", per_query=before.per_query)
    with pytest.raises(ConfigError, match="the labels changed"):
        falls(before, other, tolerance=0.02)
    with pytest.raises(ConfigError, match="no leg of fused, reranked was measured both times"):
        falls(before, made(vector=[0.8]), tolerance=0.02)
