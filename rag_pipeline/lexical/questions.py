"""A question to weighted terms: what of it a chunk should hold, and how much each term says."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Final

from rag_pipeline.lexical.analyzer import PLAIN_SPELLING, plain_spellings, terms_of, terms_of_token, tokens_of

FUNCTION_WORD_WEIGHT: Final = 0.2
"""Against 1 for every other term. Weighed like the rest, `how`, `the` and `does` outvote the words that matter where
they are rare, as in code, which has no articles (docs/retrieval.md has the figures)."""

EXACT_WEIGHT: Final = 3.0
"""Of a version, an address, a day or a decimal. Who writes `16.2` means no other number, and its neighbours in meaning
are pages about versions in general: in a small index its rarity alone would not outvote them."""
_EXACT: Final = re.compile(r"\d[.:-]\d")

_A_WORD: Final = 4
"""Letters: shorter parts are held by chance, and shorter words are similar to too many others."""
_LONG: Final = 8
_MOST_SLIPS: Final = 2
_MOST_MEANT: Final = 3
_OTHER_SPELLING: Final = 0.5
_OTHER_ACCENTS: Final = 0.1
_FUNCTION_WORDS: Final = frozenset(
    terms_of(
        "how what when where why who which whose whom do does did can could should would will i you we my your our me "
        "us is are was were be been am there the a an of to in on for with and or it its this that these those if "
        "from by as at"
    )
)


def weighted_terms(question: str, *, function_words: float = FUNCTION_WORD_WEIGHT) -> dict[str, float]:
    """The distinct terms of a question, in reading order, and the factor of each in its BM25 sum.

    A term that is asked for twice counts once: questions repeat words for grammar, not for emphasis. Other spellings of
    a word are not among them, see `other_spellings`; nor is a character of a longer word in a script without spaces.
    """
    terms = [term for term in terms_of(question) if not term.startswith(PLAIN_SPELLING)]
    pairs = "\n".join(term for term in terms if not term.isascii() and len(term) > 1)
    whole = [term for term in terms if term.isascii() or term not in pairs or f"\n{term}\n" in f"\n{pairs}\n"]
    return {term: _weight(term, function_words) for term in whole}


def _weight(term: str, function_words: float) -> float:
    if term in _FUNCTION_WORDS:
        return function_words
    return EXACT_WEIGHT if _EXACT.search(term) else 1.0


def other_spellings(term: str) -> dict[str, float]:
    """What else a term may be written as, and what that counts where the term itself is known, too.

    Of a word with accents the one without and, for little, the same word with other accents: a page that holds the word
    as it was asked for holds those, too. Of a word without accents all that have some.
    """
    if term in _FUNCTION_WORDS or not any(letter.isalpha() for letter in term):
        return {}
    plain = plain_spellings(term)
    if not plain:
        return {f"{PLAIN_SPELLING}{term}": _OTHER_SPELLING}
    return dict.fromkeys(plain, _OTHER_SPELLING) | {f"{PLAIN_SPELLING}{plain[0]}": _OTHER_ACCENTS}


def known_share(question: str, held: Collection[str]) -> float | None:
    """How much of a question's words some document holds, by their lengths, 0 to 1; None: it has function words alone.

    `held`: the terms of the question that are held. A part of an identifier counts when it is a word itself: what is
    left of a random string, such as two letters or a number, is held by chance.
    """
    every = [token for token in tokens_of(question) if terms_of_token(token)]
    tokens = [token for token in every if terms_of_token(token)[0] not in _FUNCTION_WORDS]
    if not tokens:
        return None if every else 0.0
    # In bytes: a Chinese character says as much as several Latin letters.
    lengths = {token: len(token.encode()) for token in tokens}
    known = sum(length for token, length in lengths.items() if _is_known(token, held))
    return known / sum(lengths.values())


def _is_known(token: str, held: Collection[str]) -> bool:
    terms = terms_of_token(token)
    if terms[0] in held:
        return True
    return any(term in held and (not term.isascii() or (len(term) >= _A_WORD and term.isalpha())) for term in terms)


def unknown_words(question: str, held: Collection[str]) -> dict[str, str]:
    """Words of a question that no document holds in any spelling, each with its term, to look for similar ones.

    Plain words only: what is similar to a number, a version or an identifier is another one.
    """
    found = {}
    for token in tokens_of(question):
        terms = [term for term in terms_of_token(token) if not term.startswith(PLAIN_SPELLING)]
        is_plain = token.isalpha() and len(terms) == 1 and token[1:] == token[1:].lower()
        # What is left of a word without its ending, such as `pagin`, is similar to words of other endings.
        is_telling = is_plain and len(terms[0]) > (_A_WORD if len(token) <= len(terms[0]) + 1 else _A_WORD + 1)
        if is_telling and terms[0] not in held and terms[0] not in _FUNCTION_WORDS:
            found[token] = terms[0]
    return found


def closest(term: str, candidates: Sequence[str]) -> list[str]:
    """Those of some terms that a misspelt one is most likely meant to be: none, where none is close enough.

    One slip of the keyboard apart; long words two, which begin alike. A shorter candidate is close to too much.
    """
    slips = {one: _slips(term, one) for one in candidates if one.isalpha() and len(one) > _A_WORD}
    fewest = min(slips.values(), default=_MOST_SLIPS + 1)
    if fewest > 1 and len(term) < _LONG:
        return []
    close = [one for one, count in slips.items() if count == fewest and (count == 1 or one[0] == term[0])]
    return close[:_MOST_MEANT] if fewest <= _MOST_SLIPS else []


def _slips(one: str, other: str) -> int:
    """How many letters were added, left out, replaced or exchanged with the next one (Damerau 1964)."""
    before: list[int] = []
    last = list(range(len(other) + 1))
    for row, letter in enumerate(one, start=1):
        now = [row]
        for at, expected in enumerate(other, start=1):
            least = min(last[at] + 1, now[at - 1] + 1, last[at - 1] + (letter != expected))
            if row > 1 and at > 1 and letter == other[at - 2] and one[row - 2] == expected:
                least = min(least, before[at - 2] + 1)
            now.append(least)
        before, last = last, now
    return last[-1]
