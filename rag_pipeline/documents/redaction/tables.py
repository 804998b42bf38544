"""Tables of Markdown, of which the head of a column says that its cells are passwords or tokens."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rag_pipeline.documents.redaction.names import Sensitivity, sensitivity
from rag_pipeline.documents.redaction.plausible import is_plausible
from rag_pipeline.documents.redaction.spans import Finding

_RULE = re.compile(r"\n[ \t]*+\|?(?:[ \t]*+:?-++:?[ \t]*+\|)+(?:[ \t]*+:?-++:?)?[ \t]*+(?=\n)")
_WORDS = re.compile(r"[ \t]*[`*_\"']{0,3}([^`\"'\s|](?:[^|\n]*[^`*_\"'\s|])?)")
_MAX_HEAD_CHARS, _MAX_CELL_CHARS = 2000, 300


def find_in_tables(text: str) -> Iterator[Finding]:
    """Cells below a head such as `Password`; the rest of the row is judged by what it says itself."""
    if "-|" not in text and "- |" not in text and "|-" not in text:
        return
    done = 0
    for rule in _RULE.finditer(text):
        if rule.start() < done:
            continue  # a row of the table before
        head_start = text.rfind("\n", max(0, rule.start() - _MAX_HEAD_CHARS), rule.start()) + 1
        columns = _columns(text[head_start : rule.start()])
        at = rule.end() + 1
        while columns and at < len(text):
            end = text.find("\n", at)
            end = len(text) if end < 0 else end
            if text.find("|", at, end) < 0:
                break
            yield from _in_row(text, at, end, columns)
            at = done = end + 1


def _columns(head: str) -> dict[int, tuple[str, Sensitivity]]:
    """Of the columns that hold secrets, the numbers, and the names with what they promise."""
    names = [cell.strip(" \t*_`") for cell in head.strip().strip("|").split("|")]
    promised = {number: (name, sensitivity(name)) for number, name in enumerate(names)}
    return {number: (name, kind) for number, (name, kind) in promised.items() if kind in ("password", "token")}


def _in_row(text: str, start: int, end: int, columns: dict[int, tuple[str, Sensitivity]]) -> Iterator[Finding]:
    row = text[start:end]
    start += len(row) - len(row.lstrip(" \t"))
    start += text.startswith("|", start)
    for number, cell in enumerate(text[start:end].split("|")):
        if number in columns and len(cell) <= _MAX_CELL_CHARS and (found := _WORDS.match(cell)):
            (name, kind), value = columns[number], found.group(1)
            if " " not in value and is_plausible(name, kind, value, quoted=True, loose=False):
                yield Finding(kind=kind, start=start + found.start(1), end=start + found.end(1), rank=6)
        start += len(cell) + 1
