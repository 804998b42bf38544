"""What a text says, as far as its words tell: the terms that carry it, how rare they are, and which language it is in.

Pure. The terms are those of the lexical index, so that `run_days()` and "days that are run" meet.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Final

from rag_pipeline.lexical.analyzer import terms_of
from rag_pipeline.lexical.questions import weighted_terms

_FUNCTION_WORDS: Final = {
    "en": """
        the a an and or but if then than so as at by for from in into of on onto out over to under up with without about
        is are was were be been being am do does did done has have had having can could should would will shall may
        might must it its this that these those there here he she they them their his her you your we our us i me my
        what which who whom whose when where why how not no also just only very more most some any all each every both
        please tell know want need get like use used using while because per via etc
    """,
    "de": """
        der die das den dem des ein eine einen einem einer eines und oder aber wenn dann als so am an auf aus bei bis
        durch für gegen hinter im in ins mit nach ohne über um unter vom von vor zu zum zur zwischen ist sind war waren
        sein wird werden wurde kann können könnte soll sollte muss müssen darf hat haben hatte es er sie wir ihr ich du
        mich mir dich dir uns was welche welcher welches wer wen wem wann wo warum wie nicht kein keine auch nur noch
        sehr mehr man sich dass weil ob dieser diese dieses
    """,
    "fr": """
        le la les un une des du de et ou mais si alors que qui quoi dont où au aux avec sans dans en par pour sur sous
        vers chez est sont était être été a ont avoir peut peuvent doit fait faire il elle ils elles nous vous je tu on
        ce cette ces cet son sa ses leur leurs mon ma mes quand comment pourquoi quel quelle quels quelles ne pas plus
        aussi très se y
    """,
    "es": """
        el la los las un una unos unas y o pero si entonces que quien cual cuales donde al del de con sin en por para
        sobre entre hacia es son era ser sido está están estar ha han haber puede pueden debe hace hacer él ella ellos
        nosotros usted yo tú lo le les se su sus mi mis este esta estos estas ese esa cómo cuándo qué quién cuál dónde
        no más también muy hay
    """,
    "it": """
        il lo la i gli le un uno una e o ma se allora che chi cui dove al allo alla del dello della dei delle di da con
        senza in nel nella per su tra fra è sono era essere stato ha hanno avere può possono deve fa fare egli essa noi
        voi io tu si suo sua suoi mio mia questo questa questi queste come quando perché quale quali non più anche molto
    """,
    "pt": """
        o a os as um uma uns umas e ou mas se então que quem qual quais onde ao aos à do da dos das de com sem em no na
        nos nas por para sobre entre é são era ser foi está estão estar tem têm ter pode podem deve faz fazer ele ela
        eles nós você eu tu seu sua seus meu minha este esta isto como quando porquê não mais também muito
    """,
}
_WORD: Final = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_BY_LANGUAGE: Final[Mapping[str, frozenset[str]]] = {
    language: frozenset(words.split()) for language, words in _FUNCTION_WORDS.items()
}
_EMPTY: Final = frozenset(term for words in _FUNCTION_WORDS.values() for term in terms_of(words)) | frozenset(
    term for term, weight in weighted_terms(_FUNCTION_WORDS["en"]).items() if weight < 1
)
_SCRIPTS: Final = {
    "cjk": re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"),
    "cyrillic": re.compile(r"[\u0400-\u04ff]"),
    "arabic": re.compile(r"[\u0600-\u06ff]"),
    "hebrew": re.compile(r"[\u0590-\u05ff]"),
    "greek": re.compile(r"[\u0370-\u03ff]"),
    "devanagari": re.compile(r"[\u0900-\u097f]"),
    "thai": re.compile(r"[\u0e00-\u0e7f]"),
}
_IDENTIFIER: Final = re.compile(r"\w*[\d_]\w*|\w+(?:[./:@-]\w+)+|[a-z]+[A-Z]\w*|[A-Z]{2,}\w*|\d[\d.,]*")
_NEGATION: Final = re.compile(
    r"\b(?:not|no|never|none|neither|nor|cannot|without|nicht|kein\w*|nie|niemals|ohne|pas|jamais|aucune?|sans|nunca|"
    r"ningún|ninguna|sin|non|mai|senza|não|nunca|sem)\b|\b\w+n['’]t\b",
    re.IGNORECASE,
)


_SENTENCE_END: Final = re.compile(
    r"(?<=[.!?])\s+|(?<=[。！？])|\n\s*\n|\n(?=[ \t]*(?:[-*+|]|#{1,6}|\d+[.)])\s)|^#{1,6}\s[^\n]*\n", re.MULTILINE
)


def content_terms(text: str) -> list[str]:
    """The distinct terms of a text that carry what it says, in reading order; words of grammar are left out."""
    return [term for term in dict.fromkeys(terms_of(text)) if term not in _EMPTY]


def identifiers(text: str) -> Set[str]:
    """Terms of what is written alike in every language: numbers, names in code, abbreviations."""
    return frozenset(term for found in _IDENTIFIER.findall(text) for term in terms_of(found))


def numbers(text: str) -> Set[str]:
    """Numbers of a text as they are written, but without thousands' separators."""
    found = re.findall(r"\d+(?:[.,]\d+)*", text)
    return frozenset(_plain(number) for number in found)


def is_negated(text: str) -> bool:
    """Whether a sentence denies something."""
    return _NEGATION.search(text) is not None


def language_of(text: str) -> str:
    """`en`, `de`, … or the name of a script; empty where nothing tells. Reads the first 2,000 characters."""
    text = text[:2000]
    letters = sum(char.isalpha() for char in text)
    for name, script in _SCRIPTS.items():
        if letters and len(script.findall(text)) > 0.3 * letters:
            return name
    words = Counter(word.lower() for word in _WORD.findall(text))
    counts = {
        language: sum(words[word] for word in common if word in words) for language, common in _BY_LANGUAGE.items()
    }
    language, most = max(counts.items(), key=lambda pair: pair[1])
    others = max((count for name, count in counts.items() if name != language), default=0)
    return language if most >= 2 and most > others else ""


def rarities(texts: Sequence[str]) -> Rarity:
    """How much a term says among these texts."""
    holding = Counter(term for text in texts for term in set(terms_of(text)))
    return Rarity(holding, texts=len(texts))


class Rarity:
    """Weights of terms by how few of some texts hold them."""

    def __init__(self, holding: Mapping[str, int], *, texts: int) -> None:
        self._holding = holding
        self._texts = texts

    def of(self, term: str) -> float:
        """From about a third for a term that every text holds; most for one that none of them does."""
        return math.log(1 + (self._texts + 1) / (self._holding.get(term, 0) + 0.5)) / math.log(3)

    def total(self, terms: Iterable[str]) -> float:
        """Of all of them together."""
        return sum(self.of(term) for term in terms)


def _plain(number: str) -> str:
    """1,000 and 1000 are the same number; 3.10 and 3.1 are two versions."""
    return re.sub(r"(?<=\d),(?=\d{3}(?:\D|$))", "", number)


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Where the sentences of a text begin and end, roughly: between full stops, empty lines and items of lists."""
    ends = [found.end() for found in _SENTENCE_END.finditer(text)]
    return [span for span in zip([0, *ends], [*ends, len(text)], strict=True) if text[span[0] : span[1]].strip()]


def sentences(text: str) -> list[str]:
    """The sentences of a text."""
    return [text[start:end].strip() for start, end in sentence_spans(text)]
