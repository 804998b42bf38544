"""Blocks of markdown and AsciiDoc: headings, paragraphs, list items, fenced code, tables.

A line scanner, not a parser: it needs to know where a text may be cut, not how it renders.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
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
    heading_character: str
    """What such a line begins with."""
    fence: re.Pattern[str]
    """Group 1: what must close it."""
    fence_characters: str
    """What such a line may begin with."""
    first_characters: str
    """No other line can be a heading, a fence, a list item, a table row or an underline."""
    underlines: bool
    """Whether `===` and `---` under a line make it a heading."""

    @property
    def interrupting(self) -> re.Pattern[str]:
        """The end of a line before one that is blank or begins with one of `first_characters`."""
        return _interrupting(self.first_characters)


@cache
def _interrupting(first_characters: str) -> re.Pattern[str]:
    return re.compile(rf"\n(?=[^\S\n]*(?:\n|\Z|[{re.escape(first_characters)}]))")


MARKDOWN: Final = Marks(
    heading=re.compile(r"(#{1,6})(?:[ \t]+(.*?))?(?:(?<=[ \t])#+)?[ \t]*$"),
    heading_character="#",
    fence=re.compile(r"(`{3,}|~{3,})"),
    fence_characters="`~",
    first_characters="#`~|=-*+•0123456789",
    underlines=True,
)
ASCIIDOC: Final = Marks(
    heading=re.compile(r"(={1,6})[ \t]+(\S.*)$"),
    heading_character="=",
    fence_characters="-.=*+|`",
    fence=re.compile(r"(-{4,}|\.{4,}|={4,}|\*{4,}|\+{4,}|\|={3,}|`{3,})[ \t]*$"),
    first_characters="=-.*+|`•0123456789",
    underlines=False,
)


def marked_up_blocks(text: str, *, marks: Marks) -> list[Block]:
    """Blocks of a text in this markup.

    Only lines that may begin something are looked at: what goes on with a paragraph or a fence is searched over.
    """
    scanner = _Scanner(outline=Outline(), marks=marks)
    next_mark = marks.interrupting.search
    length = len(text)
    start = 0
    while start < length:
        end = text.find("\n", start)
        end = length if end < 0 else end
        scanner.take(text[start:end], start)
        if scanner.fence:
            end = _closing_line(text, scanner.fence, end)
            scanner.leave_fence()
        elif scanner.in_block and not scanner.in_table:
            following = next_mark(text, end)
            if not following:
                break
            if following.start() > end:  # a second line: no underline makes it a heading any more
                scanner.underlinable = ""
            end = following.start()
        start = end + 1
    return scanner.outline.blocks(length=length)


def _closing_line(text: str, fence: str, end: int) -> int:
    """Where the line ends that closes the fence of the line that ends at `end`; the end of the text without one."""
    at = end
    while (at := text.find(fence, at + 1)) >= 0:
        line_start, line_end = text.rfind("\n", 0, at) + 1, text.find("\n", at)
        line_end = len(text) if line_end < 0 else line_end
        line = text[line_start:line_end].strip()
        if line == fence or (line.startswith(fence) and not line.strip(fence[0])):
            return line_end
        at = line_end - 1
    return len(text)


@dataclass(slots=True, kw_only=True)
class _Scanner:
    """What is known of the lines before the present one."""

    outline: Outline
    marks: Marks
    fence: str = ""
    """What closes the fence that was opened by the last line; empty when it opened none."""
    in_block: bool = False
    """Whether the present line would continue a block."""
    in_table: bool = False
    underlinable: str = ""
    """The one line of the present paragraph, while an underline would make it a heading."""

    def take(self, line: str, start: int) -> None:
        stripped = line.lstrip()
        if not stripped:
            self.in_block = self.in_table = False
            self.underlinable = ""
            return
        indent = 0 if len(stripped) == len(line) else indentation(line, stripped)
        if stripped[0] not in self.marks.first_characters or not self._take_marked(line, stripped, start, indent):
            self._take_words(line, stripped, start, indent)

    def leave_fence(self) -> None:
        """Go on behind the fence."""
        self.fence = ""
        self.in_block = False

    def _take_marked(self, line: str, stripped: str, start: int, indent: int) -> bool:
        """Take a line that begins something; False when it only looked like it."""
        mark = stripped[:_MAX_MARK_CHARS]
        marks = self.marks
        first = stripped[0]
        if first in "-*+" and mark[1:2] == " " and not self.underlinable:  # most of them
            self.outline.open_block(start, level=ITEM + indent)
            self.in_block = True
            return True
        if first == marks.heading_character and indent <= 3 and (heading := marks.heading.match(mark)):
            self.outline.heading(start, depth=len(heading[1]), title=heading_words(heading[2] or ""))
            self.in_block = False
        elif first in marks.fence_characters and (fence := marks.fence.match(mark)):
            self._open(start, indent, kind="verbatim")
            self.fence = fence[1]
        elif self.underlinable and marks.underlines and first in "=-" and _SETEXT.match(line[:_MAX_MARK_CHARS]):
            depth = 1 if first == "=" else 2
            self.outline.reopen_as_heading(depth=depth, title=heading_words(self.underlinable))
            self.in_block = False
        elif first == "|":
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

    def _take_words(self, line: str, stripped: str, start: int, indent: int) -> None:
        if self.in_block and not self.in_table:
            self.underlinable = ""
            return
        self._open(start, indent)
        self.underlinable = line[:_MAX_MARK_CHARS] if stripped[0] not in ">|<-*+" else ""

    def _open(self, start: int, indent: int, kind: BlockKind = "prose") -> None:
        level = PARAGRAPH if indent < 2 else ITEM + indent
        self.outline.open_block(start, level=level, kind=kind)
        self.in_block, self.in_table = True, False
