"""The OpenAI-compatible embedder against a scripted service on a real socket: what it sends, and what comes back."""

from __future__ import annotations

import numpy as np
import pytest

from rag_pipeline.embedding import make_embedder
from rag_pipeline.embedding.openai_compatible import BLANK
from rag_pipeline.errors import ConfigError
from rag_pipeline.settings import Embedding
from rag_pipeline_tests.embedding.fake_service import (
    DIMENSIONS,
    MODEL,
    Reply,
    Request,
    embedded,
    embedder_on,
    embeddings,
    error,
    fake_service,
    vector_of,
)


def test_each_text_gets_its_own_vector_whatever_the_order_of_the_answer():
    texts = [f"text {number}" for number in range(25)]
    with embedder_on(batch_texts=4) as (embedder, service, _):
        vectors, failures = embedded(embedder, texts)
        assert len(service.requests) == 7
        assert embedder.dimensions == DIMENSIONS
        assert embedder.model_seconds > 0
    assert not failures
    for index, text in enumerate(texts):
        np.testing.assert_array_equal(vectors[index], vector_of(text))


def test_a_batch_holds_no_more_tokens_than_configured():
    with embedder_on(batch_tokens=10) as (embedder, service, _):
        embedded(embedder, ["one two three four"] * 4 + ["w " * 30])
        assert sorted(len(request.texts) for request in service.requests) == [1, 2, 2]


def test_what_the_service_charged_is_counted():
    with embedder_on() as (embedder, _, _):
        assert [batch.tokens for batch in embedder.embed(["a", "b"])] == [14]


def test_what_will_be_sent_is_counted_before_and_requests_are_counted_after():
    with embedder_on(max_input_tokens=5, batch_texts=2) as (embedder, service, _):
        texts = ["one two", "", "word " * 30, "three", "<|endoftext|>"]
        tokens = embedder.input_tokens(texts)
        assert service.requests == []
        assert tokens[1:3] == [1, 5]
        assert sum(batch.requests for batch in embedder.embed(texts)) == len(service.requests) == 3
        assert sorted(tokens) == sorted(embedder.count_tokens(service.texts))


def test_a_long_text_is_cut_at_a_token_and_a_blank_one_is_replaced():
    with embedder_on(max_input_tokens=5) as (embedder, service, _):
        embedded(embedder, ["", " \n\t", "日本語の文章です" * 5, "lone \ud800 surrogate"])
        blank, also_blank, cut, surrogate = service.texts
        assert (blank, also_blank) == (BLANK, BLANK)
        assert embedder.count_tokens([cut])[0] <= 5
        assert "日本語の文章です".startswith(cut[:3])
        assert surrogate == "lone ? surrogate"
    assert "truncate=5" in embedder.recipe


def test_dimensions_are_asked_for_only_when_configured():
    with embedder_on() as (embedder, service, _):
        embedded(embedder, ["a"])
        assert "dimensions" not in service.requests[0].body
    with embedder_on(lambda request: embeddings(request, dimensions=4), dimensions=4) as (embedder, service, _):
        embedded(embedder, ["a"])
        assert service.requests[0].body["dimensions"] == 4


def test_azure_is_asked_for_the_deployment_with_its_own_key_header():
    with fake_service() as service:
        settings = Embedding(
            provider="azure-openai", model="my-deployment", base_url=service.url, api_key_env="AZURE_KEY"
        )
        embedder = make_embedder(settings, environ={"AZURE_KEY": "azure-secret"})
        list(embedder.embed(["a"]))
        embedder.close()
        request = service.requests[0]
    assert "/openai/deployments/my-deployment/embeddings?api-version=2024-10-21" in request.path
    assert request.headers["api-key"] == "azure-secret"
    assert request.body["encoding_format"] == "base64"


def test_a_missing_key_names_its_variable_and_a_local_server_needs_none():
    with pytest.raises(ConfigError, match="OPENAI_API_KEY is not set"):
        make_embedder(Embedding(provider="openai", model=MODEL), environ={})
    with pytest.raises(ConfigError, match="MY_KEY is not set"):
        make_embedder(
            Embedding(provider="openai", model=MODEL, base_url="http://localhost:1", api_key_env="MY_KEY"),
            environ={"OPENAI_API_KEY": "sk-other"},
        )
    with pytest.raises(ConfigError, match=r"embedding\.base_url is empty"):
        make_embedder(Embedding(provider="azure-openai", model=MODEL), environ={"OPENAI_API_KEY": "k"})
    with embedder_on() as (embedder, service, _):
        embedded(embedder, ["a"])
        assert service.requests[0].headers["authorization"] == "Bearer none"
        assert service.requests[0].body["encoding_format"] == "float"


def test_a_server_that_can_write_base64_is_asked_for_it_after_its_first_answer():
    with embedder_on(batch_texts=1, concurrency=1) as (embedder, service, _):
        vectors, _ = embedded(embedder, ["a", "b", "c"])
        assert [request.body["encoding_format"] for request in service.requests] == ["float", "base64", "base64"]
    np.testing.assert_array_equal(vectors[2], vector_of("c"))


@pytest.mark.parametrize("status", [400, 422, 500])
def test_a_server_that_refuses_base64_is_asked_for_it_once(status):
    def plain(request: Request) -> Reply:
        return error(status, "encoding_format?") if request.body["encoding_format"] == "base64" else embeddings(request)

    with embedder_on(plain, batch_texts=1, concurrency=1) as (embedder, service, slept):
        vectors, failures = embedded(embedder, [f"t{n}" for n in range(5)])
        asked = [request.body["encoding_format"] for request in service.requests]
    assert asked == ["float", "base64", *["float"] * 4]
    assert (len(vectors), failures, slept) == (5, {}, [])
