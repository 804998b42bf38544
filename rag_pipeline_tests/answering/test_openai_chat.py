"""What OpenAI-compatible servers differ in: the name of the limit, usage, reasoning, Azure, failures that look well."""

from __future__ import annotations

import pytest

from rag_pipeline.answering.language_model import Piece
from rag_pipeline.errors import ItemError, PermanentError, TransientError
from rag_pipeline_tests.answering.asking import KEY, asking, joined
from rag_pipeline_tests.answering.scripted_server import Sends, events, fails, says

NOT_MAX_TOKENS = fails(
    400, "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
)


def test_a_server_is_asked_in_openais_words_with_the_key():
    with asking(says("ok")) as model:
        list(model.stream(max_tokens=99))
        (request,) = model.server.requests
    assert request.path == "/v1/chat/completions"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert set(request.body) == {"model", "messages", "max_tokens", "stream", "stream_options"}
    assert (request.body["model"], request.body["max_tokens"]) == ("m", 99)
    assert request.body["stream_options"] == {"include_usage": True}


def test_a_temperature_is_sent_only_when_one_is_set():
    with asking(says("ok"), temperature=0.0) as model:
        model.complete()
        assert model.server.requests[0].body["temperature"] == 0.0


def test_the_other_name_of_the_limit_is_tried_once_and_remembered():
    with asking(NOT_MAX_TOKENS, says("one"), says("two")) as model:
        assert model.complete().text == "one"
        assert model.complete().text == "two"
        sent = [set(request.body) & {"max_tokens", "max_completion_tokens"} for request in model.server.requests]
        assert sent == [{"max_tokens"}, {"max_completion_tokens"}, {"max_completion_tokens"}]
        assert model.slept == []


def test_a_server_that_takes_neither_name_is_not_asked_for_ever():
    with asking(NOT_MAX_TOKENS, fails(400, "max_completion_tokens is unknown")) as model:
        with pytest.raises(ItemError, match="max_completion_tokens is unknown"):
            model.complete()
        assert len(model.server.requests) == 2
        # What did not help is not remembered.
        model.server.then(says("ok"))
        model.complete()
        assert "max_tokens" in model.server.requests[-1].body


def test_a_server_that_refuses_to_be_asked_for_usage_answers_without():
    refused = fails(422, "body.stream_options: Extra inputs are not permitted")
    with asking(refused, NOT_MAX_TOKENS, says("one"), says("two")) as model:
        assert joined(model.stream()) == Piece(text="one")
        assert joined(model.stream()).text == "two"
        assert len(model.server.requests) == 4
        assert "stream_options" not in model.server.requests[-1].body


def test_azure_is_asked_at_its_deployment_with_its_own_header():
    with asking(says("Like ", "this."), says("ok")) as plain:
        root = plain.server.root
        options = {"provider": "azure-openai", "base_url": root, "api_version": "2024-10-21"}
        with asking(**options) as azure:
            assert joined(azure.stream()).text == "Like this."
        (request,) = plain.server.requests
    assert request.path == "/openai/deployments/m/chat/completions?api-version=2024-10-21"
    assert request.headers["api-key"] == KEY
    assert request.body["max_completion_tokens"] == 50


def test_a_filter_that_refuses_the_question_is_told_from_one_that_holds_the_answer_back():
    refused = fails(400, "The prompt triggered the content management policy", code="content_filter")
    filters = events(
        'data: {"choices":[],"prompt_filter_results":[{}]}', "",
        'data: {"choices":[{"delta":{"content":"As"},"finish_reason":"content_filter"}]}', "", "data: [DONE]", "",
    )  # fmt: skip
    with asking(refused, filters) as model:
        with pytest.raises(PermanentError, match="content management policy"):
            model.complete()
        with pytest.raises(PermanentError, match="content filter"):
            list(model.stream())


def test_a_model_that_refuses_says_why():
    refusal = events(
        'data: {"choices":[{"delta":{"refusal":"I cannot "}}]}', "",
        'data: {"choices":[{"delta":{"refusal":"help."},"finish_reason":"stop"}]}', "",
    )  # fmt: skip
    whole = Sends(body=b'{"choices":[{"message":{"refusal":"I cannot help."},"finish_reason":"stop"}]}')
    with asking(refusal, whole) as model:
        for ask in (lambda: list(model.stream()), model.complete):
            with pytest.raises(PermanentError, match=r"refused to answer: I cannot help\."):
                ask()


def test_a_failure_with_a_status_of_success_is_a_failure():
    busy = Sends(body=b'{"error": {"code": 502, "message": "upstream is down"}}')
    spent = fails(429, "You exceeded your quota", code="insufficient_quota")
    with asking(busy, says("ok"), spent) as model:
        assert model.complete().text == "ok"
        with pytest.raises(PermanentError, match="quota is spent"):
            model.complete()


def test_a_failure_in_the_middle_of_a_stream_may_pass_and_does_not_show_the_key():
    stream = events(
        'data: {"choices":[{"delta":{"content":"Like"}}]}', "",
        f'data: {{"error":{{"type":"server_error","message":"engine died, {KEY}"}}}}', "",
    )  # fmt: skip
    with asking(stream) as model:
        pieces = model.stream()
        assert next(pieces).text == "Like"
        with pytest.raises(TransientError, match="engine died") as caught:
            next(pieces)
        assert KEY not in str(caught.value)


def test_usage_that_comes_with_the_last_words_or_with_each_is_read():
    stream = events(
        'data: {"choices":[{"delta":{"content":"a"}}],"usage":{"prompt_tokens":3,"completion_tokens":1}}', "",
        'data: {"choices":[{"delta":{"content":"b"},"finish_reason":"length"}],"usage":{"completion_tokens":2}}', "",
    )  # fmt: skip
    with asking(stream) as model:
        assert joined(model.stream()) == Piece(text="ab", input_tokens=3, output_tokens=2, is_cut_off=True)


def test_content_in_parts_is_one_text():
    parts = b'[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"Like this."}]'
    with asking(Sends(body=b'{"choices":[{"message":{"content":' + parts + b"}}]}")) as model:
        assert model.complete().text == "Like this."
