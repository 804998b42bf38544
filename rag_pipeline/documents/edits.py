"""Edits of a text that keep count of its lines: what is cut from one place changes the text only there.

Cleaning marks what it takes out; this module takes it out, drops the lines that are left without words, and says which
line of the source each line that stays came from.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

GONE: Final = "\0"
"""What stands where something was taken out; decoded text holds no control characters."""
BREAK: Final = "\x01"
"""As `GONE`, between two words that must not run into one."""
ADDED: Final = "\x02"
"""What begins a line that the source does not have; it counts to the source's line above."""

Edit: TypeAlias = tuple[int, int, str]
"""Start, end and what replaces `text[start:end]`: words, marks, or both; edits inside another one do not count."""

_MARKS = re.compile("[\0\x01\x02]")
_NO_WORDS = re.compile(r"(?:[^\w`\n]|&(?:nbsp|emsp|ensp|bull|middot);)*+$")
_BLANK_LINES = re.compile(r"(?:[ \t]*\n)*")
_AROUND_BREAK = re.compile(r"[ \t\0]*\x01[ \t\0\x01]*")
_AT_START = re.compile(r"^([ \t]*)\0[\0 \t]*")
_AT_END = re.compile(r"[ \t\0]*\0$")
_BETWEEN = re.compile(r"(?<= )\0[\0 ]*|\0+")


def edited(text: str, edits: list[Edit], *, first_line: int = 1) -> tuple[str, Sequence[int] | None]:
    """The text with these edits, and for each of its lines the 1-based line of the source it came from.

    Lines that an edit left without a word go; of the blank lines around them one stays. The lines are None when they
    are those of the source. `first_line` is the source line that the text begins on.
    """
    marked = _marked(text, edits)
    if GONE in marked or BREAK in marked or ADDED in marked:
        writer = _Writer(text=marked, line=first_line)
        writer.write()
        if writer.moved:
            return "".join(writer.pieces), writer.source_lines
        marked = "".join(writer.pieces)
    return marked, None if first_line == 1 else range(first_line, first_line + marked.count("\n") + 1)


def _marked(text: str, edits: list[Edit]) -> str:
    """The text after the edits; newlines that were cut are put back, each on a line that is marked."""
    if not edits:
        return text
    pieces: list[str] = []
    at = 0
    for start, end, words in sorted(edits):
        if start < at:
            continue
        pieces += (text[at:start], words)
        lost = text.count("\n", start, end) - words.count("\n") + words.count(ADDED) if end - start > 1 else 0
        if lost > 0:
            pieces.append(f"\n{GONE}" * lost)
        at = end
    pieces.append(text[at:])
    return "".join(pieces)


@dataclass(slots=True, kw_only=True)
class _Writer:
    """Goes from one marked line to the next; what lies between them is taken over as it is."""

    text: str
    line: int
    """Source line of what comes next."""
    pieces: list[str] = field(default_factory=list)
    source_lines: list[int] = field(default_factory=list)
    moved: bool = False
    """Whether lines were dropped or added, so that they are no longer those of the source."""
    ends_dropped: bool = False
    """Whether nothing but blank lines came after the last line that was dropped."""

    def write(self) -> None:
        """Take the whole text."""
        at, size = 0, len(self.text)
        while at <= size:
            mark = _MARKS.search(self.text, at)
            if mark is None:
                self._keep(self.text[at:])
                break
            start = self.text.rfind("\n", at, mark.start()) + 1 or at
            end = self.text.find("\n", mark.start())
            end = size if end < 0 else end
            if start > at:
                self._keep(self.text[at : start - 1])
            at = self._take_line(start, end)
        if self.ends_dropped:
            self._end()

    def _take_line(self, start: int, end: int) -> int:
        """Keep or drop a marked line; where the next one begins."""
        line = self.text[start:end]
        if line.startswith(ADDED):
            self.moved = True
            self.line -= 1
            self._keep(tidied(line[1:]))
            return end + 1
        if not _NO_WORDS.match(line):
            self._keep(tidied(line))
            return end + 1
        self.moved = self.ends_dropped = True
        self.line += 1
        if self.pieces and not self._ends_blank():
            return end + 1
        blank = _BLANK_LINES.match(self.text, end + 1)
        following = blank.end() if blank else end + 1
        self.line += self.text.count("\n", end + 1, following)
        return max(following, end + 1)

    def _keep(self, lines: str) -> None:
        """Take over these lines; their last newline is not among them."""
        if self.pieces:
            self.pieces.append("\n")
        if self.ends_dropped and lines.strip():
            self.ends_dropped = False
        count = lines.count("\n") + 1
        self.pieces.append(lines)
        self.source_lines.extend(range(self.line, self.line + count))
        self.line += count

    def _ends_blank(self) -> bool:
        """Whether the last line kept is blank."""
        last = self.pieces[-1]
        return not last[last.rfind("\n") + 1 :].strip(" \t")

    def _end(self) -> None:
        """The blank lines above the end go with what stood there; the text ends with one newline."""
        kept = "".join(self.pieces).rstrip(" \t\n")
        last = self.source_lines[-1] if self.source_lines else self.line - 1
        self.pieces = [kept, "\n"] if kept else []
        del self.source_lines[kept.count("\n") + 1 if kept else 0 :]
        self.source_lines.append(last)


def tidied(line: str) -> str:
    """A line without its marks, and without the spaces that stood around what is gone."""
    if BREAK in line:
        head = line[: len(line) - len(line.lstrip(" \t\0\x01"))].translate(_WITHOUT_MARKS)
        line = head + _AROUND_BREAK.sub(" ", line.lstrip(" \t\0\x01")).rstrip(" ")
    if GONE in line:
        line = _BETWEEN.sub("", _AT_END.sub("", _AT_START.sub(r"\1", line)))
    return line


_WITHOUT_MARKS = {ord(GONE): None, ord(BREAK): None}
