"""Python with one word out of place, read as what it may have been: where a keyword must have stood, one stands again.

A parser recovers from `dfe name():` by reading much of what surrounds it otherwise, so that one broken word would move
many cuts. Where the keyword was, what surrounds it still tells: a line that opens a suite ends in a colon and begins
with no keyword; in `a if b esle c` three terms follow each other, which nothing in Python does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import chain, islice
from keyword import kwlist, softkwlist
from typing import Final, NamedTuple

from tree_sitter import Tree


class Mended(NamedTuple):
    """What may have been meant by a text that does not parse."""

    text: bytes
    tree: Tree
    longer_at: int = 0
    longer_by: int = 0
    """What stands behind `longer_at` stood so many bytes earlier in the text as it was."""


Mender = Callable[[bytes, Callable[[bytes], Tree | None]], Mended | None]
"""A text that does not parse and its parser, to what may have been meant."""

_MAX_LINES: Final = 3
_MAX_SUITE_LINES: Final = 400
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
_TOKEN: Final = re.compile(rb"([^\W\d]\w*)|\w+|\S|\n")
_RESERVED: Final = frozenset(word.encode() for word in (*kwlist, *softkwlist))


def mended_python(source: bytes, parse: Callable[[bytes], Tree | None]) -> Mended | None:
    """The source with a keyword in place of the word that breaks it, filled up to its length; None where none helps."""
    budget = _MAX_PARSED_BYTES
    plain = _QUOTED.sub(_blanked, source)
    headers = ((header.span(2), _fitting(plain, header, end)) for header, end in _broken_headers(plain))
    between = ((word.span(), _joining(plain, word.start())) for word in _out_of_place(plain))
    for (start, stop), keywords in chain(islice(headers, _MAX_LINES), islice(between, _MAX_LINES)):
        for keyword in keywords:
            budget -= len(source)
            if budget < 0:
                return None
            text = source[:start] + keyword.ljust(stop - start) + source[stop:]
            tree = parse(text)
            if tree is not None and not tree.root_node.has_error:
                return Mended(text, tree, longer_at=start, longer_by=len(text) - len(source))
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


def _out_of_place(plain: bytes) -> Iterator[re.Match[bytes]]:
    """Words that stand between two terms of one line, none of them a keyword."""
    before = word = None
    for token in _TOKEN.finditer(plain):
        if before and word and word[1] and _is_term(before, b")]}") and _is_term(word) and _is_term(token, b"([{"):
            yield word
        before, word = word, token


def _is_term(token: re.Match[bytes], brackets: bytes = b"") -> bool:
    """Whether it is a name or a number, or one of these brackets."""
    is_word = token[0][:1].isalnum() or token[0][:1] == b"_"
    return token[0] not in _RESERVED if is_word else token[0] in brackets


def _joining(plain: bytes, at: int) -> list[bytes]:
    """The keywords that may stand between two terms there, the likeliest first."""
    before = plain[plain.rfind(b"\n", 0, at) + 1 : at].split()
    if before[:1] == [b"from"]:
        return [b"import"]
    if before[:1] == [b"import"]:
        return [b"as"]
    if b"for" in before and before[-2:-1] != [b"in"] and b"in" not in before[before.index(b"for") :]:
        return [b"in"]
    likeliest = [b"else"] if b"if" in before[1:] else []
    return [*likeliest, b"and", b"or", b"in", b"is", b"if", b"for", b"as"]


def _fitting(plain: bytes, header: re.Match[bytes], end: int) -> list[bytes]:
    """The keywords that such a line may begin with, the likeliest first."""
    rest = plain[header.end() : end].strip()
    if rest == b":":
        following = re.compile(rb"\n" + header[1] + rb"(\w+)").search(plain, end)
        return [b"try"] if following and following[1] in (b"except", b"finally") else [b"finally", b"else", b"try"]
    name = _NAME.match(rest)
    if name and rest == name[1] + b":":
        return _with_a_name(name[1], after=_opened_before(plain, header))
    if name:
        begins = [b"class", b"def"] if name[1][:1].isupper() else [b"def", b"class"]
        return [*begins, b"elif", b"except", b"with", b"if"]
    if b" in " in rest:
        return [b"for", b"elif", b"if"]
    return [b"elif", b"except", b"with", b"if"]


def _with_a_name(name: bytes, *, after: bytes) -> list[bytes]:
    """Of a line that is nothing but a keyword and a name; `after`: what opened the suite that ends right before it."""
    first = [b"except"] if after in (b"try", b"except") else [b"elif"] if after in (b"if", b"elif") else []
    if name[:1].isupper():
        first.append(b"class")
    return [*first, *(word for word in (b"with", b"if", b"elif", b"except", b"class") if word not in first)]


def _opened_before(plain: bytes, header: re.Match[bytes]) -> bytes:
    """The first word of the line before that is indented as the header is, unless a blank line parts them."""
    lines = plain[: header.start()].split(b"\n")[-_MAX_SUITE_LINES:-1]
    if not lines or not lines[-1].strip():
        return b""
    for line in filter(bytes.strip, reversed(lines)):
        words = line.lstrip(b" \t")
        indent = len(line) - len(words)
        if indent <= len(header[1]):
            found = re.match(rb"\w+", words)
            return found[0] if found and indent == len(header[1]) else b""
    return b""
