"""Tables of Markdown, of which the head of a column says that its cells are passwords or tokens."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rag_pipeline.documents.redaction.names import sensitivity
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


def _columns(head: str) -> dict[int, str]:
    """Numbers and names of the columns that hold secrets."""
    names = [cell.strip(" \t*_`") for cell in head.strip().strip("|").split("|")]
    return {number: name for number, name in enumerate(names) if sensitivity(name) in ("password", "token")}


def _in_row(text: str, start: int, end: int, columns: dict[int, str]) -> Iterator[Finding]:
    margin = text[start:end]
    start += len(margin) - len(margin.lstrip(" \t"))
    start += text.startswith("|", start)
    for number, cell in enumerate(text[start:end].split("|")):
        promised = sensitivity(columns[number]) if number in columns else None
        if promised and len(cell) <= _MAX_CELL_CHARS and (found := _WORDS.match(cell)):
            value = found.group(1)
            if " " not in value and is_plausible(columns[number], promised, value, quoted=True, loose=False):
                kind = "password" if promised == "password" else "token"
                yield Finding(kind=kind, start=start + found.start(1), end=start + found.end(1), rank=6)
        start += len(cell) + 1
