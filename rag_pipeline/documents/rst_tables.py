"""Tables of reStructuredText as rows: of lists, of CSV, and those that are drawn."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from rag_pipeline.documents.edits import ADDED, GONE, edited
from rag_pipeline.documents.pipe_rows import row_words
from rag_pipeline.documents.rst_inline import Substitutions, inline_edits
from rag_pipeline.drawn_tables import read_drawn_table

TABLES: Final = frozenset(["list-table", "csv-table", "flat-table"])
_MAX_COLUMNS: Final = 200
_OPTION = re.compile(r"[ \t]+:(?P<name>[\w-]+):(?:[ \t]+(?P<value>.*?))?[ \t]*$")
_ROW = re.compile(r"(?P<indent>[ \t]*)(?P<bullet>[*+-])[ \t]+(?P<cells>[*+-](?:[ \t].*|$))")
_CELL = re.compile(r"[ \t]*[*+-](?:[ \t]+|$)")
_STAGE_MARK = re.compile(r":(?:rspan|cspan):`\d+`[ \t]*")
_DELIMITERS: Final = {"tab": "\t", "space": " "}


class TableEdit(NamedTuple):
    """Words in the place of some lines: the first, and the one after the last, counted from the directive's."""

    first: int
    end: int
    words: str


def drawn_edits(lines: Sequence[str], *, substitutions: Substitutions) -> list[TableEdit]:
    """Edits of the lines of a grid or simple table that leave its rows; none for a single row, which is short."""
    drawn = read_drawn_table(lines)
    if drawn is None or len(drawn.rows) - drawn.header < 2:
        return []
    indent = len(lines[0]) - len(lines[0].lstrip())
    starts = [row.line for row in drawn.rows]
    edits = [TableEdit(at, at + 1, GONE) for at in range(starts[0])]
    for number, (row, end) in enumerate(zip(drawn.rows, [*starts[1:], len(lines)], strict=True), start=1):
        cells = [_words(cell, substitutions) for cell in row.cells]
        edits.append(TableEdit(row.line, end, row_words(cells, indent=indent, ends_header=number == drawn.header)))
    return edits


class _Row(NamedTuple):
    first: int
    cells: list[str]


def table_edits(
    name: str, argument: str, lines: Sequence[str], *, indent: int, substitutions: Substitutions
) -> list[TableEdit]:
    """Edits of a directive's lines that leave the table's title and its rows; none when it is no table of two rows."""
    options, body = _options(lines)
    try:
        rows = _csv_rows(lines, body, options) if name == "csv-table" else _listed_rows(lines, body)
        header = _header(options) if name == "csv-table" else None
    except (csv.Error, ValueError, TypeError, OverflowError):
        return []
    in_file = next((value for key in ("file", "url") if (value := options.get(key, ("", 0))[0])), "")
    header_rows = int(value) if (value := options.get("header-rows", ("", 0))[0]).isdecimal() else 0
    if (len(rows) + bool(header) < 2 and not in_file) or any(len(row.cells) > _MAX_COLUMNS for row in rows):
        return []
    title = argument + (f" (rows in {in_file})" if in_file else "")
    below = f"\n{ADDED}" if header else ""  # no blank line stands between the title and the options
    edits = [TableEdit(0, 1, " " * indent + title.strip() + below if title else GONE)]
    if header:
        rows, header_rows = [header, *rows], header_rows + 1
    starts = [row.first for row in rows]
    kept = {first for first, _ in rows}
    # Above the rows, other options go and blank lines stay.
    edits += [TableEdit(at, at + 1, GONE) for at in range(1, min([body, *starts])) if at not in kept]
    ends = [*starts[1:], max(starts[-1] + 1, len(lines))] if rows else []
    width = max((len(row.cells) for row in rows), default=0)
    for number, (row, end) in enumerate(zip(rows, ends, strict=True), start=1):
        cells = [_words(cell, substitutions) for cell in row.cells] + [""] * (width - len(row.cells))
        edits.append(TableEdit(row.first, end, row_words(cells, indent=indent, ends_header=number == header_rows)))
    return edits


def _options(lines: Sequence[str]) -> tuple[dict[str, tuple[str, int]], int]:
    """The options with their lines, and the line that the body begins on."""
    found: dict[str, tuple[str, int]] = {}
    name = ""
    for number in range(1, len(lines)):
        option = _OPTION.match(lines[number])
        if option:
            name = option["name"]
            found[name] = (option["value"] or "", number)
        elif name and lines[number].strip():
            value, at = found[name]
            found[name] = (f"{value} {lines[number].strip()}", at)
        else:
            return found, number
    return found, len(lines)


def _header(options: Mapping[str, tuple[str, int]]) -> _Row | None:
    value, at = options.get("header", ("", 0))
    records = [record for _, record in _records([value], options)] if value else []
    return _Row(at, records[0]) if records else None


def _csv_rows(lines: Sequence[str], body: int, options: Mapping[str, tuple[str, int]]) -> list[_Row]:
    numbers = [number for number in range(body, len(lines)) if lines[number].strip()]
    if not numbers:
        return []
    margin = min(len(lines[number]) - len(lines[number].lstrip()) for number in numbers)
    first = numbers[0]
    # Blank lines stay: they may stand inside quotes.
    records = _records((line[margin:] + "\n" for line in lines[first:]), options)
    return [_Row(first + at, record) for at, record in records if any(cell.strip() for cell in record)]


def _records(lines: Iterable[str], options: Mapping[str, tuple[str, int]]) -> Iterator[tuple[int, list[str]]]:
    """The records of these lines, and how many lines stand before each."""

    def mark(name: str) -> str:
        value = options.get(name, ("", 0))[0].strip()
        if len(value) > 1:
            value = _DELIMITERS.get(value.lower()) or chr(int(value.removeprefix("U+").removeprefix("0x"), 16))
        return value

    reader = csv.reader(
        lines,
        delimiter=mark("delim") or ",",
        quotechar=mark("quote") or '"',
        escapechar=mark("escape") or None,
        skipinitialspace="keepspace" not in options,
    )
    at = 0
    for record in reader:
        yield at, record
        at = reader.line_num


def _listed_rows(lines: Sequence[str], body: int) -> list[_Row]:
    """The rows of a list of lists; an error where the lines are none."""
    starts: list[int] = []
    margin = -1
    for number in range(body, len(lines)):
        line = lines[number]
        row = _ROW.match(line)
        if row and margin < 0:
            margin = len(row["indent"])
        if row and len(row["indent"]) == margin:
            starts.append(number)
        elif line.strip() and (margin < 0 or len(line) - len(line.lstrip()) <= margin):
            raise ValueError(line)
    return [
        _Row(first, list(_listed_cells(lines[first:end]))) for first, end in pairwise([*starts, len(lines)]) if starts
    ]


def _listed_cells(lines: Sequence[str]) -> Iterator[str]:
    row = _ROW.match(lines[0])
    within = row.start("cells") if row else 0
    cell: list[str] = []
    for number, line in enumerate(lines):
        inside = line[within:] if not number or not line[:within].strip() else line.strip()
        opens = _CELL.match(inside) if len(inside) == len(inside.lstrip()) else None
        if opens and number:
            yield "\n".join(cell)
            cell = []
        cell.append(inside[opens.end() :] if opens else inside)
    yield "\n".join(cell)


def _words(cell: str, substitutions: Substitutions) -> str:
    text = _STAGE_MARK.sub("", cell)
    if "`" not in text and not substitutions:
        return text
    return edited(text, inline_edits(text, 0, len(text), substitutions))[0]
