"""Code fences in the markdown that extractors write."""

from __future__ import annotations

import re

_MARKS = re.compile(r"`{3,}")


def fenced(source: str, language: str) -> str:
    """The source as a fenced block, whatever fences it holds itself."""
    longest = max((len(marks) for marks in _MARKS.findall(source)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{source}\n{fence}"
