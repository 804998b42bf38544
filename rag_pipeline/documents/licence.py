"""Licence headers of source files: which lines of the comments at the top nobody searches code for.

A header is cut by paragraphs: what the same comment says of the file stays.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from rag_pipeline.documents.edits import GONE, Edit

_MAX_CHARS = 20_000  # the longest licences that files carry in full have some 12,000
_SIGNS = ("copyright", "license", "licence", "spdx", "(c)", "©", "all rights reserved", "permission")
"""One of them is in every licence; looking for them one by one is many times faster than a pattern of them all."""
_NOTICE = re.compile(
    r"copyright\b.{0,40}(?:\(c\)|©|\b(?:19|20)\d\d\b|holders?\b|by\b)|^\W*(?:\(c\)|©)|\bspdx-\w|\ball rights reserved\b"
    r"|^\W*copyright\b|^\W*(?:@|::)?licen[sc]e\b\W*(?:\w+[\w .+/-]{0,60})?$|^\W*@(?:copyright|preserve)\b"
    r"|^\W*__(?:copyright|license)__",
    re.IGNORECASE,
)
"""A line that says whose the file is; it goes alone."""
_TERMS = re.compile(
    r"\b(?:licen[sc]ed (?:under|to)|licen[sc]e agreement|under the terms of|subject to the terms"
    r"|permission is hereby granted"
    r"|permission to use|permission notice|redistribution and use|redistributions? (?:of|in)|neither the names?"
    r"|(?:software|library|program|file|code) is (?:provided|free software|distributed|licen[sc]ed|released|subject"
    r"|part of|in the public domain)"
    r"|is free software\b|redistribute it and/or"
    r"|without (?:any )?warranty|warranties|fitness for a particular purpose|unless required by applicable law"
    r"|obtain a copy of the|received a copy of the|in compliance with the|governed by|(?:bsd|mit|apache|isc|zlib|boost"
    r"|mozilla|gnu|gpl|lgpl|agpl|eclipse)[\w ,.-]{0,30}(?:licen[sc]e|\bv\d)|general public licen[sc]e|public domain"
    r"|licenses?/(?:license|mit|gpl|bsd|mpl)|apache\.org/licenses|opensource\.org|gnu\.org/licenses|mozilla\.org/mpl"
    r"|see (?:the )?(?:\w+ )?(?:file |files )?(?:licen[sc]e|copying|notice|authors)\b|source code form"
    r"|(?:disclaimer|liability|damages))",
    re.IGNORECASE,
)
"""Words of the terms themselves; they go to the end of their paragraph."""
_KEPT_ABOVE = re.compile(
    r"\#!|\#.{0,20}coding[:=]|<\?(?:php|xml)\b|<!doctype\b|//[ \t]*(?:@ts-|eslint|\+build|go:build|@flow)"
    r"|\#[ \t]*(?:type|mypy|pylint)"
    r"|['\"]use strict['\"]|@echo off|\#pragma once|\{-\#",
    re.IGNORECASE,
)
"""Lines that a header may stand below."""
_LINE_MARKS: Final = ("#", "//", "--", ";", "%", "REM ", "rem ", "Rem ", "::", "dnl ", "!", "'")
_DIRECTIVES: Final = ("#include", "#define", "#if", "#pragma", "#import", "#[", "#!")
"""They begin like comments."""
_BLOCKS: Final = {
    "/*": "*/", "<!--": "-->", '"""': '"""', "'''": "'''", "(*": "*)", "{-": "-}", "<#": "#>", "{#": "#}",
    "=begin": "=end", "<%--": "--%>", "--[[": "]]", "r\"\"\"": '"""', "u\"\"\"": '"""',
}  # fmt: skip
_DECORATION = " \t*#/;%-=!~_+|.:'\""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Comment:
    """Lines `first` to `last` of the file; of a block, the marks that open and close it."""

    first: int
    last: int
    opens: str = ""
    closes: str = ""


def licence_edits(text: str) -> list[Edit]:
    """Edits that take the licence out of the comments at the top of a source file."""
    top = text[:_MAX_CHARS]
    lowered = top[:4000].lower()
    if not any(sign in lowered for sign in _SIGNS):
        return []
    lines = top.split("\n")
    starts, start = [], 0
    for line in lines:
        starts.append(start)
        start += len(line) + 1
    edits: list[Edit] = []
    for comment in _comments(lines):
        gone = _licence_lines(lines, comment)
        words_left = any(
            _words(lines[number], comment) for number in range(comment.first, comment.last + 1) if number not in gone
        )
        if not gone:
            continue
        for number in range(comment.first, comment.last + 1) if not words_left else sorted(gone):
            kept = _marks_kept(lines[number], number, comment) if words_left else GONE
            edits.append((starts[number], starts[number] + len(lines[number]), kept))
    return edits


def _comments(lines: list[str]) -> Iterator[_Comment]:
    """The comments above the first line of code."""
    number = 0
    while number < len(lines):
        stripped = lines[number].strip()
        if not stripped or _KEPT_ABOVE.match(stripped):
            number += 1
            continue
        comment = _block(lines, number, stripped) or _run_of_lines(lines, number, stripped)
        if comment is None:
            return
        yield comment
        number = comment.last + 1


def _block(lines: list[str], number: int, stripped: str) -> _Comment | None:
    for opens in sorted(_BLOCKS, key=len, reverse=True):
        if not stripped.startswith(opens):
            continue
        closes = _BLOCKS[opens]
        for last in range(number, len(lines)):
            line = stripped[len(opens) :] if last == number else lines[last]
            place = line.find(closes)
            if place >= 0:
                if line[place + len(closes) :].strip():
                    return None  # code behind the comment on its last line: nothing of it may go
                return _Comment(first=number, last=last, opens=opens, closes=closes)
        return None
    return None


def _run_of_lines(lines: list[str], number: int, stripped: str) -> _Comment | None:
    mark = next((mark for mark in _LINE_MARKS if stripped.startswith(mark)), None)
    if mark is None or stripped.startswith(_DIRECTIVES):
        return None
    last = number
    while last + 1 < len(lines) and lines[last + 1].strip().startswith((mark, mark.rstrip())):
        following = lines[last + 1].strip()
        if _KEPT_ABOVE.match(following) or following.startswith(_DIRECTIVES):
            break
        last += 1
    return _Comment(first=number, last=last)


def _licence_lines(lines: list[str], comment: _Comment) -> set[int]:
    """Numbers of the lines that belong to the licence."""
    gone: set[int] = set()
    in_terms = notice = False
    for number in range(comment.first, comment.last + 1):
        words = _words(lines[number], comment)
        if not words:
            in_terms = notice = False
            continue
        if _NOTICE.search(words):
            gone.add(number)
            notice = True
        elif in_terms or _TERMS.search(words) or (notice and _is_holder(words)):
            gone.add(number)
            in_terms = True
    return gone


def _is_holder(words: str) -> bool:
    """Whether a line below a notice goes on with it: a year, or the name of who holds it."""
    return bool(re.match(r"(?:\(c\)|and |\d{4}\b|<?\S+@)", words, re.IGNORECASE)) or "all rights" in words.lower()


def _words(line: str, comment: _Comment) -> str:
    """The line without the marks of its comment and without rules."""
    words = line.strip()
    if comment.opens:
        words = words.removeprefix(comment.opens).removesuffix(comment.closes)
    else:
        words = re.sub(r"^(?:REM|dnl)\b", "", words, flags=re.IGNORECASE)
    words = words.strip(_DECORATION)
    return words if re.search(r"\w", words) else ""


def _marks_kept(line: str, number: int, comment: _Comment) -> str:
    """What of a line stays when its comment does: the marks that open or close it."""
    stripped = line.strip()
    opens = comment.opens if number == comment.first and stripped.startswith(comment.opens) else ""
    closes = comment.closes if comment.closes and number == comment.last and stripped.endswith(comment.closes) else ""
    return " ".join(mark for mark in (opens, closes) if mark) or GONE
