"""What is Anthropic's own: the place of the system's words, turns, headers, and what it counts."""

from __future__ import annotations

import pytest

from rag_pipeline.answering.language_model import Message
from rag_pipeline.errors import ItemError, PermanentError
from rag_pipeline_tests.answering.asking import KEY, QUESTION, asking, joined
from rag_pipeline_tests.answering.scripted_server import events, fails, says


def test_claude_is_asked_in_anthropics_words_with_the_key_and_no_other(monkeypatch):
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "somebody elses")
    with asking(says("ok"), provider="anthropic", temperature=0.5) as model:
        list(model.stream(max_tokens=99))
        (request,) = model.server.requests
    assert request.path == "/v1/messages"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.body == {
        "model": "m", "max_tokens": 99, "stream": True, "temperature": 0.5, "system": "Be short.",
        "messages": [{"role": "user", "content": "How?"}],
    }  # fmt: skip


def test_a_conversation_begins_with_a_question_of_the_user():
    earlier = [Message(role="assistant", content="Like this."), Message(role="user", content="And then?")]
    with asking(says("ok"), provider="anthropic") as model:
        model.complete([QUESTION[0], *earlier, Message(role="assistant", content="So."), QUESTION[1]])
        roles = [message["role"] for message in model.server.requests[0].body["messages"]]
    assert roles == ["user", "assistant", "user"]


def test_the_address_may_have_the_version_that_the_library_adds():
    with asking(says("ok"), provider="anthropic") as model:
        base_url = f"{model.server.root}/v1"
        with asking(provider="anthropic", base_url=base_url) as other:
            assert other.complete().text == "ok"
        assert model.server.requests[0].path == "/v1/messages"


def test_what_a_cache_served_is_input_too():
    stream = events(
        'data: {"type":"message_start","message":{"usage":{"input_tokens":3,"cache_read_input_tokens":40,'
        '"cache_creation_input_tokens":2,"output_tokens":1}}}', "",
        'data: {"type":"content_block_delta","delta":{"type":"text_delta","text":"Hi"}}', "",
        'data: {"type":"message_delta","delta":{"stop_reason":"model_context_window_exceeded"},'
        '"usage":{"output_tokens":9}}', "",
    )  # fmt: skip
    with asking(stream, provider="anthropic") as model:
        piece = joined(model.stream())
    assert (piece.input_tokens, piece.output_tokens, piece.is_cut_off) == (45, 9, True)


def test_a_refusal_and_a_question_that_is_too_long_are_told_apart():
    with asking(says("As", finish="content_filter"), fails(400, "prompt is too long"), provider="anthropic") as model:
        with pytest.raises(PermanentError, match="the model declines"):
            list(model.stream())
        with pytest.raises(ItemError, match=r"prompt is too long: if it is too long, lower answering\.context_tokens"):
            model.complete()
