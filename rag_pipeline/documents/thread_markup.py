"""The lines of a comment as GitHub shows them: tags and entities as text, no HTML comments, no images without words.

A line scanner for blocks (fences, comments) and a token scanner for what stands inside a paragraph; both look at each
character a bounded number of times, whatever is put before them.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from dataclasses import dataclass, field
from html import unescape
from typing import NamedTuple

from rag_pipeline.documents.edits import BREAK, GONE, Edit, tidied
from rag_pipeline.documents.html_tags import MAX_TAG_CHARS, TAG, is_known, spelt_out, tag_words

_BEGINS = re.compile(
    r"^(?:(?P<blank>(?:[ \t]*\n)+|[ \t]+\Z)|(?P<comment> {0,3}<!--)"
    r"|[ \t]*(?:>[ \t]*)*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)?(?P<fence>`{3,}(?=[^`\n]*$)|~{3,})"
    r"|(?P<item>[ \t]*(?:#{1,6}|[-*+]|\d{1,9}[.)])[ \t]))",
    re.MULTILINE,
)
"""What begins a line and ends the paragraph before it."""
_CLOSES_FENCE = " \t>"

_TARGET = r"\([^()\s]*(?:[ \t]+\"[^\"\n]*\")?\)"
_IMAGE = rf"!\[[ \t]*(?:image[ \t]*)?\]{_TARGET}"
_NOISE = re.compile(
    rf"\\.|`+|<!--|(?P<image>\[{_IMAGE}\]{_TARGET}|{_IMAGE})|(?P<tag></?[A-Za-z])"
    r"|(?P<entity>&(?:#\d{1,7}|#x[0-9A-F]{1,6}|[A-Z][A-Z0-9]{1,30});)",
    re.IGNORECASE | re.DOTALL,
)
_MAY_BE_NOISE = re.compile(r"<[!/A-Za-z]|!\[|&[#A-Za-z]")
_INDENTED_CODE = re.compile(r" {4}|\t")


class Line(NamedTuple):
    """A line without its newline."""

    text: str
    code: bool = False
    """It is inside a fence, or one of its marks."""
    quoted: bool = False
    """It begins with `>`, and not because code does."""


_BLANK = Line("")


def visible_lines(text: str) -> list[Line]:
    """The lines that are shown; several blank lines in a row are one.

    A comment that begins a line and is never closed hides all that follows, as on GitHub; one inside a line is text.
    """
    scanner = _Scanner(text=text)
    scanner.scan()
    return scanner.lines


@dataclass(slots=True, kw_only=True)
class _Scanner:
    text: str
    lines: list[Line] = field(default_factory=list)

    def scan(self) -> None:
        """Take the whole text."""
        at = 0
        while at < len(self.text):
            at = self._take_block(at)

    def _take_block(self, at: int) -> int:
        """Take the block that begins here; where the next one begins."""
        begins = _BEGINS.match(self.text, at)
        kind = begins.lastgroup if begins else None
        if begins is None or kind == "item":
            return self._take_paragraph(at)
        if kind == "blank":
            self.lines.append(_BLANK)
            return begins.end()
        if kind == "comment":
            close = self.text.find("-->", begins.end() - 2)  # `<!-->` is a whole comment
            return close + 3 if close >= 0 else len(self.text)
        return self._take_fence(at, begins["fence"], quoted=_is_quoted(begins[0]))

    def _take_fence(self, at: int, fence: str, *, quoted: bool) -> int:
        opens = True
        while at < len(self.text):
            end = self._line_end(at)
            line = self.text[at:end]
            if quoted and not _is_quoted(line):
                return at
            self.lines.append(Line(line, True, quoted))
            at = end + 1
            marks = line.strip(_CLOSES_FENCE if quoted else None)
            if not opens and marks.startswith(fence) and not marks.strip(fence[0]):
                return at
            opens = False
        return at

    def _take_paragraph(self, at: int) -> int:
        """Take lines up to one that is blank or begins another block."""
        following = _BEGINS.search(self.text, self._line_end(at) + 1)
        end = following.start() if following else len(self.text)
        paragraph = self.text[at : end - 1 if following else end]
        self.lines += [Line(line, False, _is_quoted(line)) for line in _without_inline_noise(paragraph)]
        return end

    def _line_end(self, at: int) -> int:
        end = self.text.find("\n", at)
        return len(self.text) if end < 0 else end


def _is_quoted(line: str) -> bool:
    return line[:4].lstrip(" ")[:1] == ">"


def _without_inline_noise(paragraph: str) -> list[str]:
    """The paragraph's lines as words; of those that held nothing but noise, none."""
    if not _MAY_BE_NOISE.search(paragraph) or _INDENTED_CODE.match(paragraph):
        return paragraph.split("\n")
    kept, last = [], 0
    for start, end, words in _inline_edits(paragraph):
        kept += [paragraph[last:start], words]
        last = end
    kept.append(paragraph[last:])
    lines = []
    for line in "".join(kept).split("\n"):
        shown = tidied(line) if BREAK in line else line.replace(GONE, "")
        if shown == line or shown.strip(" \t>"):
            lines.append(shown)
    return lines


def _inline_edits(paragraph: str) -> list[Edit]:
    """Edits that leave the words of comments, tags, images and entities, outside code spans."""
    runs: dict[int, list[int]] = defaultdict(list)
    for run in re.finditer("`+", paragraph):
        runs[run.end() - run.start()].append(run.start())
    found: list[Edit] = []
    at, last_close = 0, paragraph.rfind("-->")
    while token := _NOISE.search(paragraph, at):
        start, at = token.span()
        if token[0][0] == "`":
            same = runs[at - start]
            following = bisect_left(same, at)
            at = same[following] + at - start if following < len(same) else at
        elif token[0] == "<!--":
            if last_close >= start + 2:
                at = paragraph.index("-->", start + 2) + 3
                found.append((start, at, GONE))
        elif token["image"]:
            found.append((start, at, GONE))
        elif token["entity"]:
            words = unescape(token[0])
            found.append((start, at, " " if words.isspace() else words))
        elif token["tag"] and (tag := TAG.match(paragraph, start, start + MAX_TAG_CHARS)):
            if (shown := _tag_words(paragraph, tag)) is not None:
                found.append((start, tag.end(), shown))
            if not tag["close"] and tag["name"].lower() in ("abbr", "dfn") and (meaning := spelt_out(paragraph, tag)):
                found.append(meaning)
            at = tag.end()
    return sorted(found)


def _tag_words(paragraph: str, tag: re.Match[str]) -> str | None:
    """What is shown in a tag's place; None for what only looks like one: `List<String>`, `<Component>`."""
    name = tag["name"]
    lower = name.lower()
    if lower == "pre":
        return BREAK
    is_html = (lower == "img" or is_known(lower)) and (name.islower() or name.isupper())
    return tag_words(paragraph, tag) if is_html else None
