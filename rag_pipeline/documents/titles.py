"""Titles that texts give themselves. Each finder returns None when there is none."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from rag_pipeline.inline_markup import ATTRIBUTES, EMPHASIS, ESCAPE, LINK, ROLE, TAG, TARGET

MAX_TITLE_CHARS = 200
_MAX_SEARCH_CHARS = 200_000  # a title stands near the top
_MAX_LINE_CHARS = 1000  # nobody's heading is longer; keeps the patterns below cheap on hostile lines

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_ATX = re.compile(r" {0,3}#{1,6}(?:[ \t]+(.*))?$")
_SETEXT = re.compile(r" {0,3}(=+|-+)[ \t]*$")
_NOT_SETEXT_TEXT = re.compile(r"\s*([-*+>|#<]|\d+[.)]\s|$)")
_HTML_H1 = re.compile(r"<h1\b[^>]*>(.*?)</h1>", re.IGNORECASE)
_RST_RULE = re.compile(r"([!-/:-@\[-`{-~])\1{2,}\s*$")
_ASCIIDOC = re.compile(r"={1,6}[ \t]+(\S.*)$")


def tidy_title(title: str | None) -> str | None:
    """On one line, at most `MAX_TITLE_CHARS` long; None when nothing is left."""
    words = " ".join((title or "")[: 4 * _MAX_LINE_CHARS].split())
    if len(words) > MAX_TITLE_CHARS:
        words = words[: MAX_TITLE_CHARS - 1].rstrip() + "…"
    return words or None


def strip_markdown(line: str) -> str:
    """A heading's words without links, emphasis, code marks, tags and attributes."""
    line = ATTRIBUTES.sub("", line[:_MAX_LINE_CHARS])
    for _ in range(2):  # a badge: an image inside a link
        line = LINK.sub(r"\1", line)
    line = TAG.sub("", line)
    line = EMPHASIS.sub(r"\2", line).replace("`", "")
    return ESCAPE.sub(r"\1", line).strip()


def strip_rst(line: str) -> str:
    """A title's words without roles, literals and emphasis."""
    line = TARGET.sub(r"\1", ROLE.sub("", line[:_MAX_LINE_CHARS]))
    return ESCAPE.sub(r"\1", EMPHASIS.sub(r"\2", line.replace("`", ""))).strip()


def markdown_title(text: str) -> str | None:
    """The first ATX or setext heading, or `<h1>`, outside fenced code."""
    previous = ""
    for line in _unfenced_lines(text):
        found = None
        if atx := _ATX.match(line):
            found = re.sub(r"(^|\s)#+\s*$", "", atx[1] or "")
        elif _SETEXT.match(line) and not _NOT_SETEXT_TEXT.match(previous):
            found = previous
        elif h1 := _HTML_H1.search(line):
            found = h1[1]
        if found and (title := strip_markdown(found)):
            return title
        previous = line
    return None


def rst_title(text: str) -> str | None:
    """The first line that is underlined with punctuation at least as long as it, or nearly."""
    for line, rule in pairwise(_lines(text)):
        title = line.strip()
        if title and _RST_RULE.match(rule) and not _RST_RULE.match(line) and len(rule.rstrip()) + 2 >= len(title):
            return strip_rst(title) or None
    return None


def asciidoc_title(text: str) -> str | None:
    """The first `= Title`."""
    for line in _lines(text):
        if match := _ASCIIDOC.match(line):
            return strip_markdown(match[1]) or None
    return None


def text_title(text: str) -> str | None:
    """The first non-blank line, when it is short enough to be a title."""
    for line in _lines(text):
        if words := line.strip():
            return words if len(words) <= 100 else None
    return None


def _unfenced_lines(text: str) -> Iterator[str]:
    fence = ""
    for line in _lines(text):
        if fence:
            marks = line.strip()
            if marks.startswith(fence) and not marks.strip(fence[0]):
                fence = ""
        elif opening := _FENCE.match(line):
            fence = opening[1]
        else:
            yield line


def _lines(text: str) -> Iterator[str]:
    """The first lines, one by one: most titles are on the first of them."""
    start = 0
    stop = min(len(text), _MAX_SEARCH_CHARS)
    while start < stop:
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        yield text[start : min(end, start + _MAX_LINE_CHARS)]
        start = end + 1
