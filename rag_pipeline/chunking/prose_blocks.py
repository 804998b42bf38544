"""Blocks of markdown and AsciiDoc: headings, paragraphs, list items, fenced code, tables.

A line scanner, not a parser: it needs to know where a text may be cut, not how it renders.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from rag_pipeline.chunking.blocks import ITEM, PARAGRAPH, Block, BlockKind, Outline, indentation
from rag_pipeline.chunking.headings import heading_words

_MAX_MARK_CHARS = 1000  # the patterns look at the beginning of a line only: a line may be megabytes long
LIST_ITEM: Final = re.compile(r"(?:[-*+•]|\.{1,5}|\*{2,5}|(?:\d{1,9}|[A-Za-z#])[.)])(?:[ \t]|$)")
_SETEXT = re.compile(r" {0,3}(?:=+|-+)[ \t]*$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """How a markup language writes what the scanner looks for; patterns match a line without its indentation."""

    heading: re.Pattern[str]
    """Group 1: one character per level; group 2: the heading."""
    fence: re.Pattern[str]
    """Group 1: what must close it."""
    first_characters: str
    """No other line can be a heading, a fence, a list item, a table row or an underline."""
    underlines: bool
    """Whether `===` and `---` under a line make it a heading."""


MARKDOWN: Final = Marks(
    heading=re.compile(r"(#{1,6})(?:[ \t]+(.*?))?(?:(?<=[ \t])#+)?[ \t]*$"),
    fence=re.compile(r"(`{3,}|~{3,})"),
    first_characters="#`~|=-*+•0123456789",
    underlines=True,
)
ASCIIDOC: Final = Marks(
    heading=re.compile(r"(={1,6})[ \t]+(\S.*)$"),
    fence=re.compile(r"(-{4,}|\.{4,}|={4,}|\*{4,}|\+{4,}|\|={3,}|`{3,})[ \t]*$"),
    first_characters="=-.*+|`•0123456789",
    underlines=False,
)


def marked_up_blocks(text: str, *, marks: Marks) -> list[Block]:
    """Blocks of a text in this markup."""
    scanner = _Scanner(outline=Outline(), marks=marks)
    start = 0
    for line in text.split("\n"):
        scanner.take(line, start)
        start += len(line) + 1
    return scanner.outline.blocks(length=len(text))


@dataclass(slots=True, kw_only=True)
class _Scanner:
    """What is known of the lines before the present one."""

    outline: Outline
    marks: Marks
    fence: str = ""
    """What closes the fence that is open; empty outside."""
    in_block: bool = False
    """Whether the present line would continue a block."""
    in_table: bool = False
    underlinable: str = ""
    """The one line of the present paragraph, while an underline would make it a heading."""

    def take(self, line: str, start: int) -> None:
        stripped = line.lstrip()
        if self.fence:
            self._take_fenced(stripped)
        elif not stripped:
            self.in_block = self.in_table = False
            self.underlinable = ""
        elif stripped[0] not in self.marks.first_characters or not self._take_marked(line, stripped, start):
            self._take_words(line, stripped, start)

    def _take_fenced(self, stripped: str) -> None:
        closing = stripped.rstrip()
        longer = closing.startswith(self.fence) and not closing.strip(self.fence[0])
        if longer or closing == self.fence:
            self.fence = ""
            self.in_block = False

    def _take_marked(self, line: str, stripped: str, start: int) -> bool:
        """Take a line that begins something; False when it only looked like it."""
        mark = stripped[:_MAX_MARK_CHARS]
        indent = indentation(line, stripped)
        if indent <= 3 and (heading := self.marks.heading.match(mark)):
            self.outline.heading(start, depth=len(heading[1]), title=heading_words(heading[2] or ""))
            self.in_block = False
        elif fence := self.marks.fence.match(mark):
            self._open(start, indent, kind="verbatim")
            self.fence = fence[1]
        elif self.underlinable and self.marks.underlines and _SETEXT.match(line[:_MAX_MARK_CHARS]):
            depth = 1 if stripped[0] == "=" else 2
            self.outline.reopen_as_heading(depth=depth, title=heading_words(self.underlinable))
            self.in_block = False
        elif stripped[0] == "|":
            if not self.in_table:
                self._open(start, indent, kind="verbatim")
            self.in_table = True
        elif LIST_ITEM.match(mark):
            self.outline.open_block(start, level=ITEM + indent)
            self.in_block = True
        else:
            return False
        self.underlinable = ""
        return True

    def _take_words(self, line: str, stripped: str, start: int) -> None:
        if self.in_block and not self.in_table:
            self.underlinable = ""
            return
        self._open(start, indentation(line, stripped))
        self.underlinable = line[:_MAX_MARK_CHARS] if stripped[0] not in ">|<-*+" else ""

    def _open(self, start: int, indent: int, kind: BlockKind = "prose") -> None:
        level = PARAGRAPH if indent < 2 else ITEM + indent
        self.outline.open_block(start, level=level, kind=kind)
        self.in_block, self.in_table = True, False
