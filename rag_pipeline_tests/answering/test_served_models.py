"""Language models over a real socket, in both wire formats: what they are sent, what comes of it, what goes wrong."""

from __future__ import annotations

import logging
import time
import traceback

import pytest

from rag_pipeline.answering.language_model import Message, Piece
from rag_pipeline.errors import ConfigError, ItemError, PermanentError, RagPipelineError, TransientError
from rag_pipeline_tests.answering.asking import KEY, PROVIDERS, asking, joined
from rag_pipeline_tests.answering.scripted_server import (
    Sends,
    Stalls,
    events,
    fails,
    says,
    scripted_server,
    web_page,
)

both = pytest.mark.parametrize("provider", PROVIDERS)


@both
def test_a_text_comes_whole_or_in_pieces_and_the_last_one_says_what_it_cost(provider):
    with asking(provider=provider) as model:
        model.server.then(says("Like ", "this."), says("Like ", "this."))
        assert model.complete() == Piece(text="Like this.", input_tokens=11, output_tokens=7)
        assert list(model.stream()) == [
            Piece(text="Like "), Piece(text="this."), Piece(text="", input_tokens=11, output_tokens=7),
        ]  # fmt: skip
        whole, streamed = model.server.requests
        assert whole.messages == streamed.messages
        assert [message["role"] for message in whole.messages] == ["system", "user"]
        assert (whole.wants_stream, streamed.wants_stream) == (False, True)


@both
def test_a_text_that_is_long_enough_is_said_to_be_cut_off(provider):
    with asking(provider=provider) as model:
        for piece in model.both(says("Like", finish="length")):
            assert (piece.text, piece.is_cut_off) == ("Like", True)


@both
def test_a_service_that_does_not_say_what_it_cost_costs_nothing_known(provider):
    with asking(says("a", input_tokens=None), provider=provider) as model:
        assert joined(model.stream()).input_tokens == 0


@both
def test_thoughts_are_never_shown(provider):
    with asking(provider=provider) as model:
        for piece in model.both(says("<thi", "nk>first, I", "</think>", "\n\nLi", "ke.", reasoning=("hm, ", "so"))):
            assert piece.text == "Like."


@both
def test_a_service_that_ignores_the_wish_for_a_stream_is_understood(provider):
    with asking(says("Like ", "this.", ignores_stream=True), provider=provider) as model:
        assert list(model.stream()) == [Piece(text="Like this.", input_tokens=11, output_tokens=7)]


@both
def test_characters_that_end_lines_elsewhere_and_half_characters_pass(provider):
    odd = "one\u2028two\x85three\x0bfour 🦆"
    with asking(provider=provider) as model:
        for piece in model.both(says(odd[:9], odd[9:])):
            assert piece.text == odd
        model.server.then(says("ok"))
        model.complete([Message(role="user", content="lone \ud800 surrogate")])
        assert model.server.requests[-1].question == "lone ? surrogate"


@both
@pytest.mark.parametrize(
    ("status", "error", "text"),
    [
        (401, ConfigError, "check the key in the environment variable"),
        (403, ConfigError, "check the key"),
        (404, ConfigError, "check answering.model and answering.base_url"),
        (402, PermanentError, "quota is spent"),
        (400, ItemError, "lower answering.context_tokens"),
        (413, ItemError, "lower answering.context_tokens"),
        (418, PermanentError, "answered 418"),
    ],
)
def test_a_refusal_says_what_to_do_and_is_not_repeated(provider, status, error, text):
    with asking(fails(status, f"no, {KEY}"), provider=provider) as model:
        with pytest.raises(error, match=text) as caught:
            model.complete()
        assert len(model.server.requests) == 1
        shown = "".join(traceback.format_exception(caught.value))
        assert model.server.root in shown
        assert KEY not in shown


@both
def test_a_redirect_is_not_followed_with_the_key(provider):
    with scripted_server(says("stolen")) as other, asking(provider=provider) as model:
        model.server.then(Sends(status=307, headers={"Location": f"{other.root}/elsewhere"}))
        with pytest.raises(ConfigError, match="elsewhere, which is not followed"):
            model.complete()
        assert other.requests == []


@both
def test_what_may_pass_is_tried_again_after_the_wait_that_is_asked_for(provider):
    slow_down = fails(429, "slow down", headers={"Retry-After": "3"})
    with asking(slow_down, fails(503), says("at ", "last"), provider=provider) as model:
        assert joined(model.stream()).text == "at last"
        assert model.slept == [3.5, 1.0]
        model.server.then(fails(500), says("again"))
        assert model.complete().text == "again"


@both
def test_the_last_failure_is_told_when_none_is_left_and_a_longer_wait_than_the_time_is_not_begun(provider):
    with asking(fails(500), fails(500), fails(529, "overloaded"), provider=provider) as model:
        with pytest.raises(TransientError, match="529"):
            model.complete()
        assert len(model.slept) == 2
        model.server.then(fails(429, headers={"Retry-After": "120"}))
        with pytest.raises(TransientError, match="429") as caught:
            model.complete(timeout_s=60)
        assert caught.value.retry_after_s == 120
        assert len(model.slept) == 2


@both
def test_what_was_shown_is_not_asked_for_again(provider):
    with asking(says("Like ", "th", ends=False), says("never"), provider=provider) as model:
        pieces = model.stream()
        assert [next(pieces).text, next(pieces).text] == ["Like ", "th"]
        with pytest.raises(TransientError, match="broke"):
            next(pieces)
        assert len(model.server.requests) == 1


@both
def test_what_breaks_before_the_first_word_is_asked_for_again(provider):
    with asking(says(ends=False), says("Like."), provider=provider) as model:
        assert joined(model.stream()).text == "Like."
        model.server.then(says("half", ends=False), says("whole"))
        assert model.complete().text == "whole"


@both
def test_a_stream_that_ends_politely_in_the_middle_is_cut_off_all_the_same(provider):
    with asking(says("Like ", finish=None, says_done=False), provider=provider) as model:
        pieces = model.stream()
        assert next(pieces).text == "Like "
        with pytest.raises(TransientError, match="in the middle"):
            next(pieces)


@both
@pytest.mark.parametrize("drips", [False, True], ids=["silent", "dripping"])
def test_a_service_that_does_not_answer_is_waited_for_no_longer_than_was_said(provider, drips):
    with asking(Stalls(drips=drips), Stalls(drips=drips), Stalls(), provider=provider) as model:
        for ask in (model.complete, lambda **options: list(model.stream(**options))):
            started = time.monotonic()
            with pytest.raises(TransientError, match=r"did not answer within 0\.2 s"):
                ask(timeout_s=0.2)
            assert time.monotonic() - started < 10  # the server would go on for thirty seconds
        assert model.server.hung_up.wait(10)


@both
def test_a_service_that_falls_silent_is_given_up_though_it_says_that_it_is_there(provider):
    with asking(Stalls(after=["Like "], drips=True), provider=provider) as model:
        pieces = model.stream(timeout_s=2)
        assert next(pieces).text == "Like "
        with pytest.raises(TransientError, match=r"fell silent for 2 s"):
            next(pieces)
        assert model.server.hung_up.wait(10)


@both
def test_a_text_that_is_complete_does_not_fail_for_what_never_comes_after_it(provider):
    with asking(says("Like this.", waits_for_usage=True), provider=provider) as model:
        assert joined(model.stream(timeout_s=4)).text == "Like this."


@both
def test_who_stops_listening_ends_the_request(provider):
    with asking(Stalls(after=["Like "]), says("next"), provider=provider) as model:
        pieces = model.stream()
        next(pieces)
        pieces.close()
        assert model.server.hung_up.wait(10)
        assert model.complete().text == "next"


@both
def test_a_model_that_is_closed_lets_go_of_who_waits_and_answers_no_more(provider):
    with asking(Stalls(after=["Like "]), provider=provider) as model:
        pieces = model.stream()
        next(pieces)
        model.model.close()
        with pytest.raises(TransientError, match="was closed"):
            next(pieces)
        for ask in (model.complete, lambda: next(model.stream())):
            with pytest.raises(TransientError, match="is closed"):
                ask()


@both
@pytest.mark.parametrize(
    ("behaviour", "text"),
    [
        (web_page(), "check answering.base_url"),
        (Sends(body=b"{}"), "check answering.base_url"),
        (Sends(body=b"[1, 2]"), "something else"),
        (Sends(body=b'{"choices": [], "content": [], "stop_reason": "end_turn"}'), "something else|empty text"),
        (says(""), "empty text"),
        (says("  \n"), "empty text"),
        (says("<think>and on and on", finish="length"), "raise answering.max_answer_tokens"),
        (says("As an", finish="content_filter"), "refused to answer"),
    ],
    ids=["page", "empty", "list", "no choices", "no text", "blank", "only thoughts", "filtered"],
)
def test_an_answer_that_makes_no_sense_is_no_answer(provider, behaviour, text):
    with asking(behaviour, behaviour, provider=provider) as model:
        for ask in (model.complete, lambda: list(model.stream())):
            with pytest.raises(PermanentError, match=text):
                ask()
        assert len(model.server.requests) == 2


@both
@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("data: {not json", PermanentError),
        ("data: [1]", PermanentError),
        ('data: {"type": "content_block_delta", "choices": [{"delta": 3}]}', PermanentError),
        ('data: {"type": "content_block_delta", "choices": [{"delta": {"content": 3}}]}', PermanentError),
        ('data: {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}', TransientError),
        ('data: {"type": "error", "error": {"code": 502, "message": "busy"}}', TransientError),
        ('data: {"type": "error", "error": {"type": "invalid_request_error", "message": "no"}}', PermanentError),
        ("data: {}" + "x" * 4_100_000, PermanentError),
    ],
)
def test_events_that_make_no_sense_and_events_of_failure(provider, line, error):
    with asking(*[events(line, "")] * 3, provider=provider) as model, pytest.raises(error):
        list(model.stream())


@both
def test_comments_and_unknown_events_are_passed_over(provider):
    fine = {
        "openai": ('data: {"choices":[{"delta":{"content":"Hi"}}]}', 'data: {"choices":[{"finish_reason":"stop"}]}'),
        "anthropic": (
            'data: {"type":"content_block_delta","delta":{"type":"text_delta","text":"Hi"}}',
            'data: {"type":"message_stop"}',
        ),
    }[provider]
    stream = events(": OPENROUTER PROCESSING", "", "id: 7", 'data: {"type": "new_thing"}', "", fine[0], "", fine[1], "")
    with asking(stream, provider=provider) as model:
        assert joined(model.stream()).text == "Hi"


def test_a_service_that_cannot_be_reached_is_a_failure_that_may_pass():
    with asking() as model:
        pass
    with asking(base_url=model.server.url) as model, pytest.raises(TransientError, match="cannot reach"):
        model.complete()


def test_the_key_is_in_no_log(caplog):
    caplog.set_level(logging.DEBUG)
    for provider in PROVIDERS:
        with asking(fails(401, KEY), provider=provider) as model, pytest.raises(RagPipelineError):
            model.complete()
    assert KEY not in caplog.text
