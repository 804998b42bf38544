"""What a model thinks before it answers is taken out, wherever its text happens to be cut."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_pipeline.answering.thoughts import Thoughts, without_thoughts


def shown(*pieces: str) -> str:
    thoughts = Thoughts()
    return "".join([thoughts.passed(piece) for piece in pieces] + [thoughts.rest()])


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("<think>hm</think>\n\nYes.", "Yes."),
        ("\n<THINK>hm</think>Yes.".replace("THINK", "Think"), "Yes."),
        ("<thinking>a < b\n</thinking> Yes.", "Yes."),
        ("<think></think>", ""),
        ("<think>never ends", ""),
        ("<th", "<th"),
        ("< think> is no tag", "< think> is no tag"),
        ("", ""),
        ("  Yes.", "  Yes."),
        ("The `<think>` tag: <think>x</think> is kept.", "The `<think>` tag: <think>x</think> is kept."),
        ("<think>a</think>b</think>c", "b</think>c"),
    ],
)
def test_only_what_a_text_begins_with_is_thought(text, left):
    assert shown(text) == shown(*text) == without_thoughts(text) == left


def test_a_whole_text_loses_thoughts_whose_beginning_is_not_marked():
    assert without_thoughts("First, I wonder.\n</think>\n\nYes.") == "Yes."
    assert without_thoughts("Close it with `</think>`, always.") == "Close it with `</think>`, always."


@given(text=st.text(alphabet="<>/think \nab", max_size=40), cuts=st.lists(st.integers(0, 40), max_size=5))
def test_where_a_text_is_cut_does_not_matter(text, cuts):
    places = [0, *sorted(cuts), len(text)]
    pieces = [text[start:end] for start, end in pairwise(places)]
    assert shown(*pieces) == shown(text)


@given(thought=st.text(alphabet="<>/tab \n", max_size=20), answer=st.text(alphabet="<>/think ab", min_size=1))
def test_no_thought_is_shown_and_no_answer_is_lost(thought, answer):
    assert shown(*f"<think>{thought}</think>{answer}") == answer.lstrip()
