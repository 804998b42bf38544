"""Passwords that a sentence gives: `the admin password for Jenkins is …`, `login: bob / …`, `Passwort: …`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from rag_pipeline.documents.redaction.plausible import is_plausible
from rag_pipeline.documents.redaction.spans import Finding, places
from rag_pipeline.documents.redaction.values import is_easy

_FOREIGN_ASCII: Final = ("kennwort", "wachtwoord", "senha", "contrasena", "adgangskode", "salasana")
"""Words for a password that do not hold `pass`, in small letters; the engine looks for the same."""
_FOREIGN: Final = {
    "ñ": "contraseña",
    "ł": "hasło",
    "ö": "lösenord",
    "ş": "şifre",
    "п": "пароль",
    "密": "密码",
    "碼": "密碼",
    "ワ": "パスワード",
    "번": "비밀번호",
}
"""Others, by a letter that few texts hold."""
_PAIRS: Final = ("login", "zugangsdaten", "identifiants", "log in")
"""Words that a user and a password may follow."""

_WORD = rf"(?:pass(?:word|wort|phrase|code|wd|e)?|pwd?|{'|'.join((*_FOREIGN_ASCII, *_FOREIGN.values()))})"
_ABOUT = (
    r"[ \t]*\([^()\n]{1,40}\)"
    r"|[ \t]+(?:for|of|to|on|in|at|from|für|zu|zum|zur|vom|von|des|der|de|du|del|da|do|para|pour|voor|van|till|di)"
    r"[ \t]+(?:[^\n:=.;!?\"'`|<>]|\.(?=\w)){1,60}?"
)
"""What the password is for."""
_VERB = (
    r"(?:is|was|has been|lautet|ist|war|est|es|é|è|är|jest)"
    r"(?:[ \t]+(?:now|currently|still|always|set|changed|reset|updated|jetzt|maintenant|ahora|agora)){0,2}"
    r"(?:[ \t]+(?:to|as))?"
)
_VALUE = r"(?P<quote>[\"'`“”„«»‘’*_]{0,3})(?P<value>[^\s\"'`“”„«»‘’<>|]{4,100})"
_STATED = re.compile(
    rf"{_WORD}\b[\"'`*_]{{0,3}}"
    rf"(?:(?P<about>{_ABOUT})?(?:[ \t]*(?P<sign>[-=]>|[:：=→])[*_]{{0,2}}[ \t]*|[ \t]+{_VERB}[ \t]*:?[ \t]+)"
    rf"|(?P<given>[ \t]+)){_VALUE}",
    re.IGNORECASE,
)
_GIVEN_BEFORE = re.compile(
    r"\b(?:(?:use|using|with|enter|type|try|mit|avec|con|com)(?:[ \t]+(?:the|das|dem|le|la|o|a))?"
    r"|user(?:name)?:?[ \t]+\S{1,60})[ \t]+(?:and[ \t]+)?\Z",
    re.IGNORECASE,
)
_USER = r"[\"'`*_]{0,3}[A-Za-z][\w.@+-]{0,60}[\"'`*_]{0,3}"
_PAIR = re.compile(
    rf"(?:login|cred(?:ential)?s?|zugangsdaten|identifiants|credenciales|credenciais)\b[^\n:=/]{{0,30}}[:=][ \t]*"
    rf"{_USER}[ \t]*[/:|][ \t]*{_VALUE}",
    re.IGNORECASE,
)
_LOG_IN = re.compile(rf"log in (?:to [^\n]{{1,40}}? )?(?:as|with) {_USER} (?:with|and|using|/) {_VALUE}", re.IGNORECASE)
_ENDS_CLAUSE = re.compile(r"[\"'`“”„«»‘’*_]{0,3}(?:[.,;)!]*(?=\s|\Z)|[ \t]+(?:for|to|on|and|für|pour|para)\b)")
_TRAILING: Final = ".,;:)"


def find_stated(text: str, at: int, *, code: bool) -> Iterator[Finding]:
    """The password that the sentence gives whose word for one begins there."""
    stated = _STATED.match(text, at)
    if stated is None or (stated["sign"] and (code or not stated["about"]) and text[at] in "pP"):
        return  # a sign right behind the name assigns, which `assignments` judges
    if stated["given"] and not _GIVEN_BEFORE.search(text, max(0, at - 80), at):
        return
    yield from _judged(
        text, stated.start("value"), stated["value"], quote=stated["quote"], is_sure=bool(stated["sign"])
    )


def find_foreign(text: str, lowered: str, *, has_words: bool, code: bool) -> Iterator[Finding]:
    """Passwords after a word of another language for one; `has_words` is what the engine says of the text."""
    words = [*_FOREIGN_ASCII] if has_words else []
    if not lowered.isascii():
        words += [word for letter, word in _FOREIGN.items() if letter in lowered]
    for word in words:
        for at in places(lowered, word):
            yield from find_stated(text, at, code=code)


def find_pairs(text: str, lowered: str) -> Iterator[Finding]:
    """Passwords after their user: `login: admin / …`; `lowered` is the text in small letters."""
    for word in _PAIRS:
        for at in places(lowered, word):
            yield from find_pair(text, at)


def find_pair(text: str, at: int) -> Iterator[Finding]:
    """The password of the pair whose name begins there: `credentials: admin / …`."""
    if pair := _PAIR.match(text, at) or _LOG_IN.match(text, at):
        yield from _judged(text, pair.start("value"), pair["value"], quote="", is_sure=True)


def _judged(text: str, start: int, value: str, *, quote: str, is_sure: bool) -> Iterator[Finding]:
    value = value.rstrip(_TRAILING)
    end = start + len(value)
    is_quoted = bool(quote.strip("*_"))
    # At the end of a clause stands no word that others explain.
    is_loose = not is_sure and not (is_easy(value) and _ENDS_CLAUSE.match(text, end))
    if not value.startswith("/") and is_plausible("password", "password", value, quoted=is_quoted, loose=is_loose):
        yield Finding(kind="password", start=start, end=end, rank=6)
