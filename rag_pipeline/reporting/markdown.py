"""The report as Markdown tables, for Dagster's UI, which shows no HTML; charts are left to the picture."""

from __future__ import annotations

import re

from rag_pipeline.reporting.sections import SECTIONS, Block, Cell, Chart, Table, shown_cell
from rag_pipeline.reporting.summary import Report, summarise

_MARKS = re.compile(r"([\\`*_{}\[\]<>|~#!&])")
_LONGEST = 160


def markdown(report: Report) -> str:
    """The sections without charts; no text from data can be a mark of Markdown, HTML or a link."""
    summary = summarise(report)
    parts = []
    for _, title, body in SECTIONS:
        parts += [f"### {title}", *(text for block in body(report, summary) if (text := _markdown(block)))]
    return "\n\n".join(parts)


def _markdown(block: Block) -> str:
    match block:
        case Chart():
            return ""
        case Table():
            return _table(block)
        case _:
            return _plain(block)


def _table(table: Table) -> str:
    if not table.rows:
        return ""
    sides = ["--:" if column in table.numeric else "---" for column in range(len(table.headers))]
    rows = [[_plain(header) for header in table.headers], sides]
    rows += [[_cell(cell) for cell in row] for row in table.shown]
    lines = [f"| {' | '.join(row)} |" for row in rows]
    hidden = len(table.rows) - len(table.shown)
    return "\n".join(
        [f"*{_plain(table.caption)}*", "", *lines, *(["", f"{hidden:,} more are not shown."] if hidden else [])]
    )


def _cell(cell: Cell) -> str:
    text = shown_cell(cell)
    return _plain(text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…")


def _plain(text: str) -> str:
    # An address would become a link by itself, a colon that is escaped keeps it from that.
    return _MARKS.sub(r"\\\1", " ".join(text.split())).replace("://", ":\\//").replace("www.", "www\\.")
