"""Secrets that stand in a block below their name, or before it: Terraform's `default`, CloudFormation's `Default`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from rag_pipeline.documents.redaction.literals import Value, value_at

_OPENS = re.compile(r"[\"']?[ \t]*(?:[:=][ \t]*)?(?P<brace>\{)?[ \t]*(?:[#/][^\n]*)?(?P<line>\r?\n)?")
_ATTRIBUTE = re.compile(r"[\"']?\b(?:default|defaultValue|value)[\"']?[ \t]*[:=][ \t]*", re.IGNORECASE)
_BRACES = re.compile(r"[{}]")
_BEGINS_LINE = re.compile(r"(?:\A|\n)(?P<indent> *)[\"']?\Z")
_DEEPEST: Final = 60
_LONGEST: Final = 1500
"""Characters of a block in which the value is looked for."""
_VALUE_BEFORE = re.compile(
    r"\bvalue[\"']?[ \t]*[:=][ \t]*(?P<value>[\"'](?P<quoted>[^\"'\n]{1,300})[\"']|(?P<bare>[^\s\"',{}]{1,300}))"
    r",?\s{1,40}"
    r"[\"']?name[\"']?[ \t]*[:=][ \t]*[\"']?\Z",
    re.IGNORECASE,
)

_COMPARED = re.compile(r"(?P<q>[\"'`])(?P<v>[^\"'`\n]{4,300})(?P=q)[ \t]*[!=]==?[ \t]*\Z")


def values_in_block(text: str, name_start: int, name_end: int) -> Iterator[Value]:
    """What the block that opens behind a name gives it: at most one value."""
    opens = _OPENS.match(text, name_end)
    if opens is None or not (opens["brace"] or opens["line"]):
        return
    end = _closing(text, opens.end()) if opens["brace"] else _outdent(text, name_start, opens.end())
    for attribute in _ATTRIBUTE.finditer(text, opens.end(), end):
        value = value_at(text, attribute.end())
        if value and value.end <= end:
            yield value
        return


def value_before(text: str, name_start: int) -> Value | None:
    """The value before its name: `value: …`, then `name: DB_PASSWORD`; or `"…" == password`."""
    before = text[max(0, name_start - 10) : name_start]
    if before.rstrip().endswith(("==", "!=")):
        compared = _COMPARED.search(text, max(0, name_start - 320), name_start)
        return Value(*compared.span("v"), True) if compared else None
    if "name" not in before.lower():
        return None
    found = _VALUE_BEFORE.search(text, max(0, name_start - 400), name_start)
    if found is None:
        return None
    group = "quoted" if found["quoted"] else "bare"
    return Value(*found.span(group), group == "quoted")


def _closing(text: str, start: int) -> int:
    """Where the brace that was opened is closed."""
    depth, limit = 1, min(len(text), start + _LONGEST)
    for brace in _BRACES.finditer(text, start, limit):
        depth += 1 if brace.group() == "{" else -1
        if not depth:
            return brace.start()
    return limit


def _outdent(text: str, name_start: int, start: int) -> int:
    """Where a line stands no further in than the name's."""
    begins = _BEGINS_LINE.search(text, max(0, name_start - _DEEPEST), name_start)
    if begins is None:
        return start  # the name does not begin its line
    indent = len(begins["indent"])
    at, limit = start, min(len(text), start + _LONGEST)
    while at < limit:
        end = text.find("\n", at, limit)
        end = limit if end < 0 else end
        content = text[at:end]
        if content.strip() and len(content) - len(content.lstrip(" ")) <= indent:
            return at
        at = end + 1
    return limit
