"""Where markdown is left alone: fenced and indented code, tables; and where a paragraph ends.

Looked up where something might be cut, never line by line: a text without marks costs one search.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from dataclasses import dataclass

_PREFIX = re.compile(r"[ \t>]*+(?:(?:[-*+]|\d{1,9}[.)])[ \t]++)*+")
"""Quote marks and list markers: a fence may stand behind them."""
_ITEM = re.compile(r"([ \t]*)((?:[-*+]|\d{1,9}[.)])[ \t]+)")
_ENDS_PARAGRAPH = re.compile(r"\n(?=[ \t>]*+(?:\n|\Z|#{1,6}[ \t]|(?:[-*+]|\d{1,9}[.)])[ \t]|`{3}|~{3}))")
_DELIMITER_ROW = re.compile(r"\n(?=[^\n|]*-[ \t]*\|)(?:>[ \t]*)*[ \t]*:?-+:?[ \t]*\|[ \t:|-]*(?=\n|\Z)")
_BLANK = re.compile(r"\n[ \t]*(?=\n|\Z)")
_PREFIX_CHARS = frozenset(" \t>-*+0123456789")
_CODE_INDENT = 4
_MAX_LINES_BACK = 200


@dataclass(slots=True, kw_only=True)
class Layout:
    """What is known of the lines around the place that is being looked at; places only ever grow."""

    text: str
    line_start: int = 0
    words_start: int = 0
    """Behind the indentation, quote marks and list markers of the line."""
    kept_until: int = -1
    """End of the code or table that the line belongs to; -1 when it is prose."""
    _seen: int = 0
    _known: int = -1
    _code_line: int = -1
    """Start of the last line that was found to be indented code."""
    _paragraph_end: int = -1
    _tables: tuple[list[int], list[int]] | None = None
    _ticks: dict[int, list[int]] | None = None

    def locate(self, at: int) -> None:
        """Move to the line that holds this place."""
        newline = self.text.rfind("\n", self._seen, at)
        if newline >= 0:
            self.line_start = newline + 1
        self._seen = at
        start = self.line_start
        if self._known == start:
            return
        self._known = self.words_start = start
        self.kept_until = -1
        first = self.text[start]
        if first in _PREFIX_CHARS:
            prefix = _PREFIX.match(self.text, start)
            self.words_start = prefix.end() if prefix else start
            self.kept_until = self._kept_until(at)
        elif first == "|":
            self.kept_until = self.line_end(at)
        elif self._tables is None or self._tables[0]:
            self.kept_until = self._table_end(at)

    def line_end(self, at: int) -> int:
        """Where the line that holds this place ends: at its newline, or at the end of the text."""
        end = self.text.find("\n", at)
        return len(self.text) if end < 0 else end

    def fence_end(self, at: int, marks: str) -> int:
        """End of the fenced code that these marks open, here at the beginning of a line's words."""
        quoted = ">" in self.text[self.line_start : at]
        end = self.line_end(at)
        if quoted:
            return self._quoted_fence_end(end, marks)
        after = end
        while (found := self.text.find(marks, after)) >= 0:
            newline = self.text.rfind("\n", after, found)
            line_end = self.line_end(found)
            if newline >= 0 and not self.text[newline:found].strip() and _closes(self.text, found, line_end, marks[0]):
                return line_end
            after = found + len(marks)
        return len(self.text)

    def code_span_end(self, start: int, length: int) -> int:
        """End of the code span that a run of this many backticks opens at `start`; of the run when it opens none."""
        if self._ticks is None:
            self._ticks = defaultdict(list)
            for run in re.finditer("`+", self.text):
                self._ticks[run.end() - run.start()].append(run.start())
        same = self._ticks.get(length, [])
        following = bisect_left(same, start + length)
        if following < len(same) and same[following] < self.paragraph_end(start):
            return same[following] + length
        return start + length

    def paragraph_end(self, at: int) -> int:
        """Where the paragraph that holds this place ends, a list item, heading or fence beginning another one."""
        if at >= self._paragraph_end:
            end = _ENDS_PARAGRAPH.search(self.text, at)
            self._paragraph_end = end.start() if end else len(self.text)
        return self._paragraph_end

    def _kept_until(self, at: int) -> int:
        """End of what is left alone from this line on; -1 when the line is prose."""
        text, start = self.text, self.line_start
        while start < at and text[start] in " \t>":
            start += 1
        if text[start : start + 1] == "|":
            return self.line_end(at)
        indent = _columns(text[self.line_start : start]) if start > self.line_start else 0
        if indent >= _CODE_INDENT and self._is_indented_code(indent):
            self._code_line = self.line_start
            return self.line_end(at)
        return self._table_end(at)

    def _table_end(self, at: int) -> int:
        """End of the table without outer pipes that holds this place; -1 when there is none."""
        if self._tables is None:
            starts: list[int] = []
            ends: list[int] = []
            if "-|" in self.text or "- |" in self.text:
                for row in _DELIMITER_ROW.finditer(self.text):
                    starts.append(self.text.rfind("\n", ends[-1] if ends else 0, row.start()) + 1)
                    blank = _BLANK.search(self.text, row.end())
                    ends.append(blank.start() if blank else len(self.text))
            self._tables = starts, ends
        number = bisect_right(self._tables[0], at) - 1
        return self._tables[1][number] if number >= 0 and at < self._tables[1][number] else -1

    def _is_indented_code(self, indent: int) -> bool:
        """Whether the present line, indented so far, is code: below a blank line, and too deep for a list item."""
        text, start, blank = self.text, self.line_start, False
        for _ in range(_MAX_LINES_BACK):
            if start == 0:
                return blank or indent >= _CODE_INDENT
            above = text.rfind("\n", 0, start - 1) + 1
            line = text[above : min(start - 1, above + 200)]
            start = above
            if above == self._code_line:
                return True
            if not line.strip():
                blank = True
                continue
            if not blank:
                if _columns(line) < _CODE_INDENT:
                    return False
                continue
            item = _ITEM.match(line)
            if item and _columns(line) < indent:
                return indent >= _columns(item[1]) + len(item[2].expandtabs(4).rstrip(" ")) + 1 + _CODE_INDENT
            if _columns(line) < _CODE_INDENT:
                return indent >= _columns(line) + _CODE_INDENT + (2 if _columns(line) else 0)
        return True

    def _quoted_fence_end(self, at: int, marks: str) -> int:
        """The fence ends with the quote that it stands in."""
        while at < len(self.text):
            end = self.line_end(at + 1)
            line = self.text[at + 1 : end]
            if not line.lstrip(" ").startswith(">"):
                return at
            words = line.strip(" \t>")
            if words.startswith(marks) and not words.strip(marks[0]):
                return end
            at = end
        return at


def _closes(text: str, start: int, end: int, mark: str) -> bool:
    return not text[start:end].rstrip(" \t").strip(mark)


def _columns(line: str) -> int:
    """Width of the white space that the line begins with, tabs to the next multiple of 4."""
    indent = line[: len(line) - len(line.lstrip(" \t"))]
    return len(indent.expandtabs(_CODE_INDENT)) if "\t" in indent else len(indent)
