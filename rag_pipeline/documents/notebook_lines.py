"""Where the cells of a notebook stand in its file: the lines of their JSON, which its parser does not tell."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

_TOKEN: Final = re.compile(r"\"(?:[^\"\\]++|\\.)*+\"(?P<key>\s*:)?|[{}\[\]]", re.DOTALL)
_SOURCES: Final = frozenset(['"source"', '"input"'])


@dataclass(slots=True)
class CellPlace:
    """Lines of the file, from 1."""

    line: int
    """Where the cell begins."""
    sources: list[int] = field(default_factory=list)
    """Where each string of its source stands."""

    def lines_of(self, strings: Sequence[str]) -> list[int]:
        """For each line of the cell's source, which is these strings together, its line in the file."""
        if len(strings) != len(self.sources):
            return [self.line]
        found: list[int] = []
        is_open = False  # the last line goes on in the next string
        for string, line in zip(strings, self.sources, strict=True):
            begun = string.count("\n") + (0 if string.endswith("\n") else 1)
            found += [line] * (begun - is_open)
            is_open = not string.endswith("\n")
        return found or [self.line]


@dataclass(slots=True)
class _Open:
    """An object or array that is open, and the key that it stands under."""

    mark: str
    key: str
    is_cells: bool = False
    cell: CellPlace | None = None


def cell_places(text: str) -> list[CellPlace]:
    """The places of a notebook's cells in order, as far as its JSON is sound."""
    found: dict[int, list[CellPlace]] = {1: [], 3: []}
    opened: list[_Open] = []
    key = ""
    line, counted = 1, 0
    for token in _TOKEN.finditer(text):
        mark = token[0][0]
        if mark in "}]":
            if opened:
                opened.pop()
            continue
        if token["key"]:
            key = token[0][: -len(token["key"])]
            continue
        above = opened[-1] if opened else None
        if mark == '"':
            if above and above.cell and (above.mark == "[" or key in _SOURCES):
                line += text.count("\n", counted, token.start())
                counted = token.start()
                above.cell.sources.append(line)
            key = ""
            continue
        new = _Open(mark, key)
        if mark == "[":
            # As of the fourth format; in the third one, cells stand in worksheets.
            new.is_cells = key == '"cells"' and (
                len(opened) == 1 or (len(opened) == 3 and opened[1].key == '"worksheets"')
            )
            new.cell = above.cell if above and above.cell and above.mark == "{" and key in _SOURCES else None
        elif above and above.is_cells:
            line += text.count("\n", counted, token.start())
            counted = token.start()
            new.cell = CellPlace(line)
            found[len(opened) - 1].append(new.cell)
        opened.append(new)
        key = ""
    return found[1] or found[3]
