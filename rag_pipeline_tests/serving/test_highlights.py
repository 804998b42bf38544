"""What of a hit's text is marked for a question."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_pipeline.serving.highlights import highlights, merged, wanted_terms

WORDS = st.text(alphabet="abAB_.'-/ 東京é\n", max_size=60)


def marked(text: str, question: str) -> list[str]:
    return [text[start:end] for start, end in highlights(text, wanted_terms(question))]


@pytest.mark.parametrize(
    ("question", "text", "marks"),
    [
        ("how do I retry", "It retries, retrying or retried: try it", ["retries", "retrying", "retried"]),
        ("join a path", "use os.path.join here", ["path", "join"]),
        ("os.path.join", "use os.path.join here", ["os.path.join"]),
        ("max tokens", "the maxChunkTokens and max_tokens", ["max", "Tokens", "max", "tokens"]),
        ("user settings", "the user's settings", ["user's", "settings"]),
        ("how to do it", "how it is done", ["how", "it"]),  # nothing but function words: then these
        ("how to deploy", "how to deploy it", ["deploy"]),
        ("京都", "東京都の京都", ["京都", "京都"]),
        ("retry", "", []),
        ("???", "nothing to mark", []),
    ],
)
def test_what_the_question_asks_for_is_marked(question: str, text: str, marks: list[str]) -> None:
    assert marked(text, question) == marks


@given(text=WORDS, question=WORDS)
def test_marks_lie_in_the_text_in_order_and_apart(text: str, question: str) -> None:
    spans = highlights(text, wanted_terms(question))
    assert all(0 <= start < end <= len(text) for start, end in spans)
    assert all(before[1] < after[0] for before, after in pairwise(spans))


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30))))
def test_merging_covers_the_same_places(spans: list[tuple[int, int]]) -> None:
    def covered(some: list[tuple[int, int]]) -> set[int]:
        return {at for start, end in some for at in range(start, end)}

    assert covered(merged(spans)) == covered(spans)
