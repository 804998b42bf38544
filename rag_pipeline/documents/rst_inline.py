"""Inline markup of reStructuredText: roles, links and substitutions, less what is no word."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from rag_pipeline.documents.edits import GONE, Edit
from rag_pipeline.documents.link_words import carries_words

_MARK = re.compile(
    r"``(?:[^`\n]++|`(?!`)|\n(?![ \t]*\n))*+``"
    r"|\\."
    r"|(?P<role>:(?P<name>[A-Za-z][\w+.-]*(?::[A-Za-z][\w+.-]*){0,3}):)?"
    r"`(?P<text>(?:[^`\n\\]++|\\.|\n(?![ \t]*(?:\n|\Z)))++)`"
    r"(?P<post>:[A-Za-z][\w+.-]*:)?(?P<refers>_{0,2}(?!\w))"
)
REFERENCE: Final = (
    r"\|(?P<substitution>[^\s|`](?:[^|`\n]{0,98}[^\s|`])?|[^\s|`][^|`\n]{0,60}\n[^|`\n]{0,60}[^\s|`])"
    r"\|_{0,2}(?!\w)"
)
"""A substitution's name between bars, on one line or two."""
_MARK_OR_REFERENCE = re.compile(f"{_MARK.pattern}|{REFERENCE}")
_QUOTED_OR_REFERENCE = re.compile(rf"``[^`\n]+``|`[^`\n]+`|(?<![^\s(]){REFERENCE}")
_LITERAL_ROLES = "math code samp kbd raw command file literal regexp program"
_AS_THEY_ARE: Final = frozenset(_LITERAL_ROLES.split())
_SPELT_OUT: Final = {"pep": "PEP ", "rfc": "RFC ", "cve": "CVE-", "cwe": "CWE-"}
_NUMBERS = re.compile(r"#?\d+\Z")


class Substitution(NamedTuple):
    """What stands in a reference's place, and whether the white space around it goes."""

    words: str
    trims_before: bool = False
    trims_after: bool = False


@dataclass(slots=True)
class Substitutions:
    """The definitions of one file; what it does not define is not known, and its references stay as they are."""

    defined: dict[str, Substitution] = field(default_factory=dict)
    room: int = 0
    """So many characters may still be put in: definitions that name each other must not fill the memory."""

    def __bool__(self) -> bool:
        return bool(self.defined)

    def find(self, name: str) -> Substitution | None:
        """What the reference stands for; None when it is not defined here."""
        key = " ".join(name.split())
        found = self.defined.get(key) or self.defined.get(key.lower())
        if found is None or len(found.words) > self.room:
            return None
        self.room -= len(found.words)
        return found


def inline_edits(text: str, start: int, end: int, substitutions: Substitutions | None = None) -> list[Edit]:
    """Edits that leave the words of the roles and links between these places; literals stay as they are.

    References to `substitutions` become what they stand for.
    """
    edits: list[Edit] = []
    for mark in (_MARK_OR_REFERENCE if substitutions else _MARK).finditer(text, start, end):
        if mark["text"] is None:
            if substitutions and mark["substitution"] and (found := substitutions.find(mark["substitution"])):
                edits.append(_substituted(mark, found))
            continue
        if mark["name"]:
            edits += _role_edits(mark)
        elif mark["post"]:
            edits += _unquoted(mark)
        elif mark["refers"]:
            edits += _link_edits(mark)
    return edits


def _role_edits(mark: re.Match[str]) -> list[Edit]:
    role = mark["name"].rpartition(":")[2].lower()
    text, at = mark["text"], mark.start("text")
    if role in _AS_THEY_ARE:
        return _unquoted(mark)
    words, target = _parts(text)
    if words:
        # The target is an identifier or the name of a place in these documents, worth keeping when it says more.
        target = target.lstrip("!~")
        gap = text[len(words) : text.rfind("<", 0, text.rfind(target))] or " "
        kept = f"{gap}({target})" if carries_words(target, text=words) else ""
        return [(mark.start(), at, ""), (at + len(words), mark.end(), kept)]
    skipped = len(text) - len(text.lstrip("!~"))
    if text[skipped : skipped + 1] == "." and text[skipped + 1 : skipped + 2].isalpha():
        skipped += 1  # Sphinx looks for it in every module
    label = _SPELT_OUT.get(role, f"{role} " if _NUMBERS.match(text) else "")
    return [(mark.start(), at + skipped, label), (mark.end("text"), mark.end(), "")]


def reference_edits(text: str, start: int, end: int, substitutions: Substitutions) -> list[Edit]:
    """Edits of references alone, for tables: a bar directly behind a word is the edge of a cell."""
    return [
        _substituted(mark, found)
        for mark in _QUOTED_OR_REFERENCE.finditer(text, start, end)
        if mark["substitution"] and (found := substitutions.find(mark["substitution"]))
    ]


def _substituted(mark: re.Match[str], found: Substitution) -> Edit:
    start, end, text = mark.start(), mark.end(), mark.string
    if found.trims_before:
        start -= text.startswith(" ", max(0, start - 1), start)
    if found.trims_after and text.startswith(" ", end):
        end += 1
    return start, end, found.words or GONE


def _link_edits(mark: re.Match[str]) -> list[Edit]:
    at = mark.start("text")
    words, target = _parts(mark["text"])
    if not words:
        return _unquoted(mark)
    if carries_words(target.rstrip("_"), text=words):
        return []
    return [(mark.start(), at, ""), (at + len(words), mark.end(), "")]


def _parts(text: str) -> tuple[str, str]:
    """The words and the target of `words <target>`; no words where there is no target."""
    whole = text.rstrip()
    opening = max(whole.rfind(" <"), whole.rfind("\n<"))
    if not whole.endswith(">") or (opening < 0 and whole[0] != "<"):
        return "", ""
    return whole[: max(opening, 0)].rstrip(), whole[opening + 2 : -1]


def _unquoted(mark: re.Match[str]) -> list[Edit]:
    return [(mark.start(), mark.start("text"), ""), (mark.end("text"), mark.end(), "")]
