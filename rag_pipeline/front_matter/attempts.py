"""What was meant as front matter, told from a text that merely begins with a rule.

A text attempts front matter when its first line that says something is a fence (two or more dashes of any kind, `+` or
`;`, as in `---`, `----`, `———` or `-- -`), and one of these holds for the lines after it, up to the next fence:

- one of them begins with a key of drops (`scope:`, `Title =`, …) or with what looks like one. Prose ends the search at
  the next blank line, but not for the keys of access, `scope` and `tenant`;
- the fence is `---` or `+++`, and the first of them and most others are keys, comments, lists or indented, if there is
  a closing fence; or at least two keys stand behind it, if there is none.

Blank lines, comments (`#`, `<!-- -->`) and invisible characters do not say anything.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from rag_pipeline.front_matter.keys import ACCESS_KEYS, similar_key

MAX_CHARS: Final = 50_000
"""More is not front matter but a document between two rules."""

_BREAK: Final = re.compile(r"\r\n?|[\n\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_EXOTIC: Final = re.compile(r"[^\t\x20-\x7e]")
_FENCE: Final = re.compile(
    r"(?P<fence>(?:[-\u2010-\u2015\u2212\u2500\u2501\u2e3a\u2e3b\ufe58\ufe63\uff0d][ \t]*){2,}|(?:[+\uff0b][ \t]*){2,}"
    r"|(?:[;\uff1b][ \t]*){2,})(?:ya?ml|toml|json|[#!].*)?",
    re.IGNORECASE,
)
_KEY: Final = re.compile(
    r"[^\w#]{0,6}(?P<key>\w[\w .$@/*-]{0,60}?)[^\w\s:=]{0,3}\s*[:=\uff1a\uff1d\ua789\u2236](?P<value>.*)"
)
_HEADER_LINE: Final = re.compile(r"[\s#\"']|- |[\w.$@/-]+[\"']?\s*[:=]|[\]})]")
_SCOPE: Final = re.compile(r"\W{0,4}[A-Za-z][\w-]*:(?!//)\S")
_INSIDE: Final = re.compile(rf"(?<![\w-])(?P<key>\w[\w-]{{0,60}})\W{{0,4}}[:=\uff1a\uff1d](?=\s*{_SCOPE.pattern})")
"""A key and a scope anywhere in a line, as in `base: {scope: user:jane}`."""
_BARE: Final = re.compile(rf"(?P<key>\w{{1,60}})(?=\s+{_SCOPE.pattern})")
_META: Final = re.compile(
    r"<meta\b[^>]{0,200}?\bname\s*=\s*[\"']?(?P<key>\w[\w .-]{0,60})"
    rf"[\"']?[^>]{{0,200}}?\bcontent\s*=\s*{_SCOPE.pattern}",
    re.IGNORECASE,
)
_COMMENT: Final = re.compile(r"\[[^\]]{0,20}\]:\s*(?:#|<#?>)\s*")
"""What a comment of Markdown begins with: `[//]: # (…)`."""
_CODE: Final = re.compile(r"\s*(?:```|~~~)")
_PARAGRAPHS: Final = 2
"""Below a title, too: there reStructuredText and AsciiDoc have their fields."""


class Line(NamedTuple):
    """A line of a text, as one sees it."""

    number: int
    start: int
    end: int
    """Behind its line break."""
    text: str


class Attempt(NamedTuple):
    """Lines that were meant as front matter."""

    before: Line | None
    """The first line before the opening one that says nothing."""
    opening: Line
    closing: Line | None
    end: int
    """Where the text goes on behind the header; 0 where that cannot be told."""


def attempt_in(text: str) -> Attempt | None:
    """What was meant as front matter at the beginning of the text, if anything was."""
    lead, rest = _without_lead(text)
    opening = next(rest, None)
    if opening is None or not (fence := _FENCE.fullmatch(opening.text.strip())):
        return None
    body: list[Line] = []
    closing = None
    for line in rest:
        stripped = line.text.strip()
        if _FENCE.fullmatch(stripped) or stripped == "...":
            closing = line
            break
        body.append(line)
    is_exact = re.sub(r"\s", "", fence["fence"]) in ("---", "+++")
    has_comments = any(line.text.lstrip().startswith("#") for line in lead)
    is_header = _is_header(body, is_closed=closing is not None)
    looks_so = is_header and is_exact and not has_comments
    if not looks_so and not _holds_key(body, only_access=not is_exact and len(body) == 1):
        return None
    before = next((line for line in lead if line.start < opening.start), None)
    end = (closing.end if closing else _header(body)[-1].end) if is_header else 0
    return Attempt(before, opening, closing, end)


def unfenced_key(text: str) -> Line | None:
    """A line at the beginning of a text without a fence that says who may see it, if there is one.

    It is looked for in two paragraphs: `scope` or `tenant`, with a value such as `user:jane` or a fence below.
    In code, only of the first paragraph: a page may well show how to write it.
    """
    for number, head in enumerate(_paragraphs(text)):
        is_closed = bool(_FENCE.fullmatch(head[-1].text.strip()))
        in_code = False
        for line in head:
            is_fence = bool(_CODE.match(line.text))
            in_code ^= is_fence
            if number and (is_fence or in_code or line.text.startswith(("    ", "\t"))):
                continue
            stripped = _COMMENT.sub("", line.text.strip(), count=1)
            found = _KEY.match(stripped)
            if found and similar_key(found["key"]) in ACCESS_KEYS:
                is_key = is_closed and not number and found["key"] == found["key"].lower()
                if is_key or _SCOPE.match(found["value"]):
                    return line
            if any(similar_key(meta["key"]) in ACCESS_KEYS for meta in _META.finditer(stripped)):
                return line
    return None


def _paragraphs(text: str) -> Iterator[Sequence[Line]]:
    """The first lines between blank ones."""
    head: list[Line] = []
    number = 0
    for line in _lines(text):
        if line.text.strip():
            head.append(line)
        elif head:
            yield head
            head, number = [], number + 1
            if number == _PARAGRAPHS:
                return
    if head:
        yield head


def access_lines(source: str) -> Iterator[tuple[int, str]]:
    """(line from 1, key) of each line that seems to say who may see the text."""
    for line in _lines(source):
        found = _KEY.match(line.text.strip())
        if found and similar_key(found["key"]) in ACCESS_KEYS:
            yield line.number, found["key"]


def names_scope(text: str) -> bool:
    """Whether a line gives a scope such as `scope: user:jane`, at whatever place of it."""
    return any(_scope_in(line.text) for line in _lines(text))


def _scope_in(line: str) -> bool:
    stripped = line.strip()
    found = [*_INSIDE.finditer(stripped)]
    if bare := _BARE.match(stripped):
        found.append(bare)
    return any(similar_key(one["key"]) in ACCESS_KEYS for one in found)


def _lines(text: str) -> Iterator[Line]:
    start = 0
    for number in range(1, MAX_CHARS + 2):
        found = _BREAK.search(text, start, start + MAX_CHARS)
        end = found.start() if found else min(len(text), start + MAX_CHARS)
        behind = found.end() if found else end
        yield Line(number, start, behind, _seen(text[start:end]))
        if found is None or behind > MAX_CHARS:
            return
        start = behind


def _seen(text: str) -> str:
    """A line as one sees it: without characters that have no width, and with one kind of space."""
    if not _EXOTIC.search(text):
        return text
    return "".join(
        " " if category == "Zs" else letter
        for letter in text
        if (category := unicodedata.category(letter)) not in ("Cf", "Cc", "Mn") or letter == "\t"
    )


def _without_lead(text: str) -> tuple[list[Line], Iterator[Line]]:
    """The blank lines and comments that a text begins with, and the lines after them."""
    lines = _lines(text)
    lead: list[Line] = []
    in_comment = False
    for line in lines:
        stripped = line.text.strip()
        is_comment = in_comment or stripped.startswith("<!--")
        if is_comment:
            in_comment = "-->" not in stripped
        elif stripped and not stripped.startswith("#"):
            return lead, _chained(line, lines)
        lead.append(line)
    return lead, lines


def _chained(first: Line, rest: Iterator[Line]) -> Iterator[Line]:
    yield first
    yield from rest


def _holds_key(body: Sequence[Line], *, only_access: bool) -> bool:
    is_prose_over = is_prose = False
    for line in body:
        stripped = line.text.strip()
        is_prose_over |= (is_prose and not stripped) or stripped.startswith(("```", "~~~", "##"))
        if found := _KEY.match(stripped):
            key = similar_key(found["key"])
            if key in ACCESS_KEYS or (key and not is_prose_over and not only_access):
                return True
        if not is_prose_over and _scope_in(stripped):
            return True
        is_prose |= bool(stripped) and not _HEADER_LINE.match(line.text)
    return False


def _is_header(body: Sequence[Line], *, is_closed: bool) -> bool:
    """Whether these lines are front matter by their looks."""
    said = [line for line in body if line.text.strip()]
    if is_closed:
        looks = [bool(_HEADER_LINE.match(line.text)) for line in said]
        return not said or (looks[0] and sum(looks) * 2 > len(looks))
    keys = [found["key"] for line in _header(body) if (found := _KEY.match(line.text.strip()))]
    return len(keys) > 1 or any(similar_key(key) for key in keys)


def _header(body: Sequence[Line]) -> Sequence[Line]:
    """The lines up to the first that cannot be part of a header."""
    end = next((n for n, line in enumerate(body) if not line.text.strip() or not _HEADER_LINE.match(line.text)), None)
    return body[:end]
