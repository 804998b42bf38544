"""A comment on a line says which line it was written on, wherever later commits have moved that."""

from __future__ import annotations

from typing import Any

import pytest

from rag_pipeline.sources.github.resources import review_comment


def lines_of(**fields: int | None) -> tuple[Any, Any]:
    """First and last line, as kept."""
    body = review_comment({"id": 5, "user": {"login": "bob"}, "body": "Why?", "path": "a.py", **fields}, number=1).body
    return body["start_line"], body["line"]


@pytest.mark.parametrize(
    "now",
    [{"line": 12, "start_line": 10}, {"line": 40, "start_line": 38}, {"line": None, "start_line": None}, {}],
    ids=["where it was", "moved by a later commit", "outdated", "not told"],
)
def test_a_later_commit_moves_no_comment(now: dict[str, int | None]) -> None:
    assert lines_of(original_line=12, original_start_line=10, **now) == (10, 12)


@pytest.mark.parametrize("original", [{}, {"original_line": None, "original_start_line": None}])
def test_where_it_is_now_counts_when_nothing_else_is_known(original: dict[str, int | None]) -> None:
    assert lines_of(line=12, start_line=10, **original) == (10, 12)
    assert lines_of(**original) == (None, None)
