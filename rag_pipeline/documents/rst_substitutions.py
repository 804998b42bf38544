"""Substitutions of reStructuredText: what `|name|` stands for, as far as the file itself says it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from rag_pipeline.documents.edits import edited
from rag_pipeline.documents.link_words import image_words, is_badge
from rag_pipeline.documents.rst_inline import REFERENCE, Substitution, Substitutions, inline_edits

_MAX_VALUE_CHARS: Final = 1000
_MAX_DEPTH: Final = 5
_BEGIN = re.compile(r"\.\.[ \t]+\|")
_DEFINITION = re.compile(
    r"(?P<indent>[ \t]*)\.\.[ \t]+\|(?P<name>[^|\n]{1,200})\|[ \t]+"
    r"(?P<kind>replace|unicode|image)::[ \t]*(?P<value>[^\n]*)"
    r"(?P<body>(?:\n(?P=indent)[ \t]+\S[^\n]*)*+)"
)
_REFERENCE = re.compile(REFERENCE)
_OPTION = re.compile(r"[ \t]*:(?P<name>[\w-]+):[ \t]*(?P<value>.*)$")
_CODE = re.compile(
    r"(?:0x|x|\\x|U\+|u|\\u)(?P<hex>[0-9A-Fa-f]{1,6})|&#x(?P<xml>[0-9A-Fa-f]{1,6});|(?P<decimal>\d{1,7})"
)


def read_substitutions(text: str) -> Substitutions:
    """The substitutions that a text defines, also below their use; the first definition of a name counts."""
    found = Substitutions(room=2 * len(text) + 100_000)
    if ".. |" not in text and "..\t|" not in text and "..  |" not in text:
        return found
    raw: dict[str, Substitution] = {}
    for definition in _definitions(text):
        name = " ".join(definition["name"].split())
        if value := _value(definition, name):
            raw.setdefault(name, value)
    for name, value in raw.items():
        words = _resolved(value.words, raw)
        known = value._replace(words=edited(words, inline_edits(words, 0, len(words)))[0])
        found.defined[name] = known
        found.defined.setdefault(name.lower(), known)
    return found


def _definitions(text: str) -> Iterator[re.Match[str]]:
    end = 0
    for begin in _BEGIN.finditer(text):
        line = text.rfind("\n", 0, begin.start()) + 1
        if line >= end and (definition := _DEFINITION.match(text, line)):
            yield definition
            end = definition.end()


def _value(definition: re.Match[str], name: str) -> Substitution | None:
    options: dict[str, str] = {}
    words = [definition["value"]]
    for line in definition["body"].split("\n"):
        if option := _OPTION.match(line):
            options[option["name"]] = option["value"].strip()
        else:
            words.append(line.strip())
    value = " ".join(filter(None, words)).strip()[:_MAX_VALUE_CHARS]
    if definition["kind"] == "image":
        return None if not value else Substitution("" if is_badge(value) else image_words(options.get("alt") or name))
    if definition["kind"] == "unicode":
        value = "".join(map(_character, re.split(r"(?:^|[ \t])\.\.[ \t]", value)[0].split()))
    trims_all = "trim" in options
    return Substitution(value, trims_all or "ltrim" in options, trims_all or "rtrim" in options) if value else None


def _character(code: str) -> str:
    found = _CODE.fullmatch(code)
    if not found:
        return code
    number = int(found["decimal"]) if found["decimal"] else int(found["hex"] or found["xml"], 16)
    return chr(number) if 31 < number < 0x110000 and not 0xD800 <= number < 0xE000 else code


def _resolved(words: str, raw: dict[str, Substitution]) -> str:
    """The words with the substitutions in them replaced; those that name themselves stay."""
    for _ in range(_MAX_DEPTH):
        if "|" not in words:
            break
        words = "".join(_pieces(words, raw))[:_MAX_VALUE_CHARS]
    return words


def _pieces(words: str, raw: dict[str, Substitution]) -> Iterator[str]:
    at = 0
    for reference in _REFERENCE.finditer(words):
        known = raw.get(" ".join(reference["substitution"].split()))
        yield words[at : reference.start()]
        yield known.words if known else reference[0]
        at = reference.end()
    yield words[at:]
