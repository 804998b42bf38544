"""Text to terms: what a question and a chunk must share for the lexical leg to see that they belong together.

Engineering text is half identifiers. Each is kept whole, so that whoever asks for `os.path.join` finds just that, and
split at dots, slashes, underscores, CamelCase and digits, so that whoever asks for "join a path" finds it, too. Version
numbers are kept whole. No word is dropped: `not`, `is` and `in` are keywords of a language; what the small words of a
question are worth is the question's business (`questions.py`). What was measured is in docs/retrieval.md.
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
# C++ and C# are names; `count++` and `issue#12` are words with something after them.
_LANGUAGE = r"(?:\+\+(?<=\b[cCgG]\+\+)(?!\w)|\#(?<=\b[cCfF]\#)(?!\w))?"
_TOKEN = re.compile(rf"\w++(?:(?:::|[.\-/:'’@])\w++)*+{_LANGUAGE}")
_HAS_CJK = re.compile(rf"[{_CJK}]")
_SCRIPTS = re.compile(rf"([{_CJK}]+)")
_VERSION = re.compile(r"v?(\d+(?:\.\d+)+(?:[-.]?[a-z]+[\d.]*)?)")
_SEPARATORS: Final = "./:-'’@"
_IDENTIFIER = re.compile(rf"[{re.escape(_SEPARATORS)}]")
_POSSESSIVE = re.compile(r"['’][sS](?![^\W_])")
_CONTRACTION = re.compile(r"([^\W\d_]+)['’]((?:t|re|ve|ll|d|m))", re.IGNORECASE)
# HTTPServer -> HTTP Server, getUserName -> get User Name, userIDs -> user IDs, sha256sum -> sha 256 sum
_PART = re.compile(r"[A-Z]{2,}s(?![a-z])|[A-Z]+(?![a-z])|[A-Z]?[^\W\dA-Z_]+|\d+")


def terms_of(text: str) -> list[str]:
    """All terms of a text, those of one word beside each other, in reading order."""
    return [term for token in _TOKEN.findall(text) for term in _expanded(token)]


def count_terms(text: str) -> Counter[str]:
    """How often each term occurs in a text; the counts add up to the text's length."""
    counts: Counter[str] = Counter()
    before = counts.get  # many times faster than what `counts[term] += 1` does for a new term
    for token, occurrences in Counter(_TOKEN.findall(text)).items():
        for term in _known.get(token) or _expanded(token):
            counts[term] = before(term, 0) + occurrences
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
    if not _HAS_CJK.search(token):
        yield from _expand_word(token)
        return
    for at, run in enumerate(_SCRIPTS.split(token)):
        if at % 2:
            # No spaces between words: pairs of characters, as Lucene's CJK analyzer makes them.
            yield from (run[start : start + 2] for start in range(max(1, len(run) - 1)))
        elif word := run.strip(_SEPARATORS):
            yield from _expand_word(word)


def _expand_word(token: str) -> Iterator[str]:
    token = _without_apostrophe(token)
    folded = token.casefold()
    if version := _VERSION.fullmatch(folded):
        yield version[1]
        return
    names = [name for name in _IDENTIFIER.split(token) if name]
    parts = [_PART.findall(name) for name in names]
    if parts == [[token]]:
        yield _stem(folded)
        return
    if not any(parts):  # a ruler of underscores
        return
    # Wholes are stemmed, too: whoever writes `numpy` means `NumPy`, and that word is stemmed.
    yield _stem(folded)
    for name, within in zip(names, parts, strict=True):
        if len(names) > 1 and len(within) > 1:
            yield _stem(name.casefold())
        yield from (_stem(part.casefold()) for part in within)


def _without_apostrophe(token: str) -> str:
    """`user's` is about the user; `don't` is one word, which many write as `dont`. Quotes in code stay separators."""
    token = _POSSESSIVE.sub("", token)
    contraction = _CONTRACTION.fullmatch(token)
    return contraction[1] + contraction[2] if contraction else token


def _stem(word: str) -> str:
    stem: str = _stemmer().stemWord(word)
    return stem


@cache
def _stemmer() -> Stemmer.Stemmer:
    return Stemmer.Stemmer("english", 0)  # remembers nothing: we do
