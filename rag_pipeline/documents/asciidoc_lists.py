"""Numbers of the items in AsciiDoc's ordered lists, which its source writes as dots."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from rag_pipeline.documents.numerals import Style, numeral

_ITEM = re.compile(r"(?P<indent>[ \t]*)(?P<marker>\.{1,5}|\*{1,5}|-|\d{1,9}\.)[ \t]+\S")
_TERM = re.compile(r"[ \t]*\S.*?(?P<marker>:{2,4}|;;)(?:[ \t]|$)")
_START = re.compile(r"\bstart[ \t]*=[ \t]*\"?(-?\d{1,9})")
_STYLES: Final[tuple[Style, ...]] = ("arabic", "loweralpha", "lowerroman", "upperalpha", "upperroman")
_BEGINS_ITEM: Final = frozenset(" \t.*-0123456789")
_STEP: Final = 3
"""Columns that a nested list is indented by."""


@dataclass(slots=True)
class _List:
    marker: str
    style: Style
    number: int
    step: int = 1


@dataclass(slots=True, kw_only=True)
class Lists:
    """The lists that are open at the line that is being read, the innermost last."""

    opened: list[_List] = field(default_factory=list)
    attributes: str = ""
    """What stood in brackets above the line."""
    blank_before: bool = True
    is_attached: bool = False
    """A `+` above binds what follows to the item."""

    def take_blank(self) -> None:
        """Take a blank line: a paragraph after it ends the lists, another item does not."""
        self.blank_before, self.is_attached = True, self.is_attached and self.blank_before

    def take_attributes(self, line: str) -> None:
        """Take a line of attributes in brackets: below a blank line, it begins something new."""
        if self.blank_before and not self.is_attached:
            self.opened.clear()
        self.attributes += line

    def take_block(self) -> None:
        """Take the line that opens a block, or a heading."""
        if not self.is_attached and self.blank_before:
            self.opened.clear()
        self.attributes, self.blank_before = "", False

    def take_line(self, line: str) -> tuple[int, int, str] | None:
        """Take a line of words: for an ordered item, which of its columns are the marker, and what it shows."""
        blank_before, attributes = self.blank_before, self.attributes
        self.blank_before, self.attributes = False, ""
        if line.rstrip() == "+":
            self.is_attached = True
            return None
        item = _ITEM.match(line) if self.opened or line[0] in _BEGINS_ITEM else None
        if item is None:
            if blank_before and not self.is_attached and not line[0].isspace() and not _TERM.match(line):
                self.opened.clear()
            return None
        self.is_attached = False
        marker = "1." if item["marker"][0].isdecimal() else item["marker"]
        number = self._count(marker, attributes)
        if marker[0] != ".":
            return None
        nesting = sum(1 for one in self.opened[:-1]) * _STEP
        indent = max(len(item["indent"]), nesting)
        return 0, item.end("marker"), " " * indent + number + "."

    def _count(self, marker: str, attributes: str) -> str:
        known = next((at for at, one in enumerate(self.opened) if one.marker == marker), None)
        if known is None:
            style: Style = next((s for s in _STYLES if s in attributes), _STYLES[min(len(marker), 5) - 1])
            start = _START.search(attributes)
            step = -1 if "reversed" in attributes else 1
            self.opened.append(_List(marker, style, int(start[1]) if start else 1, step))
        else:
            del self.opened[known + 1 :]
            self.opened[-1].number += self.opened[-1].step
        return numeral(self.opened[-1].number, self.opened[-1].style)
