"""Tables in prose: what their columns are called, and where their rows begin.

Pipe tables (markdown, and what cleaning writes for AsciiDoc, HTML, list tables and CSV tables), and the grid and simple
tables of reStructuredText. A table without a header gets no column names: none are made up.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from rag_pipeline.chunking.blocks import Block
from rag_pipeline.chunking.headings import heading_words
from rag_pipeline.drawn_tables import read_drawn_table
from rag_pipeline.model import Markup

_MAX_HEADER_CHARS: Final = 500
_DELIMITER = re.compile(
    r"^[ \t>]*+\|?[ \t]*+:?-(?=[^\n]*\|)-*+:?[ \t]*+(?:\|[ \t]*+:?-++:?[ \t]*+)*+\|?[ \t]*$", re.MULTILINE
)
_DASH_AND_PIPE = re.compile(r"-:?[ \t]*+\|")
_MAX_MARGIN_CHARS: Final = 64
_PREFIX = " \t>"
_CELL_END = re.compile(r"(?<!\\)\|")
_CODE_INDENT: Final = 4


class Table(NamedTuple):
    """A table inside one block."""

    start: int
    """Where its header begins, or its first row."""
    rows: Sequence[int]
    """Where its rows begin, the header not among them."""
    header: str
    """The names of its columns, ` | ` between them; empty when it has none."""


class _Line(NamedTuple):
    start: int
    text: str


def tables_of(text: str, blocks: Sequence[Block], *, markup: Markup) -> dict[int, Table]:
    """The tables that these blocks of a text hold, by the number of their block."""
    found: dict[int, Table] = {}
    for number, block in enumerate(blocks):
        if block.kind == "verbatim" and (table := _whole_table(text, block)):
            found[number] = table
    # Tables without outer pipes, and those in quotes, look like prose.
    if markup == "markdown":
        starts = [block.start for block in blocks]
        for delimiter in _delimiters(text):
            number = bisect_right(starts, delimiter.start()) - 1
            if number not in found and blocks[number].kind == "prose":
                table = _pipe_table(text, blocks[number], delimiter)
                if table:
                    found[number] = table
    return found


def _delimiters(text: str) -> Iterator[re.Match[str]]:
    """All rows of dashes; most lines hold no dash before a pipe."""
    end = -1
    for found in _DASH_AND_PIPE.finditer(text):
        if found.start() < end:
            continue
        start = text.rfind("\n", 0, found.start()) + 1
        end = text.find("\n", found.end())
        end = len(text) if end < 0 else end
        if delimiter := _DELIMITER.match(text, start):
            yield delimiter


def _whole_table(text: str, block: Block) -> Table | None:
    """The table that a block is, by what it begins with."""
    first = text[block.start : block.start + _MAX_MARGIN_CHARS].lstrip()[:1]
    if first == "|":
        delimiter = _DELIMITER.search(text, block.start, block.end)
        return _pipe_table(text, block, delimiter) if delimiter else None
    return _drawn_table(list(_lines(text, block.start, block.end))) if first in ("+", "=") else None


def _pipe_table(text: str, block: Block, delimiter: re.Match[str]) -> Table | None:
    """The table whose header stands above this row of dashes; None when that is only code that looks so."""
    above = list(_lines(text, block.start, delimiter.start()))
    piped = bool(above) and all(line.text.lstrip(_PREFIX).startswith("|") for line in above)
    if not piped:
        # Without outer pipes, the header is the one line above.
        above = above[-1:]
        if block.kind != "prose" or not above or "|" not in above[0].text:
            return None
        if len(above[0].text) - len(above[0].text.lstrip()) >= _CODE_INDENT:
            return None
    rows = [line.start for line in _lines(text, delimiter.end() + 1, block.end) if line.text.strip(_PREFIX)]
    header = _named(zip(*_even([_cells(line.text) for line in above]), strict=True))
    return Table(above[0].start, rows, header) if rows else None


def _cells(line: str) -> list[str]:
    inside = line.lstrip(_PREFIX).rstrip().removeprefix("|").removesuffix("|")
    return [cell.replace("\\|", "|") for cell in _CELL_END.split(inside)]


def _even(rows: Sequence[list[str]]) -> list[list[str]]:
    width = max(map(len, rows))
    return [row + [""] * (width - len(row)) for row in rows]


def _named(columns: Iterator[tuple[str, ...]]) -> str:
    """The names of columns, each of one or more lines."""
    names = [heading_words(" ".join(dict.fromkeys(filter(None, map(str.strip, column))))) for column in columns]
    header = " | ".join(names).strip(" |")
    if len(header) > _MAX_HEADER_CHARS:
        header = header[: header.rfind(" | ", 0, _MAX_HEADER_CHARS)][:_MAX_HEADER_CHARS] + " | …"
    return header


def _drawn_table(lines: Sequence[_Line]) -> Table | None:
    """A grid table, or a simple one."""
    drawn = read_drawn_table([line.text for line in lines])
    if drawn is None or len(drawn.rows) == drawn.header:
        return None
    header = [row.cells for row in drawn.rows[: drawn.header]]
    rows = [lines[row.line].start for row in drawn.rows[drawn.header :]]
    return Table(lines[0].start, rows, _named(zip(*header, strict=True)) if header else "")


def _lines(text: str, start: int, end: int) -> Iterator[_Line]:
    while start < end:
        stop = text.find("\n", start, end)
        stop = end if stop < 0 else stop
        yield _Line(start, text[start:stop])
        start = stop + 1
