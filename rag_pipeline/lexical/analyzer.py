"""Text to terms: what a question and a chunk must share for the lexical leg to see that they belong together.

Engineering text is half identifiers. Each is kept whole, so that whoever asks for `os.path.join` finds just that, and
split at dots, slashes, underscores, CamelCase and digits, so that whoever asks for "join a path" finds it, too. Version
numbers are kept whole. No word is dropped: `not`, `is` and `in` are keywords of a language; what the small words of a
question are worth is the question's business (`questions.py`). What was measured is in docs/retrieval.md.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
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
_WITHIN = re.compile(rf"[^{re.escape(_SEPARATORS)}]+")
_POSSESSIVE = re.compile(r"['’][sS](?![^\W_])")
_CONTRACTION = re.compile(r"([^\W\d_]+)['’]((?:t|re|ve|ll|d|m))", re.IGNORECASE)
# HTTPServer -> HTTP Server, getUserName -> get User Name, userIDs -> user IDs, sha256sum -> sha 256 sum
_PART = re.compile(r"[A-Z]{2,}s(?![a-z])|[A-Z]+(?![a-z])|[A-Z]?[^\W\dA-Z_]+|\d+")


def terms_of(text: str) -> list[str]:
    """All terms of a text, those of one word beside each other, in reading order."""
    return [term for token in tokens_of(text) for term in terms_of_token(token)]


def tokens_of(text: str) -> list[str]:
    """Words, versions, dotted names: what has terms, in reading order."""
    return _TOKEN.findall(text)


def placed_terms(text: str, *, among: Collection[str] | None = None) -> Iterator[tuple[str, int, int]]:
    """The terms of `terms_of`, in its order, each with where it stands: `text[start:end]`.

    `among`: only those of words that hold one of these terms.
    """
    wanted = None if among is None else frozenset(among)
    for found in _TOKEN.finditer(text):
        # What a word holds is mostly known; where it stands has to be found out.
        if wanted is None or not wanted.isdisjoint(terms_of_token(found[0])):
            begin = found.start()
            yield from ((term[:MAX_TERM_CHARS], begin + start, begin + end) for term, start, end in _placed(found[0]))


def count_terms(text: str) -> Counter[str]:
    """How often each term occurs in a text; the counts add up to the text's length."""
    counts: Counter[str] = Counter()
    before = counts.get  # many times faster than what `counts[term] += 1` does for a new term
    for token, occurrences in Counter(tokens_of(text)).items():
        for term in _known.get(token) or terms_of_token(token):
            counts[term] = before(term, 0) + occurrences
    return counts


_known: dict[str, tuple[str, ...]] = {}


def terms_of_token(token: str) -> tuple[str, ...]:
    """The terms of one token of `tokens_of`, from memory when it was met before: most words of a corpus are."""
    terms = _known.get(token)
    if terms is None:
        if len(_known) >= _MAX_REMEMBERED:
            _known.clear()
        terms = _known[token] = expand_token(token)
    return terms


def expand_token(token: str) -> tuple[str, ...]:
    """What `terms_of_token` says of a token that was not met before."""
    return tuple(term[:MAX_TERM_CHARS] for term in _expand(token))


def _expand(token: str) -> Iterator[str]:
    if token.isascii() or not _HAS_CJK.search(token):
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
    if token.isascii() and token.isalpha() and folded[1:] == token[1:]:  # most words: nothing to be taken apart
        yield _stem(folded)
        return
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


def _placed(token: str) -> Iterator[tuple[str, int, int]]:
    """What `_expand` makes of a token, with places in it; slower, so that indexing does not pay for them."""
    if not _HAS_CJK.search(token):
        yield from _placed_in_word(token)
        return
    begin = 0
    for at, run in enumerate(_SCRIPTS.split(token)):
        if at % 2:
            pairs = range(max(1, len(run) - 1))
            yield from ((run[s : s + 2], begin + s, begin + min(s + 2, len(run))) for s in pairs)
        elif word := run.strip(_SEPARATORS):
            before = begin + len(run) - len(run.lstrip(_SEPARATORS))
            yield from ((term, before + start, before + end) for term, start, end in _placed_in_word(word))
        begin += len(run)


def _placed_in_word(token: str) -> Iterator[tuple[str, int, int]]:
    cleaned = _without_apostrophe(token)
    kept = _kept_places(token, cleaned)

    def place(start: int, end: int) -> tuple[int, int]:
        return kept[start], kept[end - 1] + 1

    folded = cleaned.casefold()
    if version := _VERSION.fullmatch(folded):
        yield version[1], 0, len(token)
        return
    names = list(_WITHIN.finditer(cleaned))
    parts = [[(part[0], name.start() + part.start()) for part in _PART.finditer(name[0])] for name in names]
    if parts == [[(cleaned, 0)]]:
        yield _stem(folded), 0, len(token)
        return
    if not any(parts):
        return
    yield _stem(folded), 0, len(token)
    for name, within in zip(names, parts, strict=True):
        if len(names) > 1 and len(within) > 1:
            yield _stem(name[0].casefold()), *place(name.start(), name.end())
        yield from ((_stem(part.casefold()), *place(at, at + len(part))) for part, at in within)


def _kept_places(token: str, cleaned: str) -> Sequence[int]:
    """Where each character of what `_without_apostrophe` made of a token stands in the token."""
    if token == cleaned:
        return range(len(token))
    dropped = {at for match in _POSSESSIVE.finditer(token) for at in range(match.start(), match.end())}
    if len(token) - len(dropped) != len(cleaned):  # a contraction: of what is left, the apostrophe goes as well
        dropped |= {at for at, letter in enumerate(token) if letter in "'’"}
    return [at for at in range(len(token)) if at not in dropped]


def _without_apostrophe(token: str) -> str:
    """`user's` is about the user; `don't` is one word, which many write as `dont`. Quotes in code stay separators."""
    if "'" not in token and "’" not in token:
        return token
    token = _POSSESSIVE.sub("", token)
    contraction = _CONTRACTION.fullmatch(token)
    return contraction[1] + contraction[2] if contraction else token


def _stem(word: str) -> str:
    stem: str = _stemmer().stemWord(word)
    return stem


@cache
def _stemmer() -> Stemmer.Stemmer:
    return Stemmer.Stemmer("english", 0)  # remembers nothing: we do
