"""What the OpenAI-compatible embedder does when the service refuses, breaks or sends nonsense."""

from __future__ import annotations

import socket
import threading
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import numpy as np
import pytest

from rag_pipeline.errors import ConfigError, DimensionMismatch, ItemError, PermanentError, TransientError
from rag_pipeline_tests.embedding.fake_service import (
    DIMENSIONS,
    Reply,
    Request,
    embedded,
    embedder_on,
    embeddings,
    error,
    in_turn,
    refuse,
    vector_of,
)

pytestmark = pytest.mark.faults


@pytest.mark.parametrize(
    ("headers", "waits"),
    [
        ({"Retry-After": "3"}, 3.5),
        ({"retry-after-ms": "1500", "Retry-After": "9"}, 2.0),
        ({"Retry-After": "soon"}, 0.5),
        ({}, 0.5),
    ],
)
def test_a_refused_request_waits_as_long_as_the_service_asks(headers, waits):
    with embedder_on(in_turn(error(429, "slow down", headers=headers))) as (embedder, service, slept):
        vectors, _ = embedded(embedder, ["a"])
        assert len(vectors) == 1
        assert len(service.requests) == 2
    assert slept[0] == pytest.approx(waits)


def test_a_date_in_retry_after_is_understood():
    when = format_datetime(datetime.now(UTC) + timedelta(seconds=20), usegmt=True)
    with embedder_on(in_turn(error(503, "busy", headers={"Retry-After": when}))) as (embedder, _, slept):
        embedded(embedder, ["a"])
    assert 15 < slept[0] < 21


def test_a_service_that_asks_for_an_hour_is_given_up_on():
    with embedder_on(lambda _: error(429, "come back", headers={"Retry-After": "3600"})) as (embedder, service, slept):
        with pytest.raises(TransientError) as raised:
            embedded(embedder, ["a"])
        assert raised.value.retry_after_s == 3600
        assert (len(service.requests), slept) == (1, [])


def wrong_count(request: Request) -> Reply:
    return embeddings(request, vectors=[vector_of("x")] * (len(request.texts) + 1))


def not_a_number(request: Request) -> Reply:
    return embeddings(request, vectors=[np.full(DIMENSIONS, np.nan)] * len(request.texts))


BROKEN = {
    "500": lambda _: error(500, "oops"),
    "429": lambda _: error(429, "slow down"),
    "408": lambda _: error(408, "too slow"),
    "wrong count": wrong_count,
    "NaN": not_a_number,
    "web page": lambda _: Reply(body="<html>Sign in to the hotel's network</html>"),
    "broken JSON": lambda _: Reply(body='{"data": [', headers={"Content-Type": "application/json"}),
    "other JSON": lambda _: Reply(body={"error": "model is loading"}),
    "null vector": lambda request: embeddings(request, vectors=[None] * len(request.texts)),
    "ragged vectors": lambda request: embeddings(request, vectors=[vector_of("x", 3 + i) for i in range(2)]),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_answer_is_asked_for_again(name):
    with embedder_on(in_turn(BROKEN[name], BROKEN[name])) as (embedder, service, slept):
        vectors, failures = embedded(embedder, ["a", "b"])
        assert (len(vectors), failures, len(service.requests)) == (2, {}, 3)
    assert slept == [0.5, 1.0]


@pytest.mark.parametrize("name", BROKEN)
def test_a_service_that_stays_broken_ends_in_an_error_that_names_it(name):
    with embedder_on(BROKEN[name], max_retries=2) as (embedder, service, _):
        with pytest.raises(TransientError, match=r"127\.0\.0\.1"):
            embedded(embedder, ["a", "b"])
        assert len(service.requests) == 3


def test_a_slow_service_and_an_absent_one_are_transient():
    with (
        embedder_on(lambda _: Reply(delay_s=1.0), timeout_s=0.1, max_retries=0) as (embedder, _, _),
        pytest.raises(TransientError, match=r"did not answer within 0\.1 s"),
    ):
        embedded(embedder, ["a"])
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with (
        embedder_on(base_url=f"http://127.0.0.1:{port}/v1", max_retries=1) as (embedder, _, slept),
        pytest.raises(TransientError, match="cannot reach"),
    ):
        embedded(embedder, ["a"])
    assert len(slept) == 1


def test_one_text_that_is_refused_does_not_stop_the_others():
    texts = [f"text {number}" for number in range(16)]
    with embedder_on(refuse(lambda text: text == "text 11", message="too many tokens")) as (embedder, _, slept):
        vectors, failures = embedded(embedder, texts)
    assert set(vectors) == set(range(16)) - {11}
    assert list(failures) == [11]
    assert "too many tokens" in failures[11]
    assert "max_input_tokens" in failures[11]
    assert slept == []


def test_a_server_that_takes_only_small_batches_is_served_small_batches():
    def small(request: Request) -> Reply:
        return embeddings(request) if len(request.texts) <= 4 else error(413, "batch size")

    with embedder_on(small) as (embedder, _, _):
        vectors, failures = embedded(embedder, [f"t{n}" for n in range(32)])
    assert (len(vectors), failures) == (32, {})


def test_a_setting_that_the_service_refuses_is_not_blamed_on_the_texts():
    with embedder_on(lambda _: error(400, "dimensions too large"), dimensions=4000) as (embedder, service, _):
        with pytest.raises(ConfigError, match=r"dimensions too large.*embedding\.dimensions"):
            embedded(embedder, [f"t{n}" for n in range(64)])
        assert len(service.requests) == 2


def test_a_service_that_comes_to_refuse_everything_is_not_blamed_on_the_texts():
    answered = in_turn(embeddings, embeddings, then=lambda _: error(400, "no such deployment"))
    with embedder_on(answered, batch_texts=8, concurrency=1) as (embedder, service, _):
        with pytest.raises(ConfigError, match=r"refuses every request.*no such deployment"):
            embedded(embedder, [f"t{n}" for n in range(640)])
        # Two that were answered, eight texts one by one with the batches they were in, and the harmless one.
        assert len(service.requests) < 2 + 2 * 8 + 4


def test_many_texts_that_are_refused_in_a_row_stop_no_other():
    with embedder_on(refuse(lambda text: text.startswith("bad")), batch_texts=8) as (embedder, _, _):
        vectors, failures = embedded(embedder, ["good", *(f"bad {n}" for n in range(40)), "good too"])
    assert (set(vectors), set(failures)) == ({0, 41}, set(range(1, 41)))


def test_a_text_whose_vector_stays_unusable_fails_alone():
    def sick(request: Request) -> Reply:
        vectors = [np.zeros(DIMENSIONS) if text == "sick" else vector_of(text) for text in request.texts]
        return embeddings(request, vectors=vectors)

    with embedder_on(sick, max_retries=1) as (embedder, _, _):
        vectors, failures = embedded(embedder, ["a", "sick", "b"])
    assert (set(vectors), set(failures)) == ({0, 2}, {1})


def test_vectors_of_another_length_are_never_mixed():
    with (
        embedder_on(dimensions=16) as (embedder, _, _),
        pytest.raises(DimensionMismatch, match="returned 8 dimensions, expected 16"),
    ):
        embedded(embedder, ["a"])
    changing = in_turn(embeddings, then=lambda request: embeddings(request, dimensions=5))
    with embedder_on(changing, batch_texts=1, concurrency=1) as (embedder, _, _):
        with pytest.raises(DimensionMismatch, match="returned 5"):
            embedded(embedder, ["a", "b"])
        assert embedder.dimensions == DIMENSIONS


@pytest.mark.parametrize(
    ("reply", "kind", "words"),
    [
        (error(401, "bad key sk-secret-123456"), ConfigError, "TEAM_KEY"),
        (error(403, "no access"), ConfigError, "TEAM_KEY"),
        (error(404, "no such model"), ConfigError, r"embedding\.model and embedding\.base_url"),
        (error(429, "pay", code="insufficient_quota"), PermanentError, "quota is spent"),
        (error(405, "never"), PermanentError, "405"),
    ],
)
def test_what_cannot_pass_is_not_repeated_and_says_what_to_do(reply, kind, words):
    environ = {"TEAM_KEY": "sk-secret-123456", "OPENAI_API_KEY": "wrong"}
    with embedder_on(lambda _: reply, environ=environ, api_key_env="TEAM_KEY") as (embedder, service, slept):
        with pytest.raises(kind, match=words) as raised:
            embedded(embedder, ["a"])
        assert "sk-secret" not in str(raised.value)
        assert service.requests[0].headers["authorization"] == "Bearer sk-secret-123456"
    assert slept == []


def test_parts_that_were_paid_for_are_handed_over_before_the_error():
    both_asked = threading.Barrier(2, timeout=30)

    def half(request: Request) -> Reply:
        both_asked.wait()
        return error(500, "down") if request.texts == ["bad"] else embeddings(request)

    parts = []
    with (
        embedder_on(half, batch_texts=1, concurrency=2, max_retries=0) as (embedder, _, _),
        pytest.raises(TransientError),
    ):
        # Not parts.extend(): what counts is what a caller holds when the error comes.
        for batch in embedder.embed(["bad", "good"]):
            parts += [list(batch.indices)]
    assert parts == [[1]]


def test_an_abandoned_iteration_sends_no_more_requests():
    with embedder_on(batch_texts=1, concurrency=1) as (embedder, service, _):
        parts = embedder.embed([f"t{n}" for n in range(50)])
        next(parts)
        parts.close()
        embedder.close()
        assert len(service.requests) < 10


def test_a_question_is_given_up_on_early_and_a_refused_one_is_an_item_error():
    with embedder_on(lambda _: error(503, "down")) as (embedder, service, _):
        with pytest.raises(TransientError):
            embedder.embed_query("why?")
        assert len(service.requests) == 3
    with embedder_on(refuse(lambda text: text == "why?")) as (embedder, _, _), pytest.raises(ItemError):
        embedder.embed_query("why?")
    with embedder_on() as (embedder, _, _):
        np.testing.assert_array_equal(embedder.embed_query("why?"), vector_of("why?"))
