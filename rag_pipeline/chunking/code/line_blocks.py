"""Blocks of code without its syntax, by lines and indentation: definitions, and groups between blank lines.

Comments and decorators directly above a definition stay with it; closing brackets stay with what they close.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from rag_pipeline.chunking.blocks import Block, Outline, indentation
from rag_pipeline.chunking.code.definitions import DefinitionFinder, other_definition, python_definition

_LEADS = ("@", "#", "//", "/*", "*", "--", ";;", "%", "<!--", "[", "template")
"""What a comment, a decorator or an attribute begins with."""
_CLOSERS = frozenset(")]}{")
_CLOSING_WORDS = frozenset(["end", "end;", "fi", "done", "esac", "endif", "END"])
_TRIPLE_QUOTE = re.compile(r"(?<!['\"])(?:\"\"\"|''')")


def line_blocks(text: str, *, python: bool) -> list[Block]:
    """Blocks of source code; `python` where its strings and definitions are Python's."""
    scanner = _Scanner(outline=Outline(), definition=python_definition if python else other_definition, python=python)
    lines = text.split("\n")
    lines.append("")
    start = 0
    for i in range(len(lines) - 1):
        line = lines[i]
        scanner.take(line, start, lines[i + 1])
        start += len(line) + 1
    return scanner.outline.blocks(length=len(text))


@dataclass(slots=True, kw_only=True)
class _Scanner:
    """What is known of the lines before the present one."""

    outline: Outline
    definition: DefinitionFinder
    python: bool
    in_block: bool = False
    quote: str = ""
    """The triple quote that closes the string the present line is in."""
    quote_indent: int = 0
    lead: int = -1
    """Start of the comments and decorators directly above the present line; -1 when there are none."""
    lead_indent: int = 0

    def take(self, line: str, start: int, following: str) -> None:
        stripped = line.lstrip()
        if not stripped:
            self.in_block, self.lead = False, -1
            return
        indent = indentation(line, stripped)
        if self.quote:
            if not self.in_block:
                # Text at the left margin of a nested string is no less nested.
                self._open(start, max(indent, self.quote_indent), weaker=2)
        elif (stripped[0] in _CLOSERS or stripped.rstrip() in _CLOSING_WORDS) and not self.outline.is_empty:
            self.in_block = True
        else:
            self._take_code(stripped, start, indent, following)
        if self.python and ('"""' in stripped or "'''" in stripped):
            self._take_quotes(stripped, indent)

    def _take_code(self, stripped: str, start: int, indent: int, following: str) -> None:
        is_lead = stripped.startswith(_LEADS)
        name = None if is_lead else self.definition(stripped, following)
        if name is not None:
            start = self.lead if self.lead >= 0 else start
            self.outline.enter(indent, name)
            self._open(start, indent, weaker=0, opens_section=True)
            self.lead = -1
            return
        if is_lead and self.lead < 0:
            self.lead, self.lead_indent = start, indent
        elif not is_lead and indent <= self.lead_indent:
            self.lead = -1
        ended = indent <= self.outline.depth and self.outline.leave(indent)
        if ended or not self.in_block:
            self._open(start, indent, weaker=1, opens_section=ended)

    def _open(self, start: int, indent: int, *, weaker: int, opens_section: bool = False) -> None:
        self.outline.open_block(start, level=3 * indent + weaker, kind="verbatim", opens_section=opens_section)
        self.in_block = True

    def _take_quotes(self, line: str, indent: int) -> None:
        for match in _TRIPLE_QUOTE.finditer(line):
            if not self.quote:
                self.quote, self.quote_indent = match[0], indent
            elif self.quote == match[0]:
                self.quote = ""
