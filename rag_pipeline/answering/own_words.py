"""What an answer says without a source: that nothing is known, borne out or asked. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from rag_pipeline.answering.links import plain
from rag_pipeline.answering.terms import language_of
from rag_pipeline.model import SearchHit

_NAMED: Final = 3
_MOST_CHARS: Final = 200
_UNKNOWN: Final = {
    "en": "I do not know: nothing that was found answers this.",
    "de": "Das weiß ich nicht: Nichts, was gefunden wurde, beantwortet diese Frage.",
    "fr": "Je ne sais pas : rien de ce qui a été trouvé ne répond à cette question.",
    "es": "No lo sé: nada de lo que se encontró responde a esta pregunta.",
}
_LOOKED_FOR: Final = {
    "en": "Looked for: “{asked}”.",
    "de": "Gesucht wurde: „{asked}“.",
    "fr": "Recherché : « {asked} ».",
    "es": "Se buscó: «{asked}».",
}
_CLOSEST: Final = {
    "en": "Closest to it: {titles}.",
    "de": "Am nächsten kommt: {titles}.",
    "fr": "Le plus proche : {titles}.",
    "es": "Lo más cercano: {titles}.",
}
_NOT_BORNE_OUT: Final = {
    "en": "Careful: the sources that were found do not bear this answer out.",
    "de": "Vorsicht: Die gefundenen Quellen belegen diese Antwort nicht.",
    "fr": "Attention : les sources trouvées ne confirment pas cette réponse.",
    "es": "Atención: las fuentes encontradas no respaldan esta respuesta.",
}
_PLEASANTRY: Final = {
    "en": "Hello! Ask me something about what is indexed.",
    "de": "Hallo! Fragen Sie mich etwas über das, was indexiert ist.",
    "fr": "Bonjour ! Posez-moi une question sur ce qui est indexé.",
    "es": "¡Hola! Pregúnteme algo sobre lo que está indexado.",
}
# Of a text without a citation, in the languages that models answer in most.
_SAYS_UNKNOWN: Final = re.compile(
    r"\b(?:(?:do|does|did|could|can) ?(?:not|n['’]t) (?:know|contain|mention|provide|say|specify|include|find|answer|"
    r"have (?:enough |that |this |any )?information)|not (?:mentioned|specified|provided|stated|covered)|"
    r"no (?:information|mention)|unable to (?:find|answer)|weiß (?:ich )?nicht|keine (?:information|angabe)|"
    r"nicht (?:erwähnt|angegeben)|ne (?:sais|contient|mentionne|précise)\w* pas|aucune information|no (?:lo )?sé|"
    r"no (?:contiene|menciona|especifica)\w*|ninguna información)",
    re.IGNORECASE,
)


def not_known(asked: str, hits: Sequence[SearchHit]) -> str:
    """That nobody knows, what was looked for, and where one might look on."""
    parts = [
        _in_language_of(asked, _UNKNOWN),
        _in_language_of(asked, _LOOKED_FOR).format(asked=plain(asked, max_chars=_MOST_CHARS)),
    ]
    titles = list(dict.fromkeys(title for hit in hits if (title := plain(hit.title, max_chars=_MOST_CHARS))))
    if titles:
        parts.append(_in_language_of(asked, _CLOSEST).format(titles="; ".join(titles[:_NAMED])))
    return " ".join(parts)


def not_borne_out(question: str) -> str:
    """What an answer begins with that its sources do not support."""
    return _in_language_of(question, _NOT_BORNE_OUT)


def pleasantry(message: str) -> str:
    """What small talk is answered with."""
    return _in_language_of(message, _PLEASANTRY)


def says_unknown(text: str) -> bool:
    """Whether a text without a source says that it does not know."""
    return _SAYS_UNKNOWN.search(text) is not None


def _in_language_of(text: str, words: Mapping[str, str]) -> str:
    return words.get(language_of(text), words["en"])
