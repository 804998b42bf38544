"""What callers are told of what was done without."""

from __future__ import annotations

import pytest

from rag_pipeline.serving.degraded import told


@pytest.mark.parametrize(
    ("degraded", "begins"),
    [
        ("searched by words alone: cannot reach https://internal", "searched by words alone: the model"),
        ("not reranked: sk-1 refused", "not reranked: the reranker"),
        ("not rewritten by the model: https://internal", "not rewritten to stand alone: the"),
        ("answered with quotes, since the language model failed: https://internal", "answered with quotes: the"),
        ("cut off after answering.max_answer_tokens = 800", "cut off: it became"),
        ("https://internal", "something was done without"),
    ],
)
def test_it_is_said_what_is_missing_and_not_why(degraded: str, begins: str) -> None:
    said = told(degraded)
    assert said.startswith(begins) and "internal" not in said and "sk-1" not in said
    assert told(said) == said


def test_nothing_missing_is_nothing_said() -> None:
    assert told("") == ""
    assert told("not reranked: x; searched by words alone: y").count(";") == 1
