"""Secrets that no pattern sees as they are written otherwise: percent-encoded words, and Base64 of whole texts."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final
from urllib.parse import unquote

from rag_pipeline.documents.redaction.spans import Finding, holds_run, places

Find = Callable[[str], Iterator[Finding]]
"""What finds secrets in a text that was decoded."""

_ESCAPE = re.compile(r"%(?:5[Ff]|2[BbDdEeFf]|3[AaDd]|40|20|22)")
_WORD_END = re.compile(r"[\s\"'<>`]")
_LONGEST_WORD: Final = 1000
_SHORTEST_WORD: Final = 20
_MOST_WORDS: Final = 2000

_BEGINNINGS: Final = (
    "-----BEGIN ", '{ "', "{\n ", "{\n\t", "{\r\n", "postgres", "mongodb", "mysql:", "redis", "amqp:", "https:",
)  # fmt: skip
"""How texts begin that are passed on in Base64: keys, credentials in JSON, addresses with a password."""
_MARKS: Final = (
    "eyJ",  # `{"` and a letter
    *(base64.b64encode(beginning.encode()).decode()[: len(beginning) * 8 // 6] for beginning in _BEGINNINGS),
)
_BASE64 = re.compile(
    r"[A-Za-z0-9+/_-]{20,60000}(?:\\?\n[ \t]*[A-Za-z0-9+/]{4,1000}(?==|[ \t]*[\n\"'`]|\Z)){0,500}={0,2}"
)
_ENCODED_BEFORE = re.compile(r"[A-Za-z0-9+/_-]")
_MANIFEST = re.compile(r"kind[\"']?[ \t]*:[ \t]*[\"']?Secret\b")
_ENTRY = re.compile(
    r"^[ \t]*[\"']?(?P<name>[\w.-]{1,253})[\"']?[ \t]*:[ \t]*[\"']?(?P<value>[A-Za-z0-9+/]{8,60000}={0,2})[\"']?,?"
    r"[ \t]*$",
    re.MULTILINE,
)
_NO_TEXT = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_JUDGED: Final = 64  # characters of Base64, of which those that make no text are seen soonest


def find_escaped(text: str, find: Find) -> Iterator[Finding]:
    """Secrets in percent-encoded words: decoded, and found again where they stood."""
    if "%" not in text:
        return
    for start, word in islice(_escaped_words(text), _MOST_WORDS):
        plain = unquote(word, errors="replace").replace("\n", " ")
        for found in find(plain):
            if at := _encoded_place(word, plain[found.start : found.end]):
                yield Finding(kind=found.kind, start=start + at[0], end=start + at[1], rank=found.rank)


def find_in_base64(text: str, find: Find) -> Iterator[Finding]:
    """Base64 of a text with a secret in it, as a whole: after any name, or as a value of a Kubernetes `Secret`."""
    words = (at for mark in _MARKS for at in places(text, mark)) if holds_run(text) else ()
    for at in islice(words, _MOST_WORDS):
        word = None if _ENCODED_BEFORE.match(text, at - 1, at) else _BASE64.match(text, at)
        if word and (kind := _kind_inside(word.group(), find)):
            yield Finding(kind=kind, start=at, end=word.end(), rank=3)
    if "Secret" in text and _MANIFEST.search(text):
        for entry in islice(_ENTRY.finditer(text), _MOST_WORDS):
            # The name says what a password is.
            if kind := _kind_inside(entry["value"], find, name=entry["name"]):
                yield Finding(kind=kind, start=entry.start("value"), end=entry.end("value"), rank=3)


def _kind_inside(encoded: str, find: Find, *, name: str = "") -> str | None:
    """The kind of the first secret of what was encoded; None where it holds none, or is no text."""
    plain = _decoded(encoded[:_JUDGED], is_whole=False) and _decoded(encoded)
    if not plain:
        return None
    return next((found.kind for found in find(f'{name}="{plain}"' if name and "\n" not in plain else plain)), None)


def _decoded(encoded: str, *, is_whole: bool = True) -> str | None:
    compact = re.sub(r"[\\\s=]+", "", encoded).replace("-", "+").replace("_", "/")
    compact = compact[: len(compact) - (len(compact) % 4 == 1)]
    try:
        plain = base64.b64decode(compact + "=" * (-len(compact) % 4))
        text = plain.decode("utf-8", errors="strict" if is_whole else "ignore")
    except (binascii.Error, UnicodeDecodeError):
        return None
    return None if _NO_TEXT.search(text) else text


def _escaped_words(text: str) -> Iterator[tuple[int, str]]:
    done = 0
    for escape in _ESCAPE.finditer(text):
        if escape.start() < done:
            continue
        first = max(done, escape.start() - _LONGEST_WORD)
        begins = max((m.end() for m in _WORD_END.finditer(text, first, escape.start())), default=first)
        ends = _WORD_END.search(text, escape.end(), escape.end() + _LONGEST_WORD)
        done = ends.start() if ends else min(len(text), escape.end() + _LONGEST_WORD)
        if done - begins >= _SHORTEST_WORD:
            yield begins, text[begins:done]


def _encoded_place(encoded: str, value: str) -> tuple[int, int] | None:
    pattern = "".join(
        f"(?:{re.escape(c)}|%{ord(c):02X}|%{ord(c):02x})" if ord(c) < 128 else re.escape(c) for c in value
    )
    found = re.search(pattern, encoded)
    return found.span() if found else None
