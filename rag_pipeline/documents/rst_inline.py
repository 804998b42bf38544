"""Inline markup of reStructuredText: roles, links and substitutions, less what is no word."""

from __future__ import annotations

import re
from typing import Final

from rag_pipeline.documents.edits import Edit
from rag_pipeline.documents.link_words import carries_words

_MARK = re.compile(
    r"``(?:[^`\n]++|`(?!`)|\n(?![ \t]*\n))*+``"
    r"|\\."
    r"|(?P<role>:(?P<name>[A-Za-z][\w+.-]*(?::[A-Za-z][\w+.-]*){0,3}):)?"
    r"`(?P<text>(?:[^`\n\\]++|\\.|\n(?![ \t]*(?:\n|\Z)))++)`"
    r"(?P<post>:[A-Za-z][\w+.-]*:)?(?P<refers>_{0,2}(?!\w))"
)
_LITERAL_ROLES = "math code samp kbd raw command file literal regexp program"
_AS_THEY_ARE: Final = frozenset(_LITERAL_ROLES.split())
_SPELT_OUT: Final = {"pep": "PEP ", "rfc": "RFC ", "cve": "CVE-", "cwe": "CWE-"}
_NUMBERS = re.compile(r"#?\d+\Z")


def inline_edits(text: str, start: int, end: int) -> list[Edit]:
    """Edits that leave the words of the roles and links between these places; literals stay as they are."""
    edits: list[Edit] = []
    for mark in _MARK.finditer(text, start, end):
        if mark["text"] is None:
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
