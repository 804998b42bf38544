"""Links, images and link definitions of markdown: which of their parts are words.

The patterns take each character once (possessive quantifiers) and never cross a blank line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from rag_pipeline.documents.edits import BREAK, GONE, Edit
from rag_pipeline.documents.link_words import carries_words, image_words, is_badge

MAX_LINK_CHARS: Final = 4000

_TITLE = r"(?:\"(?:[^\"\n]++|\n(?![ \t]*\n))*+\"|'(?:[^'\n]++|\n(?![ \t]*\n))*+'|\([^()\n]*+\))"
_TARGET = (
    r"\([ \t\n]*+(?:<(?P<angle>[^<>\n]*+)>|(?P<bare>(?!<)[^\s()]*+(?:\([^\s()]*+\)[^\s()]*+)*+))"
    rf"(?:[ \t\n]++(?P<title>{_TITLE}))?[ \t\n]*+\)"
)
_NESTED = r"!?\[(?:[^\[\]\\\n]++|\\.)*+\](?:\((?:[^()\n]++|\([^()\n]*+\))*+\)|\[[^\[\]\n]*+\])?"
LINK: Final = re.compile(
    rf"!?\[(?P<text>(?:[^\[\]\\\n]++|\\.|{_NESTED}|\n(?![ \t]*(?:\n|\Z)))*+)\]"
    rf"(?:{_TARGET}|(?P<ref>\[[^\[\]\n]*+\]))"
)
"""A link or an image, with its target or the name of its definition; its text may hold another one."""
SIMPLE_LINK: Final = re.compile(r"\[(?P<text>(?:[^\[\]`<\\!\n]++|`[^`\[\]\n]++`)++)\]\((?P<bare>[^\s()<>]++)\)")
"""Most links, found sooner."""
DEFINITION: Final = re.compile(
    r" {0,3}\[(?!\^)(?P<id>(?:[^\[\]\\\n]++|\\.)++)\]:[ \t]*(?:<(?P<angle>[^<>\n]*)>|(?P<bare>[^\s<]\S*))"
    rf"(?:[ \t]+(?P<title>{_TITLE}))?[ \t]*(?=\n|\Z)"
)
"""A line that gives a link's target a name."""
_DEFINITIONS = re.compile(r"^" + DEFINITION.pattern, re.MULTILINE)
_COMMENT_IDS = frozenset(["//", "comment", "#"])
_WORD = re.compile(r"\w")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Defined:
    target: str
    kept: bool
    """It says more than its name does, so it stays, and so do the links that name it."""


@dataclass(slots=True, kw_only=True)
class Links:
    """Judges the links of one text."""

    text: str
    edits: list[Edit]
    _definitions: dict[str, _Defined] | None = field(default=None)

    def take_definition(self, found: re.Match[str]) -> None:
        """Cut a definition that carries no words."""
        if not self._defined(found["id"], found).kept:
            self.edits.append((found.start(), found.end(), GONE))

    def take_image(self, found: re.Match[str]) -> None:
        """Put an image's words in its place."""
        source = self._target(found)
        if source is None:
            return
        words = "" if is_badge(source) else image_words(found["text"])
        self.edits.append((found.start(), found.end(), BREAK + words))

    def take_simple_link(self, found: re.Match[str]) -> None:
        """Cut the target and the brackets of a link whose text says it all."""
        text, target = found.groups()
        if not carries_words(target, text=text):
            start, end = found.span()
            self.edits += ((start, start + 1, ""), (start + 1 + len(text), end, ""))

    def take_link(self, found: re.Match[str], *, first_inner: int) -> None:
        """Cut a link's target and brackets where its text says it all; `first_inner` edits were made before its text.

        A link whose text is gone goes with it.
        """
        target = self._target(found)
        if target is None:
            return
        text = found["text"]
        if len(self.edits) > first_inner:
            text = self._inner(found, first_inner)
            if not _WORD.search(text):
                self.edits.append((found.start(), found.end(), GONE))
                return
        if found["ref"]:
            defined = self._named(found)
            if defined is None or defined.kept or carries_words(found["ref"].strip("[]"), text=text):
                return
        elif carries_words(target, text=text) or (found["title"] and carries_words(found["title"], text=text)):
            return
        if not text.strip():
            self.edits.append((found.start(), found.end(), GONE))
            return
        self.edits.append((found.start(), found.start() + 1, ""))
        self.edits.append((found.end("text"), found.end(), ""))

    def _inner(self, found: re.Match[str], first: int) -> str:
        """The link's text after the edits made in it."""
        pieces: list[str] = []
        at = found.start("text")
        for start, end, words in sorted(self.edits[first:]):
            if start >= at:
                pieces += (self.text[at:start], words)
                at = end
        return "".join([*pieces, self.text[at : found.end("text")]])

    def _target(self, found: re.Match[str]) -> str | None:
        if found["ref"]:
            defined = self._named(found)
            return defined.target if defined else None
        return found["angle"] or found["bare"] or ""

    def _named(self, found: re.Match[str]) -> _Defined | None:
        name = found["ref"].strip("[]") or found["text"]
        if self._definitions is None:
            self._definitions = {}
            if "]:" in self.text:
                for definition in _DEFINITIONS.finditer(self.text):
                    key = _key(definition["id"])
                    self._definitions.setdefault(key, self._defined(definition["id"], definition))
        return self._definitions.get(_key(name))

    def _defined(self, name: str, found: re.Match[str]) -> _Defined:
        target, title = found["angle"] or found["bare"] or "", found["title"] or ""
        comment = name in _COMMENT_IDS
        says = not comment and not is_badge(target) and carries_words(f"{target}/{title}", text=name)
        return _Defined(target=target, kept=says)


def _key(name: str) -> str:
    return " ".join(name.lower().split())
