"""A model's text is taken apart as it streams: thoughts, that it does not know, the answer, further questions."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_pipeline.answering.reply import Reply

PARTS = (
    "UNKNOWN", "<think>", "</think>", "FOLLOW-UPS:", "follow-ups:", "**FOLLOW-UPS:**", "FOLLOW", "-UPS", ":", "\n",
    "\n\n",    " ", "- ", "How?", "# ", "Follow the guide", "*", "1. ", "<th", "UNK",
)  # fmt: skip


def read(*pieces: str) -> tuple[str, Reply]:
    reply = Reply()
    return "".join(map(reply.feed, pieces)) + reply.finish(), reply


@pytest.mark.parametrize("marker", ["FOLLOW-UPS:", "**Follow-ups:**", "### Follow-up questions:", "follow ups:"])
def test_questions_behind_the_marker_are_no_part_of_the_answer(marker):
    text, reply = read(f"Run `make` [Source 1].\n\n{marker}\n- How fast is it?\n2. Why?\n\n* **Why?**\n")
    assert text == "Run `make` [Source 1].\n\n"
    assert reply.questions == ["How fast is it?", "Why?"]


def test_a_model_may_say_that_it_does_not_know():
    text, reply = read("UNK", "NOWN: the sources do not name", " a port.")
    assert reply.is_unknown
    assert text == "the sources do not name a port."
    assert not read("UNKNOWNS are listed in the table.")[1].is_unknown
    assert not read("The state is UNKNOWN then.")[1].is_unknown


def test_thoughts_are_left_out():
    assert read("<think>FOLLOW-UPS:\nhm</think>\nRun it, then look at the log.")[0] == "Run it, then look at the log."
    assert read("<think>never ends")[0] == ""


def test_a_sentence_that_begins_like_the_marker_is_answer():
    text, reply = read("First do this.\nFollow", " the guide then.")
    assert text == "First do this.\nFollow the guide then."
    assert reply.questions == []


@settings(max_examples=150, deadline=None)
@given(
    text=st.lists(st.sampled_from(PARTS) | st.text(max_size=2), max_size=20).map("".join),
    cuts=st.lists(st.integers(0, 80), max_size=8),
)
def test_however_a_text_is_cut_it_is_read_alike(text, cuts):
    bounds = [0, *sorted(cuts), max([len(text), *cuts])]
    shown, reply = read(*(text[start:end] for start, end in pairwise(bounds)))
    whole, at_once = read(text)
    assert (shown, reply.questions, reply.is_unknown) == (whole, at_once.questions, at_once.is_unknown)
