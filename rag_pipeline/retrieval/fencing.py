"""Text of unknown authors for a language model to read: fenced, so that it cannot pretend to be anything else. Pure."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

_BACKTICKS: Final = re.compile(r"`+")
_SHORTEST_FENCE: Final = 3
_BREAKS: Final = {"Cc", "Cf", "Zl", "Zp"}  # control, invisible, line and paragraph separators


def fenced(text: str) -> str:
    """The text between two lines of backticks, more of them than it holds in a row anywhere.

    So no text can end its own fence (CommonMark 0.31, 4.5). Between the fences it stands as it is.
    """
    longest = max((len(run) for run in _BACKTICKS.findall(text)), default=0)
    fence = "`" * max(_SHORTEST_FENCE, longest + 1)
    return f"{fence}\n{text}\n{fence}"


def one_line(text: str, *, max_chars: int = 200) -> str:
    """A title or a path as one line without invisible characters or backticks, shortened at its end."""
    visible = "".join(" " if unicodedata.category(char) in _BREAKS else char for char in text)
    line = " ".join(visible.replace("`", "'").split())
    return line if len(line) <= max_chars else f"{line[: max_chars - 1]}…"
