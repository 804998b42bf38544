"""Rows of tables as markdown writes them, which is how every other markup's tables reach the chunker.

One row is one line, so that it is cut whole; the row of dashes below the header says which names the columns have.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from rag_pipeline.documents.edits import ADDED, GONE

_PIPE = re.compile(r"(?<!\\)\|")


def pipe_row(cells: Sequence[str], *, indent: int = 0) -> str:
    """The cells as a row on one line; pipes in them are escaped."""
    words = (_PIPE.sub(r"\\|", " ".join(cell.split())) for cell in cells)
    return " " * indent + "| " + " | ".join(words) + " |"


def delimiter_row(columns: int, *, indent: int = 0) -> str:
    """What stands below the header of so many columns."""
    return " " * indent + "|" + " --- |" * columns


def row_words(cells: Sequence[str], *, indent: int = 0, ends_header: bool = False) -> str:
    """What an edit puts in a row's place: nothing for a row without words, and the dashes when it ends the header."""
    if not any(cell.strip() for cell in cells):
        return GONE
    row = pipe_row(cells, indent=indent)
    return f"{row}\n{ADDED}{delimiter_row(len(cells), indent=indent)}" if ends_header else row
