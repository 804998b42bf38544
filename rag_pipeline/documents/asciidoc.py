"""AsciiDoc: the words that a reader sees; attributes, comments, anchors and the names of blocks go.

Listing, literal, passthrough and table blocks are whole; example, sidebar and quote blocks hold prose like any other.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from rag_pipeline.documents.edits import GONE, Edit, edited
from rag_pipeline.documents.extract import Extract
from rag_pipeline.documents.link_words import carries_words, image_words, is_badge
from rag_pipeline.documents.titles import asciidoc_title

_MAX_LINE_CHARS = 4000
_VERBATIM = re.compile(r"(-{4,}|\.{4,}|\+{4,}|[|,:!]={3,}|`{3,})[^\n`]{0,80}$")
_COMMENT_BLOCK = re.compile(r"/{4,}[ \t]*$")
_ATTRIBUTE_ENTRY = re.compile(r":!?[A-Za-z0-9_][\w-]*!?:(?:[ \t]|$)")
_PREPROCESSOR = re.compile(r"(?P<name>include|ifdef|ifndef|ifeval|endif|toc)::[^\[\]\s]*\[(?P<words>.*)\][ \t]*$")
_BLOCK_MEDIA = re.compile(r"(?P<name>image|video|audio)::(?P<source>[^\[\]\n]*)\[(?P<words>[^\n]*)\][ \t]*$")
_BLOCK_ATTRIBUTES = re.compile(r"\[(?:\[[^\[\]]*\]|[^\[\]]*)\][ \t]*$")
_ADMONITIONS: Final = frozenset(["NOTE", "TIP", "IMPORTANT", "WARNING", "CAUTION"])
_QUOTES: Final = ("quote", "verse")
_MACRO = re.compile(
    r"`[^`\n]++`|\+\+\+?[^+\n]++\+\+\+?|\\."
    r"|(?P<anchor>\[\[[^\[\]\n]++\]\])"
    r"|(?P<image>\b(?:image|icon):(?!:)(?P<source>[^\s\[\]]++)\[(?P<alt>[^\[\]\n]*+)\])"
    r"|<<(?P<id>[^<>,\n]++)(?:,(?P<title>(?:[^<>\n]++|\n(?!\n)){1,300}))?>>"
    r"|(?P<macro>\b(?:link|xref|mailto):(?P<target>[^\s\[\]]++)|(?P<url>\bhttps?://[^\s\[\]<>]++))\[(?P<text>[^\[\]\n]*+)\]"
    r"|\[(?P<role>[.#][\w.# -]++)\](?=[#*_`])"
)
_TEXT_ATTRIBUTES = re.compile(r",[ \t]*(?:window|role|opts|options|id|title|rel)[ \t]*=.*$|\^$")
_HAS_MACRO = re.compile(r"\]|<<")


def extract_asciidoc(text: str) -> Extract:
    """AsciiDoc without what only steers the tool that renders it; the title is that of `= Title`."""
    scanner = _Scanner(text=text)
    scanner.scan()
    cleaned, source_lines = edited(text, scanner.edits)
    return Extract(text=cleaned, markup="asciidoc", title=asciidoc_title(cleaned), source_lines=source_lines)


@dataclass(slots=True, kw_only=True)
class _Scanner:
    """Goes from line to line; what is inside a verbatim block is passed over."""

    text: str
    edits: list[Edit] = field(default_factory=list)
    closes: str = ""
    """The line that ends the block that is open; empty outside."""
    is_comment: bool = False
    continues: bool = False
    """Whether an attribute entry goes on in the present line."""

    def scan(self) -> None:
        """Take the whole text."""
        start = 0
        for line in self.text.split("\n"):
            if line or self.closes:
                self._take(line, start)
            start += len(line) + 1

    def _take(self, line: str, start: int) -> None:
        if self.closes:
            self._take_verbatim(line, start)
        elif self.continues:
            self._cut(line, start)
            self.continues = line.endswith(" \\")
        elif not (line[0] in "-.+|,:!`/[itevau" and self._take_block(line[:_MAX_LINE_CHARS], line, start)):
            self._take_words(line, start)

    def _take_verbatim(self, line: str, start: int) -> None:
        if self.is_comment:
            self._cut(line, start)
        if line.rstrip() == self.closes:
            self.closes, self.is_comment = "", False

    def _take_block(self, mark: str, line: str, start: int) -> bool:
        """Take a line that is markup as a whole; False when it is words."""
        first = mark[0]
        if first == "/":
            if not mark.startswith("//") or (mark.startswith("///") and not _COMMENT_BLOCK.match(mark)):
                return False
            if mark.startswith("////"):
                self.closes, self.is_comment = mark.rstrip(), True
            self._cut(line, start)
        elif first == "[":
            return self._take_attributes(mark, line, start)
        elif first == ":" and _ATTRIBUTE_ENTRY.match(mark):
            self._cut(line, start)
            self.continues = line.endswith(" \\")
        elif first in "-.+|,:!`" and (fence := _VERBATIM.match(mark)):
            if first != "`" and fence[1] != mark.rstrip():
                return False
            self.closes = fence[1]
        elif directive := _PREPROCESSOR.match(mark):
            conditional = directive["name"] in ("ifdef", "ifndef")
            self._replace(line, start, directive["words"] if conditional else "")
        elif media := _BLOCK_MEDIA.match(mark):
            self._replace(line, start, _media_words(media["source"], media["words"]))
        else:
            return False
        return True

    def _take_attributes(self, mark: str, line: str, start: int) -> bool:
        """`[source,python]`, `[[id]]`, `[NOTE]` and their like above a block."""
        if not _BLOCK_ATTRIBUTES.match(mark) or mark.startswith(("[ ]", "[x]", "[X]", "[*]")):
            return False
        style, *rest = mark.strip().strip("[]").split(",")
        name = re.split(r"[.#%]", style.strip(), maxsplit=1)[0]
        if name in _ADMONITIONS:
            self._replace(line, start, f"{name}:")
        elif name in _QUOTES:
            self._replace(line, start, ",".join(rest).strip())
        else:
            self._cut(line, start)
        return True

    def _take_words(self, line: str, start: int) -> None:
        if not _HAS_MACRO.search(line):
            return
        for macro in _MACRO.finditer(line):
            found = _macro_edits(macro)
            self.edits += [(start + first, start + last, words) for first, last, words in found]

    def _cut(self, line: str, start: int) -> None:
        self.edits.append((start, start + len(line), GONE))

    def _replace(self, line: str, start: int, words: str) -> None:
        self.edits.append((start, start + len(line), GONE + words))


def _media_words(source: str, attributes: str) -> str:
    """The alternative text of an image: its first attribute, or the one that is named so."""
    if is_badge(source):
        return ""
    named = re.search(r"\b(?:alt|title)[ \t]*=[ \t]*\"?([^\",\]]*)", attributes)
    alt = named[1] if named else re.match(r"\s*(?:\"([^\"]*)\"|([^,=]*)(?=,|$))", attributes)
    words = alt if isinstance(alt, str) else (alt[1] or alt[2] or "") if alt else ""
    return image_words(words)


def _macro_edits(macro: re.Match[str]) -> list[Edit]:
    if macro["anchor"] or macro["role"]:
        return [(*macro.span(), GONE)]
    if macro["image"]:
        return [(*macro.span(), GONE + _media_words(macro["source"], macro["alt"]))]
    if macro["id"]:
        words, target = (macro["title"] or "").strip(), macro["id"].strip()
        if not words:
            return [(macro.start(), macro.start("id"), ""), (macro.end("id"), macro.end(), "")]
        kept = f" ({target.lstrip('#')})" if ".adoc" in target and carries_words(target, text=words) else ""
        return [(*macro.span(), words + kept)]
    return _link_edits(macro) if macro["macro"] else []


def _link_edits(macro: re.Match[str]) -> list[Edit]:
    target = macro["target"] or macro["url"]
    text = _TEXT_ATTRIBUTES.sub("", macro["text"]).strip().strip('"')
    if not text:
        return [(macro.start(), macro.start() + (len("link:") if macro[0].startswith("link:") else 0), ""),
                (macro.start("text") - 1, macro.end(), "")]  # fmt: skip
    is_anchor = macro["macro"].startswith("xref:") and "." not in target
    if not is_anchor and carries_words(target, text=text):
        return []
    return [(*macro.span(), text)]
