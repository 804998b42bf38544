"""Tables of contents in markdown: between marks that generators write, or a heading over nothing but anchors."""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass
from typing import Final

_MAX_CHARS = 60_000
_OPENS = re.compile(
    r"\s*(?:toc|start[ -]doctoc|start[ -]toc|begin[ -]toc|toc[ -]?start|markdowntoc|table[ -]of[ -]contents)\b",
    re.IGNORECASE,
)
_CLOSES = re.compile(
    r"<!--\s{0,9}(?:/\s?toc|toc[ -]?stop|end[ -]doctoc|end[ -]toc|toc[ -]?end|toc|/\s?markdowntoc"
    r"|/table[ -]of[ -]contents)\b[^<>]*-->",
    re.IGNORECASE,
)
_LISTED = re.compile(r"(?:[ \t]*(?:(?:[-*+]|\d+[.)])[ \t]|#|\*\*|<)[^\n]*(?:\n|\Z)|[ \t]*\n)*+")
_ANCHOR = (
    r"(?:\[[ xX]\][ \t]*)?\[(?:[^\[\]\n]++|\[[^\[\]\n]*+\](?:\([^()\n]*+\))?)*+\]"
    r"\(#[^\s()]*+(?:\([^\s()]*+\)[^\s()]*+)*+\)"
)
HEADED: Final = re.compile(
    r"^(?:#{1,6}[ \t]+|[*_]{2}|<summary>)?[ \t]*(?:[^\w\n]{1,4}[ \t]*)?"
    r"(?:table[ \t]of[ \t]contents?|contents|toc|on[ \t]this[ \t]page|in[ \t]this[ \t](?:page|document|article))"
    r"[ \t]*:?(?:[*_]{2}|</summary>)?:?[ \t]*#*[ \t]*\n(?:[=-]+[ \t]*\n)?"
    rf"(?:[ \t]*\n)*+(?P<items>(?:(?:[ \t]*(?:[-*+]|\d+[.)])[ \t]++(?:{_ANCHOR}[^\w\[\n]*+)++(?:\n|\Z)|[ \t]*\n)++))",
    re.IGNORECASE | re.MULTILINE,
)
"""A heading that says so, and a list below it of which every item is a link to an anchor."""
ITEM: Final = re.compile(r"[ \t]*(?:[-*+]|\d+[.)])[ \t]")
MARK: Final = re.compile(r"[ \t]*(?:\[\[?_?toc_?\]?\]|\$\{toc\}|@\[toc\])[ \t]*(?=\n|\Z)", re.IGNORECASE)
"""A line that a renderer puts the table in place of."""


def headed_contents(text: str) -> list[tuple[int, int]]:
    """Spans of headings with nothing but links to anchors below them."""
    if "](#" not in text or not _may_be_headed(text.lower()):
        return []
    return [
        (found.start(), found.end() - text.endswith("\n", found.start(), found.end()))
        for found in HEADED.finditer(text)
        if "](#" in found["items"] and not ITEM.match(text, found.end())
    ]


def _may_be_headed(lowered: str) -> bool:
    return any(words in lowered for words in ("contents", "table of content", "toc", "on this page", "in this "))


@dataclass(slots=True, kw_only=True)
class MarkedContents:
    """The tables of one text that stand between comments; where comments close one is looked up once."""

    text: str
    _closes: list[tuple[int, int]] | None = None

    def end(self, start: int, end: int) -> int | None:
        """Where the table ends that the comment `text[start:end]` opens; None when it opens none."""
        if not _OPENS.match(self.text, start + 4, end):
            return None
        if self._closes is None:
            self._closes = [found.span() for found in _CLOSES.finditer(self.text)]
        following = bisect_left(self._closes, (end, end))
        if following == len(self._closes):
            return None
        close, after = self._closes[following]
        if close - end > _MAX_CHARS:
            return None
        begin = end + self.text.startswith("\n", end)
        listed = _LISTED.match(self.text, begin, close)
        return after if listed and listed.end() == close else None
