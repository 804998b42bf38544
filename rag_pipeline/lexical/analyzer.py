"""Text to terms: what a question and a chunk must share for the lexical leg to see that they belong together.

Engineering text is half identifiers. Each is kept whole, so that whoever asks for `os.path.join` finds just that, and
split at dots, slashes, underscores, CamelCase and digits, so that whoever asks for "join a path" finds it, too. Error
codes and version numbers are kept whole. No word is dropped: `not`, `is` and `in` are keywords of a language, and their
frequency makes them count for little anyway.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Final

import Stemmer

ANALYZER_VERSION: Final = 1
"""Raised whenever the same text would give other terms; postings are then written again."""

MAX_TERM_CHARS: Final = 64
"""Longer terms are cut: nobody asks for the rest of a hash."""
_MAX_REMEMBERED: Final = 300_000

_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002fa1f"
_TOKEN = re.compile(rf"[{_CJK}]+|[^\W{_CJK}]+(?:[.\-/:'’@][^\W{_CJK}]+)*(?:\+\+|\#)?")
_IS_CJK = re.compile(rf"[{_CJK}]")
_VERSION = re.compile(r"v?(\d+(?:\.\d+)+(?:[-.]?[a-z]+[\d.]*)?)")
_IDENTIFIER = re.compile(r"[./:\-'’@]")
# HTTPServer -> HTTP Server, getUserName -> get User Name, sha256sum -> sha 256 sum
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\dA-Z_]+|\d+")


def terms_of(text: str) -> list[str]:
    """All terms of a text, those of one word beside each other, in reading order."""
    return [term for token in _TOKEN.findall(text) for term in _expanded(token)]


def count_terms(text: str) -> Counter[str]:
    """How often each term occurs in a text; the counts add up to the text's length."""
    counts: Counter[str] = Counter()
    for token, occurrences in Counter(_TOKEN.findall(text)).items():
        for term in _expanded(token):
            counts[term] += occurrences
    return counts


_known: dict[str, tuple[str, ...]] = {}


def _expanded(token: str) -> tuple[str, ...]:
    """The terms of one token, from memory when it was met before: most words of a corpus are."""
    terms = _known.get(token)
    if terms is None:
        if len(_known) >= _MAX_REMEMBERED:
            _known.clear()
        terms = _known[token] = tuple(term[:MAX_TERM_CHARS] for term in _expand(token))
    return terms


def _expand(token: str) -> Iterator[str]:
    if _IS_CJK.match(token):
        # No spaces between words: pairs of characters, as Lucene's CJK analyzer makes them.
        yield from (token[at : at + 2] for at in range(max(1, len(token) - 1)))
        return
    folded = token.casefold()
    if version := _VERSION.fullmatch(folded):
        yield version[1]
        return
    names = [name for name in _IDENTIFIER.split(token) if name]
    parts = [_PART.findall(name) for name in names]
    if len(names) == 1 and len(parts[0]) <= 1:
        yield _stem(folded)
        return
    yield folded
    for name, within in zip(names, parts, strict=True):
        if len(names) > 1 and len(within) > 1:
            yield name.casefold()
        yield from (_stem(part.casefold()) for part in within)


def _stem(word: str) -> str:
    stem: str = _stemmer().stemWord(word)
    return stem


@cache
def _stemmer() -> Stemmer.Stemmer:
    return Stemmer.Stemmer("english", 0)  # remembers nothing: we do
