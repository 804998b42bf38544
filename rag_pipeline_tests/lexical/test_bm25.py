"""BM25 gives the scores of a reference implementation, and the best chunks without scoring all of them are the best."""

from __future__ import annotations

import random
import re
from collections import Counter
from pathlib import Path

import bm25s
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_pipeline.lexical.analyzer import terms_of
from rag_pipeline.lexical.bm25 import Instead, Parameters, Ranking, Statistics, Term, idf, weigh
from rag_pipeline.lexical.postings import make_segment, read_entries

ROOT = Path(__file__).parents[2]
NOTHING = np.empty(0, dtype=np.uint32)


def ranking(texts: dict[int, str], question: str, *, k1: float = 1.2, b: float = 0.75) -> Ranking:
    segment = make_segment(list(texts.items()))
    asked = Counter(terms_of(question))
    terms = [
        Term(text=term, holding=posting.chunks,
             entries=read_entries([posting.entries], removed=NOTHING))
        for term, posting in segment.postings.items() if term in asked
    ]  # fmt: skip
    statistics = Statistics(chunks=len(segment.added), terms=int(segment.added["length"].sum()))
    return Ranking(terms, asked, statistics, Parameters(k1=k1, b=b))


def corpus() -> list[str]:
    """The paragraphs of this repository's own documentation and code."""
    paths = [*ROOT.glob("docs/*.md"), ROOT / "README.md", *ROOT.glob("rag_pipeline/**/*.py")]
    texts = [path.read_text(encoding="utf-8") for path in sorted(paths)]
    return [part for text in texts for part in re.split(r"\n\n+", text) if part.strip()]


@pytest.mark.parametrize(("k1", "b"), [(1.2, 0.75), (0.9, 0.4), (2.0, 1.0), (1.5, 0.0)])
def test_scores_are_those_of_a_reference_implementation(k1, b):
    texts = corpus()
    assert len(texts) > 2_000
    tokens = [terms_of(text) for text in texts]
    reference = bm25s.BM25(method="lucene", k1=k1, b=b)
    reference.index(tokens, show_progress=False)
    for question in (
        "How are tombstones kept?",
        "tombstone or tombstone",
        "embedding space promote rollback",
        "def text_hash(text: str)",
        "the",
    ):
        known = [term for term in terms_of(question) if term in reference.vocab_dict]
        expected = reference.get_scores(known)
        found = ranking(dict(enumerate(texts)), question, k1=k1, b=b)
        np.testing.assert_allclose(found.scores(np.arange(len(texts), dtype=np.uint32)), expected, atol=1e-4)
        best = found.best(10)
        np.testing.assert_allclose([score for _, score in best], np.sort(expected)[::-1][: len(best)], atol=1e-4)


def test_a_chunk_without_any_term_is_not_found():
    assert ranking({1: "alpha", 2: "beta"}, "gamma").best(5) == []
    assert [number for number, _ in ranking({1: "alpha", 2: "beta"}, "beta gamma").best(5)] == [2]
    assert ranking({1: "alpha"}, "?!").best(5) == []
    assert ranking({}, "alpha").best(5) == []


def test_equal_scores_are_ordered_by_number():
    found = ranking(dict.fromkeys((9, 3, 7, 1), "same words"), "words")
    assert [number for number, _ in found.best(3)] == [1, 3, 7]


def test_the_terms_that_a_chunk_holds_are_named_the_rarest_first():
    found = ranking({1: "a common word", 2: "a common zebra", 3: "a common"}, "common zebra")
    assert found.matches([3, 2, 99]) == {3: ["common"], 2: ["zebra", "common"], 99: []}


@pytest.mark.parametrize("spread", [1, 1_000_003], ids=["dense", "sparse"])
def test_the_best_are_the_same_as_when_everything_is_scored(spread, monkeypatch):
    monkeypatch.setattr("rag_pipeline.lexical.bm25._WORTH_SKIPPING", 20)
    rng = random.Random(5)
    words = [f"w{n}" for n in range(60)]
    weights = [1 / (n + 1) for n in range(60)]
    texts = {
        n * spread: " ".join(rng.choices(words, weights, k=rng.randint(1, 30))) for n in range(1, 1_500)
    }  # fmt: skip
    for _ in range(60):
        question = " ".join(rng.choices(words, k=rng.randint(1, 8)))
        found = ranking(texts, question)
        numbers = np.array(sorted(texts), dtype=np.uint32)
        scores = found.scores(numbers)
        order = np.lexsort((numbers, -scores))
        for limit in (1, 7, 100):
            expected = [(int(numbers[at]), scores[at]) for at in order[:limit] if scores[at] > 0]
            best = found.best(limit)
            assert [number for number, _ in best] == [number for number, _ in expected]
            np.testing.assert_allclose([score for _, score in best], [score for _, score in expected])


@settings(max_examples=60, deadline=None)
@given(
    texts=st.lists(st.text("ab c", max_size=12), min_size=1, max_size=30),
    question=st.text("ab c", max_size=8),
    limit=st.integers(1, 5),
)
def test_nothing_that_was_left_out_is_better_than_what_was_found(texts, question, limit):
    numbered = dict(enumerate(texts, start=10))
    found = ranking(numbered, question)
    best = found.best(limit)
    scores = dict(zip(numbered, found.scores(np.array(list(numbered), dtype=np.uint32)).tolist(), strict=True))
    assert all(score == pytest.approx(scores[number]) and score > 0 for number, score in best)
    left = [score for number, score in scores.items() if number not in dict(best)]
    if len(best) == limit:
        assert not left or max(left) <= best[-1][1] + 1e-12
    else:
        assert not any(left)


def test_another_spelling_never_says_more_than_half_of_the_word_as_it_was_asked():
    statistics = Statistics(chunks=1_000, terms=10_000)
    spelt = [Instead(term="~resum", asked="resum", factor=0.5)]
    weights = weigh({"resum": 1.0}, {"resum": 500, "~resum": 1}, statistics, instead=spelt)
    assert weights["~resum"] == 0.5 * weights["resum"]
    alone = weigh({"resum": 1.0}, {"resum": 0, "~resum": 1}, statistics, instead=spelt)
    assert alone == {"~resum": idf(1, statistics)}
    assert weigh({"resum": 1.0}, {}, statistics, instead=spelt) == {}
