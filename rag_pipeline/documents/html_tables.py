"""Tables of HTML as rows on lines of their own, the names of the columns above a row of dashes.

A table that only lays out a page (others inside it, headings, long texts) is read like any other part of the page.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Final

from bs4.element import PageElement, Tag

from rag_pipeline.documents.pipe_rows import delimiter_row, pipe_row

_LAYOUT: Final = frozenset(["table", "h1", "h2", "h3", "h4", "h5", "h6"])
_MAX_CELL_CHARS: Final = 2000
_MAX_DEPTH: Final = 8
_MAX_SPAN: Final = 200
_MAX_REPEATED_CHARS: Final = 200
"""A longer cell that spans rows stands in the first of them alone."""
_MAX_COLUMNS: Final = 200


@dataclass(slots=True)
class _Row:
    line: int
    in_head: bool
    cells: list[tuple[Tag, str]] = field(default_factory=list)

    @property
    def names_columns(self) -> bool:
        """Whether the row belongs to the header: nothing but names stands in it."""
        return self.in_head or all(tag.name == "th" for tag, _ in self.cells)


@dataclass(slots=True)
class Table:
    """The rows of a table as far as they have been read."""

    rows: list[_Row] = field(default_factory=list)
    in_head: bool = False

    def open_row(self, line: int) -> None:
        """Begin a row on this line of the source."""
        self.rows.append(_Row(line, self.in_head))

    def add(self, cell: Tag, words: str, *, line: int) -> None:
        """Add a cell to the row that is open."""
        if not self.rows:
            self.open_row(line)
        self.rows[-1].cells.append((cell, " ".join(words.split())))

    def lines(self) -> Iterator[tuple[int, str]]:
        """The lines that show the table, and the lines of the source that they come from."""
        rows = [row for row in self.rows if any(words for _, words in row.cells)]
        if len(rows) == 1:
            yield rows[0].line, " | ".join(words for _, words in rows[0].cells if words)
            return
        header = sum(1 for _ in takewhile(lambda row: row.names_columns, rows))
        spread = list(_spread(rows))
        width = max(map(len, spread), default=0)
        for number, (row, cells) in enumerate(zip(rows, spread, strict=True), start=1):
            yield row.line, pipe_row(cells + [""] * (width - len(cells)))
            if number == header < len(rows):
                yield row.line, delimiter_row(width)


def is_data(table: Tag) -> bool:
    """Whether the table holds data, not parts of a page; looks at each of its elements at most once."""
    size = 0
    for element in inside(table):
        if not isinstance(element, Tag):
            size += len(str(element))
            if size > _MAX_CELL_CHARS:
                return False
        elif element.name in ("td", "th", "tr"):
            size = 0
        elif element.name in _LAYOUT or (element.name == "pre" and _has_lines(element)):
            return False
    return True


def inside(tag: Tag, *, but: frozenset[str] = frozenset()) -> Iterator[PageElement]:
    """All elements in a tag, in order, without what is in those named `but`; with a stack, for deep nesting."""
    stack = [iter(tag.contents)]
    while stack:
        element = next(stack[-1], None)
        if element is None:
            stack.pop()
            continue
        yield element
        if isinstance(element, Tag) and element.name not in but:
            stack.append(iter(element.contents))


def first_words(tag: Tag) -> str:
    """The words that a tag begins with, a few tags deep."""
    element: PageElement | None = tag
    for _ in range(_MAX_DEPTH):
        if not isinstance(element, Tag):
            break
        element = element.contents[0] if element.contents else None
    return "" if element is None or isinstance(element, Tag) else " ".join(str(element).split())


def _has_lines(pre: Tag) -> bool:
    return any("\n" in str(element).strip() for element in inside(pre) if not isinstance(element, Tag))


def _spread(rows: list[_Row]) -> Iterator[list[str]]:
    """The cells of each row, one that spans several columns or rows in its place in each."""
    hanging: dict[int, tuple[str, int]] = {}
    for row in rows:
        cells: list[str] = []
        following: dict[int, tuple[str, int]] = {}
        for tag, words in row.cells:
            _hang(cells, hanging, following)
            for number in range(min(_span(tag, "colspan"), max(1, _MAX_COLUMNS - len(cells)))):
                text = "" if number else words
                if (deep := _span(tag, "rowspan")) > 1:
                    following[len(cells)] = (text if len(text) <= _MAX_REPEATED_CHARS else "", deep - 1)
                cells.append(text)
        _hang(cells, hanging, following)
        yield cells
        hanging = following


def _hang(cells: list[str], hanging: dict[int, tuple[str, int]], following: dict[int, tuple[str, int]]) -> None:
    """Put what spans down from the rows above in the next places of a row."""
    while (found := hanging.get(len(cells))) is not None:
        words, left = found
        if left > 1:
            following[len(cells)] = (words, left - 1)
        cells.append(words)


def _span(tag: Tag, name: str) -> int:
    value = str(tag.get(name, "1")).strip()
    return min(_MAX_SPAN, max(1, int(value))) if value.isascii() and value.isdecimal() and len(value) < 6 else 1
