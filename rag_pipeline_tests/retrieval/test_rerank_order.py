"""Reranking never fails a search: the reranker's order, or the old one and the reason."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from rag_pipeline.errors import ConfigError, TransientError
from rag_pipeline.model import LegResult, SearchHit
from rag_pipeline.retrieval.rerank import make_reranker, reranked
from rag_pipeline.retrieval.rerank.reranker import passage_of
from rag_pipeline.settings import Rerank
from rag_pipeline_tests.retrieval.hits import hit, ranked


class Fake:
    name = "fake"

    def __init__(self, scores: Callable[[Sequence[SearchHit]], object]) -> None:
        self._scores = scores

    def scores(self, question: str, hits: Sequence[SearchHit]) -> list[float]:
        return self._scores(hits)

    def close(self) -> None:
        pass


def test_the_first_hits_take_the_rerankers_order_and_the_rest_stays_after_them():
    hits = ranked("a", "b", "c", "d")
    found, problem = reranked("q", hits, Fake(lambda given: [0.1, 0.9, 0.5][: len(given)]), 3)
    assert problem is None
    assert [h.text for h in found] == ["b", "c", "a", "d"]
    assert [h.rank for h in found] == [1, 2, 3, 4]
    assert found[0].legs == (*hits[1].legs, LegResult(leg="rerank", rank=1, score=0.9))
    assert (found[0].score, found[3].score, found[3].legs) == (0.9, hits[3].score, hits[3].legs)


def test_equal_scores_keep_their_order():
    hits = ranked("a", "b", "c")
    assert [h.text for h in reranked("q", hits, Fake(lambda _: [1, 2, 1]), 9)[0]] == ["b", "a", "c"]


@pytest.mark.parametrize("hits", [[], ranked("a")])
def test_what_has_one_order_only_is_not_asked_about(hits):
    assert reranked("q", hits, Fake(lambda _: pytest.fail("asked")), 5) == (hits, None)
    assert reranked("q", ranked("a", "b"), Fake(lambda _: pytest.fail("asked")), 0)[1] is None


def raising(error: Exception):
    def scores(_):
        raise error

    return scores


@pytest.mark.parametrize(
    ("scores", "said"),
    [
        (raising(TransientError("busy")), "busy"),
        (raising(ConfigError("no key")), "no key"),
        (raising(ValueError("odd")), "ValueError: odd"),
        (raising(TimeoutError()), "it took too long"),
        (lambda _: [1.0], "1 scores for 2 passages"),
        (lambda _: [1.0, float("nan")], "no number"),
        (lambda _: [1.0, float("inf")], "no number"),
        (lambda _: [1.0, None], "TypeError"),
        (lambda _: None, "TypeError"),
    ],
)
def test_a_reranker_that_fails_leaves_the_hits_as_they_were(scores, said):
    hits = ranked("a", "b")
    found, problem = reranked("q", hits, Fake(scores), 5)
    assert found == hits
    assert problem.startswith("reranker fake: ")
    assert said in problem


def test_a_reranker_that_hangs_is_not_waited_for():
    released, started = threading.Event(), time.monotonic()
    hits = ranked("a", "b")
    found, problem = reranked("q", hits, Fake(lambda _: released.wait(30)), 5, timeout_s=0.1)
    assert time.monotonic() - started < 5
    assert (found, problem) == (hits, "reranker fake: it took longer than 0.1 s")
    released.set()


def test_numbers_of_numpy_become_plain_ones():
    found, problem = reranked("q", ranked("a", "b"), Fake(lambda _: np.float32([1, 2])), 5, timeout_s=5)
    assert problem is None
    assert type(found[0].score) is float


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=2, max_size=8), st.integers(2, 10))
def test_no_hit_is_lost_or_repeated(scores, top_n):
    hits = ranked(*(f"text {n}" for n in range(len(scores))))
    found, problem = reranked("q", hits, Fake(lambda given: scores[: len(given)]), top_n)
    assert problem is None
    assert sorted(h.chunk_id for h in found) == sorted(h.chunk_id for h in hits)
    assert [h.rank for h in found] == list(range(1, len(hits) + 1))
    read = [h for h in found if h.legs[-1].leg == "rerank"]
    assert [h.score for h in read] == sorted((h.score for h in read), reverse=True)
    assert len(read) == min(top_n, len(hits))


def test_a_passage_names_what_its_text_does_not():
    found = hit("Run deploy.sh", title="Guide", headings=("Guide", "Deploy", "run"))
    assert passage_of(found) == "Guide > Deploy > run\n\nRun deploy.sh"
    assert passage_of(hit("The Guide", title="Guide")) == "The Guide"
    assert passage_of(hit("a\ud800", title="")) == "a?"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"base_url": "http://ada:hunter2@host/v1"}, "without credentials"),
        ({"api_key_env": "sk-hunter2"}, "never the secret itself"),
        ({"top_n": 1}, "greater than or equal to 2"),
        ({"timeout_s": 0}, "greater than 0"),
        ({"provider": "cohere"}, "'hosted'"),
    ],
)
def test_settings_that_make_no_sense_are_refused(wrong, said):
    with pytest.raises(ValidationError, match=said):
        Rerank(**wrong)


def test_no_reranker_is_made_unless_asked_for():
    assert make_reranker(Rerank(), environ={"OPENAI_API_KEY": "k", "RERANK_API_KEY": "k"}) is None


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"provider": "hosted", "model": "m"}, "rerank.base_url is empty"),
        ({"provider": "hosted", "base_url": "http://localhost"}, "rerank.model is empty"),
        ({"provider": "hosted", "model": "m", "base_url": "http://x", "api_key_env": "MY_KEY"}, "MY_KEY is not set"),
        ({"provider": "openai"}, "rerank.model is empty"),
        ({"provider": "openai", "model": "m"}, "OPENAI_API_KEY is not set"),
    ],
)
def test_what_is_missing_is_said_when_the_reranker_is_made(settings, said):
    with pytest.raises(ConfigError, match=said):
        make_reranker(Rerank(**settings), environ={})
