"""Tables that are drawn with characters, as reStructuredText has them: grid tables and simple tables.

Documents write them as rows, and chunks of plain text are cut between their rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

GRID_RULE: Final = re.compile(r"[ \t]*+\+(?:[-=]++\+)++[ \t]*$")
SIMPLE_RULE: Final = re.compile(r"[ \t]*+={2,}(?:[ \t]++={2,})++[ \t]*$")
_SPANS = re.compile(r"[ \t]*+-++(?:[ \t]++-++)*+[ \t]*$")
_RUN = re.compile("=+")
_MAX_COLUMNS: Final = 200


class DrawnRow(NamedTuple):
    """A row's cells, their lines parted by newlines, and the number of its first line."""

    line: int
    cells: list[str]


class DrawnTable(NamedTuple):
    """The rows of a table, and how many of them are its header."""

    rows: list[DrawnRow]
    header: int


def read_drawn_table(lines: Sequence[str]) -> DrawnTable | None:
    """The table that these lines draw; None when they draw none."""
    first = lines[0] if lines else ""
    if GRID_RULE.match(first):
        return _grid_table(lines)
    return _simple_table(lines) if SIMPLE_RULE.match(first) else None


def _grid_table(lines: Sequence[str]) -> DrawnTable | None:
    rules = [number for number, line in enumerate(lines) if GRID_RULE.match(line)]
    edges = sorted({place for number in rules for place, mark in enumerate(lines[number]) if mark == "+"})
    if len(edges) > _MAX_COLUMNS:
        return None
    rows = [
        DrawnRow(above + 1, _joined([_grid_cells(line, edges) for line in lines[above + 1 : below]], len(edges) - 1))
        for above, below in pairwise(rules)
        if below > above + 1
    ]
    ends = next((number for number in rules[1:] if "=" in lines[number]), 0)
    return DrawnTable(rows, sum(row.line < ends for row in rows)) if rows else None


def _grid_cells(line: str, edges: Sequence[int]) -> list[str]:
    """The cells of one line; one that spans columns stands in the first of them."""
    cells: list[str] = []
    begun = 0
    for number, (start, end) in enumerate(pairwise(edges)):
        if not number or line[start : start + 1] in ("|", "+"):
            begun = number
            cells.append(line[start + 1 : end])
        else:
            cells[begun] = f"{cells[begun]}{line[start:end]}"
            cells.append("")
    return [cell if cell.strip("-+= |") else "" for cell in cells]


def _simple_table(lines: Sequence[str]) -> DrawnTable | None:
    rules = [number for number, line in enumerate(lines) if SIMPLE_RULE.match(line)]
    starts = [run.start() for run in _RUN.finditer(lines[0])]
    if len(rules) < 2 or len(starts) > _MAX_COLUMNS:
        return None
    edges = [slice(start, end) for start, end in pairwise([*starts, None])]
    body = rules[1] if len(rules) > 2 else rules[0]
    rows = list(_simple_rows(lines, rules[0] + 1, body, edges, is_header=True)) if len(rules) > 2 else []
    header = len(rows)
    rows += _simple_rows(lines, body + 1, rules[-1], edges, is_header=False)
    return DrawnTable(rows, header) if len(rows) > header else None


def _simple_rows(
    lines: Sequence[str], start: int, end: int, edges: Sequence[slice], *, is_header: bool
) -> Iterator[DrawnRow]:
    """The rows on these lines: each begins where the first column does, and a header is one."""
    begun, collected = start, list[list[str]]()
    for number in range(start, end):
        line = lines[number]
        if not line.strip() or _SPANS.match(line) or SIMPLE_RULE.match(line):
            continue
        cells = [line[edge] for edge in edges]
        if collected and cells[0].strip() and not is_header:
            yield DrawnRow(begun, _joined(collected, len(edges)))
            collected = []
        begun = begun if collected else number
        collected.append(cells)
    if collected:
        yield DrawnRow(begun, _joined(collected, len(edges)))


def _joined(lines: Sequence[Sequence[str]], columns: int) -> list[str]:
    return ["\n".join(filter(None, (line[column].strip() for line in lines))) for column in range(columns)]
