"""Tables of AsciiDoc as rows on lines of their own, whatever lines their cells stand on."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final, NamedTuple

_MAX_COLUMNS: Final = 200
_MAX_SPAN: Final = 200
_MAX_CELLS: Final = 200_000
_MAX_REPEATED_CHARS: Final = 200
"""A longer cell that spans rows stands in the first of them alone."""
_ATTRIBUTE = re.compile(r"(?P<name>[\w-]+)[ \t]*=[ \t]*(?:\"(?P<quoted>[^\"]*)\"|(?P<bare>[^,\]\"]*))")
_COLUMN = re.compile(r"\s*(?:(?P<times>\d{1,3})\*)?[^,;]*")
_SPEC = r"(?:(?P<columns>\d{1,3})?(?:\.(?P<rows>\d{1,3}))?(?P<sign>[+*]))?(?:[<^>])?(?:\.[<^>])?[adehlmsv]?"
_NESTED = re.compile(r"^[ \t]*(?:!={3,}|-{4,}|={4,}|\.{4,}|\*{4,}|\+)[ \t]*$", re.MULTILINE)
_FORMATS: Final = {",": "csv", ":": "dsv"}


class Row(NamedTuple):
    """A row's cells, and the number of the line on which the first of them begins."""

    line: int
    cells: list[str]


class Rows(NamedTuple):
    """The rows of a table, and how many of them are its header."""

    rows: list[Row]
    header: int


class _Cell(NamedTuple):
    line: int
    text: str
    columns: int = 1
    rows: int = 1
    times: int = 1


def read_table(attributes: str, mark: str, lines: Sequence[str]) -> Rows | None:
    """The rows between the marks (`|===`, `,===`, `:===`) that these lines stand between; None when there are none.

    `attributes` is what stood in brackets above the table.
    """
    named = {found["name"]: found["quoted"] or found["bare"] or "" for found in _ATTRIBUTE.finditer(attributes)}
    form = named.get("format", "").strip() or _FORMATS.get(mark[0], "psv")
    separator = named.get("separator", "")
    numbers = [number for number, line in enumerate(lines) if line.strip()]
    if not numbers:
        return None
    if form in ("csv", "tsv"):
        try:
            rows = list(_csv_rows(lines, separator or ("\t" if form == "tsv" else ",")))
        except (csv.Error, ValueError, TypeError):
            return None
    else:
        separator = separator or {"!": "!", ":": ":"}.get(mark[0], ":" if form == "dsv" else "|")
        cells = list(_cells(lines, separator, is_piped=form != "dsv"))
        columns = _columns(named.get("cols", "")) or sum(
            cell.columns * cell.times for cell in cells if cell.line == numbers[0]
        )
        if not 0 < columns <= _MAX_COLUMNS or sum(cell.times for cell in cells) > _MAX_CELLS:
            return None
        rows = _arranged(cells, columns)
    if any(len(row.cells) > _MAX_COLUMNS for row in rows):
        return None
    options = attributes.replace("noheader", "")
    # Without a word about it, the first row is a header where it stands directly below the mark, a blank line below it.
    implied = numbers[0] == 0 and len(lines) > 1 and not lines[1].strip() and len(numbers) > 1
    implied = implied and len(rows) > 1 and rows[1].line > 0 and "noheader" not in attributes
    return Rows(rows, int(implied or re.search(r"%header|\b(?:options|opts)[^\]]*\bheader\b", options) is not None))


def _columns(cols: str) -> int:
    if not cols.strip():
        return 0
    return sum(
        int(column["times"] or 1) for column in (_COLUMN.match(part) for part in re.split("[,;]", cols)) if column
    )


def _csv_rows(lines: Sequence[str], separator: str) -> Iterator[Row]:
    reader = csv.reader(
        (line + "\n" for line in lines), delimiter=separator.replace("\\t", "\t"), skipinitialspace=True
    )
    at = 0
    for record in reader:
        if any(cell.strip() for cell in record):
            yield Row(at, record)
        at = reader.line_num


def _cells(lines: Sequence[str], separator: str, *, is_piped: bool) -> Iterator[_Cell]:
    """The cells in order: a mark begins each (`|`), or parts them (`:`)."""
    if not is_piped:
        for number, line in enumerate(lines):
            if line.strip():
                parts = re.split(rf"(?<!\\){re.escape(separator)}", line)
                yield from (_Cell(number, part.replace("\\" + separator, separator)) for part in parts)
        return
    text = "\n".join(lines)
    marks = list(
        re.finditer(rf"(?<!\\)(?:(?<=\s)|(?<=\A)|(?={re.escape(separator)})){_SPEC}{re.escape(separator)}", text)
    )
    at = counted = 0
    for number, mark in enumerate(marks):
        end = marks[number + 1].start() if number + 1 < len(marks) else len(text)
        at += text.count("\n", counted, mark.start())
        counted = mark.start()
        words = _NESTED.sub("", text[mark.end() : end]).replace("\\" + separator, separator)
        columns, rows = (min(int(mark[name] or 1), _MAX_SPAN) for name in ("columns", "rows"))
        is_repeated = mark["sign"] == "*"
        yield _Cell(at, words, 1 if is_repeated else columns, rows, columns if is_repeated else 1)


def _arranged(cells: Sequence[_Cell], columns: int) -> list[Row]:
    """The cells in rows of so many columns; a cell that spans rows stands in each of them."""
    rows: list[Row] = []
    hanging: dict[int, tuple[str, int]] = {}
    row: dict[int, str] = {}
    line = -1
    for cell in chain.from_iterable([cell] * cell.times for cell in cells):
        for column in range(columns):  # what hangs over from the row above
            if column not in row and column in hanging:
                row[column] = hanging[column][0]
        free = next((column for column in range(columns) if column not in row), columns)
        if free == columns:
            continue
        line = cell.line if line < 0 else line
        for column in range(free, min(columns, free + cell.columns)):
            row[column] = cell.text if column == free else ""
            if cell.rows > 1:
                hanging[column] = (row[column] if len(row[column]) <= _MAX_REPEATED_CHARS else "", cell.rows)
        if len(row) + sum(column not in row for column in hanging) >= columns:
            rows.append(Row(line, [row.get(column, hanging.get(column, ("", 0))[0]) for column in range(columns)]))
            hanging = {column: (text, left - 1) for column, (text, left) in hanging.items() if left > 1}
            row, line = {}, -1
    if row and line >= 0:
        rows.append(Row(line, [row.get(column, "") for column in range(columns)]))
    return rows
