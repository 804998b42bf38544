"""Hosted rerankers over a real socket: the shapes of Cohere, Jina and Voyage, and every way to answer wrongly."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from rag_pipeline.errors import ConfigError, ItemError, PermanentError, TransientError
from rag_pipeline.retrieval.rerank import reranked
from rag_pipeline.retrieval.rerank.hosted import HostedReranker
from rag_pipeline.settings import Rerank
from rag_pipeline_tests.embedding.fake_service import FakeService, Reply, Request, Script, error, fake_service, in_turn
from rag_pipeline_tests.retrieval.hits import ranked

KEY = "hunter2-hunter2"
HITS = ranked("a", "bbb", "cc", title="")


def results(request: Request, *, field: str = "results") -> Reply:
    """A right answer: longer documents are more relevant; best first, as the services answer."""
    scored = [{"index": n, "relevance_score": len(text) / 10} for n, text in enumerate(request.body["documents"])]
    return Reply(body={"id": "1", field: sorted(scored, key=lambda result: -result["relevance_score"])})


def answering(*found: object, field: str = "results") -> Script:
    return lambda _: Reply(body={field: list(found)})


def result(index: object, score: object = 0.5) -> dict[str, object]:
    return {"index": index, "relevance_score": score}


Started = tuple[HostedReranker, FakeService, list[float]]


@contextmanager
def reranker_on(script: Script = results, *, environ: dict[str, str] | None = None, **options) -> Iterator[Started]:
    slept: list[float] = []
    with fake_service(script) as service:
        settings = Rerank.model_validate({"provider": "hosted", "model": "rerank-1", "base_url": service.url} | options)
        environ = {"RERANK_API_KEY": KEY} if environ is None else environ
        reranker = HostedReranker(settings, environ=environ, sleep=slept.append, jitter=lambda: 1.0)
        try:
            yield reranker, service, slept
        finally:
            reranker.close()


@pytest.mark.parametrize("field", ["results", "data"])
def test_scores_come_back_in_the_order_of_the_hits(field):
    with reranker_on(lambda request: results(request, field=field)) as (reranker, service, _):
        assert reranker.scores("which?", HITS) == [0.1, 0.3, 0.2]
        (request,) = service.requests
    assert request.path == "/v1/rerank"
    assert request.body == {"model": "rerank-1", "query": "which?", "documents": ["a", "bbb", "cc"]}
    assert request.headers["authorization"] == f"Bearer {KEY}"


def test_a_server_of_ones_own_needs_no_key():
    with reranker_on(environ={}) as (reranker, service, _):
        reranker.scores("q", HITS)
        assert "authorization" not in service.requests[0].headers


def test_the_key_is_read_from_the_variable_that_is_named():
    with reranker_on(environ={"RERANK_API_KEY": "no", "JINA_KEY": KEY}, api_key_env="JINA_KEY") as (
        reranker,
        service,
        _,
    ):
        reranker.scores("q", HITS)
        assert service.requests[0].headers["authorization"] == f"Bearer {KEY}"


WRONG = {
    "a web page": (lambda _: Reply(body="<html>login</html>"), "something else than JSON: <html>login"),
    "no list": (lambda _: Reply(body={"results": "none"}), "no list of results"),
    "a bare list": (lambda _: Reply(body=[result(0)]), "no list of results"),
    "nothing": (lambda _: Reply(body=None), "no list of results"),
    "too few": (answering(result(0)), "1 results for 3 passages"),
    "too many": (answering(*map(result, range(4))), "4 results for 3 passages"),
    "a repeated index": (answering(result(0), result(1), result(1)), "two results for passage 1"),
    "an index out of range": (answering(result(0), result(1), result(3)), "passage 3: there are 0 to 2"),
    "a negative index": (answering(result(0), result(1), result(-1)), "passage -1"),
    "an index that is a text": (answering(result(0), result(1), result("2")), "passage '2'"),
    "an index that is a truth": (answering(result(0), result(2), result(True)), "passage True"),
    "no index": (answering(result(0), result(1), {"relevance_score": 1}), "passage None"),
    "not a number": (answering(result(0), result(1), result(2, float("nan"))), "nan as the score of passage 2"),
    "infinite": (answering(result(0), result(1), result(2, float("inf"))), "inf as the score"),
    "no score": (answering(result(0), result(1), result(2, None)), "None as the score"),
    "a score that is a text": (answering(result(0), result(1), result(2, "0.5")), "'0.5' as the score"),
    "a result that is none": (answering(result(0), result(1), 7), "passage None"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_answer_is_a_clear_error_and_is_not_asked_for_again(name):
    script, said = WRONG[name]
    with reranker_on(script) as (reranker, service, _):
        with pytest.raises(PermanentError, match=said) as raised:
            reranker.scores("q", HITS)
        assert len(service.requests) == 1
    assert "127.0.0.1" in str(raised.value)


@pytest.mark.parametrize(
    ("status", "kind", "said"),
    [
        (400, ItemError, "lower rerank.top_n"),
        (413, ItemError, "lower rerank.top_n"),
        (422, ItemError, "lower rerank.top_n"),
        (401, ConfigError, "check the key in the environment variable RERANK_API_KEY"),
        (403, ConfigError, "check the key"),
        (404, ConfigError, "check rerank.model and rerank.base_url"),
        (418, PermanentError, "answered 418"),
    ],
)
def test_a_refusal_says_what_to_do_and_never_shows_the_key(status, kind, said):
    script = lambda _: Reply(status=status, body={"message": f"refused for {KEY}"})  # noqa: E731 # short, and only here
    with reranker_on(script) as (reranker, service, _):
        with pytest.raises(kind, match=said) as raised:
            reranker.scores("q", HITS)
        assert len(service.requests) == 1
    assert KEY not in str(raised.value)
    assert "refused for ***" in str(raised.value)


def test_a_redirect_is_not_followed_and_says_what_to_correct():
    elsewhere = lambda _: Reply(status=307, headers={"Location": "http://elsewhere/"})  # noqa: E731 # short, and only here
    with reranker_on(elsewhere) as (reranker, service, _):
        with pytest.raises(ConfigError, match=r"redirects to http://elsewhere/.* correct rerank.base_url"):
            reranker.scores("q", HITS)
        assert len(service.requests) == 1


@pytest.mark.parametrize("status", [408, 429, 500, 503])
def test_what_may_pass_is_asked_again(status):
    with reranker_on(in_turn(error(status, "busy"), then=results)) as (reranker, service, slept):
        assert reranker.scores("q", HITS) == [0.1, 0.3, 0.2]
        assert len(service.requests) == 2
    assert slept == [0.5]


def test_the_wait_is_what_the_service_asks_for():
    busy = error(429, "slow down", headers={"Retry-After": "2"})
    with reranker_on(in_turn(busy, then=results)) as (reranker, _, slept):
        reranker.scores("q", HITS)
    assert slept == [2.5]


def test_a_service_that_asks_for_more_time_than_there_is_is_given_up_on_at_once():
    busy = error(429, "slow down", headers={"Retry-After": "30"})
    with reranker_on(lambda _: busy, max_retries=5) as (reranker, service, slept):
        with pytest.raises(TransientError, match="answered 429"):
            reranker.scores("q", HITS)
        assert (len(service.requests), slept) == (1, [])


def test_a_service_that_stays_broken_is_given_up_on():
    with reranker_on(lambda _: error(500, "oops"), max_retries=2) as (reranker, service, _):
        with pytest.raises(TransientError, match="answered 500"):
            reranker.scores("q", HITS)
        assert len(service.requests) == 3


def test_a_slow_service_is_waited_for_only_so_long_retries_included():
    started = time.monotonic()
    with reranker_on(lambda _: Reply(delay_s=8.0), timeout_s=0.3, max_retries=5) as (reranker, _, _):
        with pytest.raises(TransientError, match=r"did not answer within|no answer within"):
            reranker.scores("q", HITS)
        assert time.monotonic() - started < 7
        hits, problem = reranked("q", HITS, reranker, 30, timeout_s=0.3)
    assert hits == HITS
    assert problem.startswith("reranker hosted rerank-1: ")


def test_an_absent_service_is_transient():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with (
        reranker_on(base_url=f"http://127.0.0.1:{port}/v1") as (reranker, _, slept),
        pytest.raises(TransientError, match="cannot reach"),
    ):
        reranker.scores("q", HITS)
    assert len(slept) == 1


def test_a_text_that_json_cannot_carry_is_made_to_fit():
    with reranker_on() as (reranker, service, _):
        reranker.scores("a\ud800", ranked("b\udfff", "c", title=""))
        assert service.requests[0].body["documents"] == ["b?", "c"]
