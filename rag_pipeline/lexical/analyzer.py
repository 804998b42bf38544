"""Text to terms: what a question and a chunk must share for the lexical leg to see that they belong together.

Engineering text is half identifiers. Each is kept whole, so that whoever asks for `os.path.join` finds just that, and
split at dots, slashes, underscores, CamelCase and digits, so that whoever asks for "join a path" finds it, too.
Versions, addresses, decimals and days are one term wherever they stand: `postgres:16.2` holds `16.2`, not 16 and 2.
Accented words also have a term without their accents. Scripts without spaces become pairs of characters. No word is
dropped: `not`, `is` and `in` are keywords of a language; what the small words of a question are worth is the question's
business (`questions.py`). What was measured is in docs/retrieval.md.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Final

import Stemmer

ANALYZER_VERSION: Final = 2
"""Raised whenever the same text would give other terms; postings are then written again."""

MAX_TERM_CHARS: Final = 64
"""Longer terms are cut: nobody asks for the rest of a hash."""
PLAIN_SPELLING: Final = "~"
"""Begins a term that is an accented word without its accents, so that it differs from the word that is spelt so."""
_MAX_REMEMBERED: Final = 300_000
_stem: Final[Callable[[str], str]] = Stemmer.Stemmer("english", 0).stemWord  # remembers nothing: we do

_HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002fa1f"
# Kana, Han; Thai, Lao, Burmese, Khmer, and smaller scripts of their neighbours: no spaces between words.
_UNSPACED = (
    f"\u3040-\u30ff{_HAN}\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ece\u0edc-\u0edf\u1000-\u103f\u1050-\u109f"
    "\u1780-\u17d3\u17d7\u17dc\u17dd\u1950-\u19cf\u1a20-\u1a7c\ua980-\ua9c0\ua9e0-\ua9ef\uaa60-\uaadf"
)
_INVISIBLE: Final = "\u00ad\u200c\u200d\u2060"
"""Soft hyphen, joiners: they stand inside words and are no part of them."""


def _marks() -> str:
    """Vowel signs, tone marks and combining accents, as ranges for a regular expression: `\\w` does not hold them."""
    found = [code for code in range(0x300, 0x10000) if unicodedata.category(chr(code))[0] == "M"]
    ends = [code for at, code in enumerate(found) if found[at + 1 : at + 2] != [code + 1]]
    starts = [code for at, code in enumerate(found) if not at or found[at - 1] != code - 1]
    return "".join(f"\\u{first:04x}-\\u{last:04x}" for first, last in zip(starts, ends, strict=True))


_MARK = f"{_marks()}{_INVISIBLE}"
# ASCII is looked at first, because the class is long.
_WORD = rf"\w++(?:(?![\x00-\x7f])[{_MARK}]++\w*+)*+"
# C++ and C# are names, and C++17 one; `count++` and `issue#12` are words with something after them.
_LANGUAGE = r"(?:\+\+(?<=\b[cCgG]\+\+)\d*+(?!\w)|\#(?<=\b[cCfF]\#)\d*+(?!\w))?"
_JOINED = r"(?:::|[.\-/:'’@]|,(?<=\d,)(?=\d{3}(?!\d)))"
_TOKEN = re.compile(rf"{_WORD}(?:{_JOINED}{_WORD})*+{_LANGUAGE}")
_ASCII_TOKEN = re.compile(rf"\w++(?:{_JOINED}\w++)*+{_LANGUAGE}", re.ASCII)
"""Finds the same in a text of ASCII alone, and sooner."""
_HAS_UNSPACED = re.compile(rf"[{_UNSPACED}]")
_SCRIPTS = re.compile(rf"([{_UNSPACED}]+)")
_CLUSTER = re.compile(rf"[^{_MARK}][{_MARK}]*|[{_MARK}]+")
_IDEOGRAPH = re.compile(rf"[{_HAN}]")
_VERSION = re.compile(
    r"v?(\d+(?:\.\d+)+)((?:[-.]?(?:alpha|beta|dev|post|pre|preview|rc)|[abcp])[-.]?\d*)?", re.IGNORECASE
)
# What is one number to people, whatever it is glued to: a version, an address, a decimal, a day.
_NUMBER = re.compile(r"(?:(?<![^\W_])[vV])?(?<!\d)(\d+(?:\.\d+)+|\d{4}-\d\d-\d\d(?!\d))")
_DIGIT = re.compile(r"\d")
_SEPARATORS: Final = "./:-'’@,"
_SEPARATOR = re.compile(rf"[{re.escape(_SEPARATORS)}]")
_NAME = re.compile(rf"[^{re.escape(_SEPARATORS)}]+")
_SIGNED = re.compile(r"[cCgG]\+\+|[cCfF]#")
_POSSESSIVE = re.compile(r"['’][sS](?![^\W_])")
_CONTRACTION = re.compile(r"([^\W\d_]+)['’]((?:t|re|ve|ll|d|m))", re.IGNORECASE)
# HTTPServer -> HTTP Server, getUserName -> get User Name, userIDs -> user IDs, sha256sum -> sha 256 sum
_PART = re.compile(rf"[A-Z]{{2,}}s(?![a-z])|[A-Z]+(?![^\W\dA-Z_])|[A-Z]?(?:[^\W\dA-Z_]|[{_MARK}])+|\d+")
_ASCII_PART = re.compile(r"[A-Z]{2,}s(?![a-z])|[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
# What makes an ASCII token more than names and their parts: apostrophes, C++, 1,000, versions, days.
_MORE_THAN_NAMES = re.compile(r"['+#,]|\d[.\-]\d")
# Accents of Latin, Greek and Cyrillic (и and й are two letters), vowels of Hebrew and Arabic, and the tatweel.
_ACCENT = re.compile(
    r"[\u0300-\u0305\u0307-\u036f\u0591-\u05bd\u05bf-\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670]|(?<!и)\u0306"
)
_LETTERS = str.maketrans({
    "ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe", "ı": "i", "ħ": "h", "ŧ": "t",
})  # fmt: skip
_UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "å": "aa"})

Placed = tuple[str, int, int]
"""A term and where it stands: its start and its end."""


def terms_of(text: str) -> list[str]:
    """All terms of a text, those of one word beside each other, in reading order."""
    return [term for token in tokens_of(text) for term in terms_of_token(token)]


def tokens_of(text: str) -> list[str]:
    """Words, versions, dotted names: what has terms, in reading order."""
    return (_ASCII_TOKEN if text.isascii() else _TOKEN).findall(text)


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
    if token.isascii():
        if token.isalpha() and token[1:].islower():  # most words: nothing to be taken apart
            return (_stem(token.lower())[:MAX_TERM_CHARS],)
        if not _MORE_THAN_NAMES.search(token):
            return tuple([_stem(text.lower())[:MAX_TERM_CHARS] for text in _names_and_parts(token)])
    return tuple(term[:MAX_TERM_CHARS] for term, _, _ in _placed(token))


def _names_and_parts(token: str) -> list[str]:
    """What `_placed_in_word` finds in most identifiers, without its places: indexing does not pay for them."""
    names = [name for name in _SEPARATOR.split(token) if name]
    parts = [_ASCII_PART.findall(name) for name in names]
    if parts == [[token]] or not any(parts):
        return [token] if parts[0] else []
    found = [token]
    for name, within in zip(names, parts, strict=True):
        if len(within) > 1 and len(names) > 1:
            found.append(name)
        found += within
    return found


def plain_spellings(term: str) -> tuple[str, ...]:
    """How those write a term who leave out its accents: `résumé` as `resume`, `müller` as `muller` and `mueller`."""
    if term.isascii():
        return ()
    bare = _ACCENT.sub("", unicodedata.normalize("NFKD", term)).translate(_LETTERS)
    # Composed again: what is not an accent, as in Hangul or kana, stays.
    written = (unicodedata.normalize("NFC", bare), term.translate(_UMLAUTS))
    return tuple(dict.fromkeys(_stem(one) for one in written if one and one != term))


def _placed(token: str) -> Iterator[Placed]:
    """The terms of one token, with their places in it."""
    if token.isascii():
        yield from _placed_in_word(token)
        return
    # One form for what looks the same: composed and decomposed accents, full-width letters, ligatures.
    composed = unicodedata.normalize("NFKC", token).translate(dict.fromkeys(map(ord, _INVISIBLE)))
    if composed != token:
        for inner in tokens_of(composed):
            yield from ((term, 0, len(token)) for term, _, _ in _placed(inner))
        return
    begin = 0
    for at, run in enumerate(_SCRIPTS.split(token) if _HAS_UNSPACED.search(token) else (token,)):
        word = run.strip(_SEPARATORS)
        before = begin + len(run) - len(run.lstrip(_SEPARATORS))
        if word:
            placed = _placed_in_run(run) if at % 2 else _placed_in_word(word)
            yield from ((term, before + start, before + end) for term, start, end in placed)
        begin += len(run)


def _placed_in_run(run: str) -> Iterator[Placed]:
    """No spaces between words: pairs of characters, as Lucene's CJK analyzer makes them.

    Also single ones that may be a word: an ideograph, a consonant with its vowel signs.
    """
    clusters = [found.span() for found in _CLUSTER.finditer(run)]
    for (start, end), after in zip(clusters, [*clusters[1:], None], strict=True):
        if len(clusters) == 1 or end - start > 1 or _IDEOGRAPH.match(run, start):
            yield run[start:end], start, end
        if after:
            yield run[start : after[1]], start, after[1]


def _placed_in_word(token: str) -> Iterator[Placed]:
    cleaned = _without_apostrophe(token)
    kept = _kept_places(token, cleaned)
    if _DIGIT.search(cleaned) and (version := _VERSION.fullmatch(cleaned)):
        yield version[0].casefold().removeprefix("v"), 0, len(token)
        if version[2]:
            yield version[1], kept[version.start(1)], kept[version.end(1) - 1] + 1
        return
    names = _names(cleaned)
    parts = [part for _, within in names for part in within]
    if not parts:  # a ruler of underscores
        return
    # Wholes are stemmed, too: whoever writes `numpy` means `NumPy`, and that word is stemmed.
    found = [(cleaned.replace(",", ""), 0, len(cleaned))]
    if parts != [(cleaned, 0)]:
        for name, within in names:
            if len(names) > 1 and len(within) > 1 and name:
                found.append((name[0], *name.span()))
            found += [(part, at, at + len(part)) for part, at in within]
    for text, start, end in found:
        term = _stem(text.casefold())
        is_whole = start == 0 and end == len(cleaned)
        place = (kept[start], len(token) if is_whole else kept[end - 1] + 1)
        yield term, *place
        if not term.isascii():
            yield from ((f"{PLAIN_SPELLING}{plain}", *place) for plain in plain_spellings(term))


def _names(word: str) -> list[tuple[re.Match[str] | None, list[tuple[str, int]]]]:
    """What stands between separators, with its parts and where they begin; numbers are in one part, and no name."""
    found: list[tuple[re.Match[str] | None, list[tuple[str, int]]]] = []
    begin = 0
    numbers = _NUMBER.finditer(word) if _DIGIT.search(word) else ()
    for number in [*numbers, None]:
        for name in _NAME.finditer(word, begin, number.start() if number else len(word)):
            within = [(part[0], part.start()) for part in _PART.finditer(word, *name.span())]
            if (signed := _SIGNED.match(name[0])) and len(signed[0]) < len(name[0]):
                within.insert(0, (signed[0], name.start()))
            found.append((name, within))
        if number:
            found.append((None, _of_number(number[1], number.start(1))))
            begin = number.end()
    return found


def _of_number(number: str, at: int) -> list[tuple[str, int]]:
    """A number, and of a day the month and the year: 2024-05-01 is found by 2024-05, too."""
    if "-" not in number:
        return [(number, at)]
    return [(number, at), (number[:7], at), (number[:4], at)]


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
