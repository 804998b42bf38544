"""Blocks of reStructuredText, and of plain text that is laid out like it.

A directive, and a paragraph that ends with `::`, keep the indented lines under them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from rag_pipeline.chunking.blocks import ITEM, PARAGRAPH, Block, Outline, indentation
from rag_pipeline.chunking.headings import heading_words
from rag_pipeline.chunking.prose_blocks import LIST_ITEM
from rag_pipeline.drawn_tables import SIMPLE_RULE

_MAX_TITLE_CHARS = 300
_MAX_RULE_CHARS = 1000
_MAX_TABLE_LINES = 2000
_RULE = re.compile(r"([!-/:-@\[-`{-~])\1{2,}[ \t]*$")
_RULE_CHARACTERS = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")


def rst_blocks(text: str) -> list[Block]:
    """Blocks of a reStructuredText document; the depth of a title is the order in which its style first appears."""
    scanner = _Scanner(outline=Outline())
    lines = text.split("\n")
    lines.append("")
    start = passed = 0
    for i in range(len(lines) - 1):
        line = lines[i]
        if i >= passed:
            scanner.take(line, start, following=lines[i + 1])
            if scanner.opens_table:
                passed = _end_of_simple_table(lines, i)
        start += len(line) + 1
    return scanner.outline.blocks(length=len(text))


def _end_of_simple_table(lines: Sequence[str], first: int) -> int:
    """The number of the line after a simple table, which may hold blank lines; `first` + 1 when it never ends."""
    for number in range(first + 1, min(first + _MAX_TABLE_LINES, len(lines) - 1)):
        if SIMPLE_RULE.match(lines[number][:_MAX_RULE_CHARS]) and not lines[number + 1].strip():
            return number + 1
    return first + 1


@dataclass(slots=True, kw_only=True)
class _Scanner:
    """What is known of the lines before the present one."""

    outline: Outline
    styles: dict[str, int] = field(default_factory=dict)
    """Depth of each style of title: its character, twice when it is also above the title."""
    in_block: bool = False
    body_of: int = -1
    """Indentation of the line whose indented body is being read; -1 when none is."""
    body_may_follow: int = -1
    overline: tuple[int, str] | None = None
    """Start and text of a rule that may be above a title."""
    underline_next: bool = False
    opens_table: bool = False
    """Whether the last line was the rule above a simple table."""

    def take(self, line: str, start: int, *, following: str) -> None:
        stripped = line.strip()
        self.opens_table = False
        if not stripped:
            self._take_blank()
            return
        if self.underline_next:  # the rule below a title, which is part of its block
            self.underline_next = False
            return
        indent = indentation(line, line.lstrip()) if line[0] in " \t" else 0
        if self.body_of >= 0:
            if indent > self.body_of:
                return
            self.body_of, self.in_block = -1, False
        if self._take_title(line, stripped, start, indent, following):
            return
        self._take_words(stripped, start, indent)

    def _take_blank(self) -> None:
        self.in_block = False
        self.overline = None
        if self.body_may_follow >= 0:
            self.body_of, self.body_may_follow = self.body_may_follow, -1

    def _take_title(self, line: str, stripped: str, start: int, indent: int, following: str) -> bool:
        if len(stripped) > _MAX_TITLE_CHARS:
            return False
        if not self.in_block and stripped[0] in _RULE_CHARACTERS and _RULE.match(stripped):
            self.overline = (start, stripped[0])
            self.outline.open_block(start, level=PARAGRAPH)
            self.in_block = True
            return True
        overline, self.overline = self.overline, None
        if (self.in_block and not overline) or not following or following[0] not in _RULE_CHARACTERS:
            return False
        if not _RULE.match(following[: 2 * _MAX_TITLE_CHARS]) or len(following.rstrip()) + 2 < len(stripped):
            return False
        if overline is None and indent:
            return False
        style = following[0] * (2 if overline else 1)
        self._open_title(start, stripped, style=style, has_overline=overline is not None)
        return True

    def _open_title(self, start: int, stripped: str, *, style: str, has_overline: bool) -> None:
        depth = self.styles.setdefault(style, len(self.styles) + 1)
        if has_overline:
            self.outline.reopen_as_heading(depth=depth, title=heading_words(stripped))
        else:
            self.outline.heading(start, depth=depth, title=heading_words(stripped))
        self.in_block, self.underline_next, self.body_may_follow = False, True, -1

    def _take_words(self, stripped: str, start: int, indent: int) -> None:
        directive = stripped.startswith(".. ")
        item = stripped[0] in "-*+#0123456789" and LIST_ITEM.match(stripped[:20]) is not None
        if not self.in_block or item or directive:
            level = ITEM + indent if item or indent else PARAGRAPH
            self.opens_table = stripped[0] == "=" and SIMPLE_RULE.match(stripped[:_MAX_RULE_CHARS]) is not None
            is_table = self.opens_table or stripped[0] in "+|"
            self.outline.open_block(start, level=level, kind="verbatim" if is_table else "prose")
            self.in_block = True
        if directive:
            self.body_of, self.body_may_follow = indent, -1
        else:
            self.body_may_follow = indent if stripped.endswith("::") else -1
