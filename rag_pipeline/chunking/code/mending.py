"""Python with one word out of place, read as what it may have been: a line that opens a suite gets a keyword again.

A parser recovers from `dfe name():` by reading much of what surrounds it otherwise, so that one broken word would move
many cuts. What such a line is, its end and its neighbours still tell: it ends in a colon, and begins with no keyword.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final

from tree_sitter import Tree

Mender = Callable[[bytes, Callable[[bytes], Tree | None]], tuple[bytes, Tree] | None]
"""A text that does not parse and its parser, to what may have been meant: a text of the same length, and its tree."""

_MAX_LINES: Final = 3
_MAX_PARSED_BYTES: Final = 400_000
"""A text that is broken in many places, or large, is read as the parser reads it."""
_KEYWORDS: Final = frozenset(
    b"async case class def elif else except finally for if lambda match try while with".split()
)
_QUOTED: Final = re.compile(
    rb'"""(?:[^"\\]|\\.|"(?!""))*+(?:"""|\Z)|'
    rb"'''(?:[^'\\]|\\.|'(?!''))*+(?:'''|\Z)|"
    rb'"(?:[^"\\\n]|\\.)*+"|'
    rb"'(?:[^'\\\n]|\\.)*+'|#[^\n]*",
    re.DOTALL,
)
_NOT_BREAKS: Final = re.compile(rb"[^\n]")
_HEADER: Final = re.compile(rb"([ \t]*)(?:async[ \t]+(?!def\b|for\b|with\b))?([^\W\d]\w*)(?=[ \t:])[ \t]*")
_NAME: Final = re.compile(rb"(\w+)[ \t]*(?:[(\[]|:)")


def mended_python(source: bytes, parse: Callable[[bytes], Tree | None]) -> tuple[bytes, Tree] | None:
    """The source with a keyword in place of the word that breaks it, as long as before; None where none is of help."""
    budget = _MAX_PARSED_BYTES
    plain = _QUOTED.sub(_blanked, source)
    for header, end in islice(_broken_headers(plain), _MAX_LINES):
        start, stop = header.span(2)
        for keyword in _fitting(plain, header, end):
            budget -= len(source)
            if budget < 0:
                return None
            if len(keyword) > stop - start:
                continue
            mended = source[:start] + keyword.ljust(stop - start) + source[stop:]
            tree = parse(mended)
            if tree is not None and not tree.root_node.has_error:
                return mended, tree
    return None


def _blanked(quoted: re.Match[bytes]) -> bytes:
    """A string as a word that is as long, a comment as spaces."""
    return _NOT_BREAKS.sub(b" " if quoted[0].startswith(b"#") else b"_", quoted[0])


def _broken_headers(plain: bytes) -> Iterator[tuple[re.Match[bytes], int]]:
    """Words that open a suite, by a colon or `: ...` outside of brackets, and are no keywords, and their ends."""
    depth = begun = start = 0
    for line in plain.split(b"\n"):
        if depth <= 0:
            depth, begun = 0, start
        depth += sum(map(line.count, (b"(", b"[", b"{"))) - sum(map(line.count, (b")", b"]", b"}")))
        start += len(line) + 1
        if depth <= 0 and line.rstrip(b" \t\r.").endswith(b":"):
            header = _HEADER.match(plain, begun)
            if header and header[2] not in _KEYWORDS:
                yield header, start - 1


def _fitting(plain: bytes, header: re.Match[bytes], end: int) -> list[bytes]:
    """The keywords that such a line may begin with, the likeliest first."""
    rest = plain[header.end() : end].strip()
    if rest == b":":
        following = re.compile(rb"\n" + header[1] + rb"(\w+)").search(plain, end)
        return [b"try"] if following and following[1] in (b"except", b"finally") else [b"finally", b"else", b"try"]
    if name := _NAME.match(rest):
        begins = [b"class", b"def"] if name[1][:1].isupper() else [b"def", b"class"]
        return [*begins, b"elif", b"except", b"with", b"if"]
    if b" in " in rest:
        return [b"for", b"elif", b"if"]
    return [b"elif", b"except", b"with", b"if"]
