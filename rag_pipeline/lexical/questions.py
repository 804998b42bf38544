"""A question to weighted terms: what of it a chunk should hold, and how much each term says."""

from __future__ import annotations

from typing import Final

from rag_pipeline.lexical.analyzer import PLAIN_SPELLING, plain_spellings, terms_of

FUNCTION_WORD_WEIGHT: Final = 0.2
"""Against 1 for every other term. Weighed like the rest, `how`, `the` and `does` outvote the words that matter where
they are rare, as in code, which has no articles (docs/retrieval.md has the figures)."""

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
    return {term: function_words if term in _FUNCTION_WORDS else 1.0 for term in whole}


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
