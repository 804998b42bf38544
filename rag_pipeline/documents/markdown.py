"""Markdown: the words that a reader sees, and where to find more; code and tables as they are.

A scanner that jumps from one mark to the next (a backtick, a bracket, a tag), so that prose costs one search. It cuts,
and never rewrites: each line that stays is the source's line, less what was markup in it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import unescape
from typing import Final

from rag_pipeline.documents.contents_list import MARK, MarkedContents, headed_contents
from rag_pipeline.documents.decoding import plain_text
from rag_pipeline.documents.edits import GONE, Edit, edited
from rag_pipeline.documents.extract import Extract
from rag_pipeline.documents.html_tags import MAX_TAG_CHARS, TAG, spelt_out, tag_words
from rag_pipeline.documents.jsx_modules import module_spans
from rag_pipeline.documents.markdown_layout import Layout
from rag_pipeline.documents.markdown_links import DEFINITION, LINK, MAX_LINK_CHARS, SIMPLE_LINK, Links
from rag_pipeline.documents.titles import markdown_title
from rag_pipeline.front_matter import Broken, read_front_matter
from rag_pipeline.inline_markup import PAYLOAD
from rag_pipeline.model import Json

_PAYLOAD = re.compile(r"(?:(?<=\]\()|(?<=\]: )|(?<=\]: <)|(?<=src=[\"']))" + PAYLOAD)
"""A picture written out: its letters are no words, and too many for the patterns below."""
_SKIPPED = r"(?<!`)`[^`\n]++`(?!`)|\\[^\n]|<(?![A-Za-z/!])|\[(?=[ xX^])"
_MARKS = re.compile(rf"(?:[^`<\[\\]++|{_SKIPPED})*+")
"""What lies before the next mark: prose, code spans on one line, escapes, brackets that are neither link nor tag."""
_RARE_MARKS = re.compile(rf"(?:[^`<\[\\{{~]++|{_SKIPPED})*+")
_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_ENTITY_MARKS = re.compile(rf"(?:[^`<\[\\{{~&]++|{_SKIPPED}|(?!{_ENTITY.pattern})&)*+")
_HAS_MARKS = re.compile(r"[`<!\[\\&]")
_BRACE = re.compile(r"\{[ \t]?[#.:/]")
_ATTRIBUTES = re.compile(r"\{(?::[^{}\n]*|[ \t]*[#.][^{}\n]*)\}[ \t]*(?=\n|\Z)")
_TICKS = re.compile("`+")
_TILDES = re.compile("~+")
_HEADING_TAG = re.compile(r"<h([1-6])\b[^<>]*>", re.IGNORECASE)
_HEADING_WORDS = (
    re.compile(r"[ \t]*(?=(?:<[^<>\n]*>|[^\w<>\n])*+\w)"),
    re.compile(r"[ \t]*(?=[^\w<>\n]*+<img\b[^<>]*?\balt=[\"'][^\"'<>]*\w)", re.IGNORECASE),
)
"""What begins a line with words; if there is none, with an image that has some."""
_MAX_HEADING_CHARS = 1000
_RAW = {name: re.compile(rf"</{name}[ \t\n]*>", re.IGNORECASE) for name in ("pre", "script", "style")}
BROKEN_FRONT_MATTER: Final = "broken_front_matter"
"""The key of metadata that says what is wrong with front matter that could not be read."""
_LISTED_ONLY = ("{toctree}", "{contents}", "{tableofcontents}")
"""Directives of MyST that hold a list of files."""


def extract_markdown(text: str) -> Extract:
    """Markdown without front matter (which goes to `metadata["front_matter"]`), comments, badges, tags and targets.

    Front matter that cannot be read goes, too: it is no text and no title, and the metadata say what is wrong with it.
    """
    front = read_front_matter(text, clean=plain_text)
    body = text[front.end_char :] if front else text
    cleaned, source_lines = clean_markdown(body, first_line=front.lines + 1 if front else 1)
    title = None
    metadata: dict[str, Json] = {}
    if isinstance(front, Broken):
        metadata[BROKEN_FRONT_MATTER] = str(front.error)
    elif front:
        title = front.values.get("title")
        metadata["front_matter"] = front.values
    if front and not body.strip():
        metadata["skipped"] = "front matter only"
    return Extract(
        text=cleaned,
        markup="markdown",
        title=(title if isinstance(title, str) and title.strip() else None) or markdown_title(cleaned),
        source_lines=source_lines,
        metadata=metadata,
    )


def clean_markdown(text: str, *, first_line: int = 1) -> tuple[str, Sequence[int] | None]:
    """The text without what is no word, and the source line of each of its lines; None when they are the same.

    What stays: words in their lines, code, tables, the words of images, targets that say more than their links.
    """
    if ";base64," in text:
        text = _PAYLOAD.sub("data:", text)
    edits: list[Edit] = []
    scanner = _Scanner(
        text=text,
        edits=edits,
        layout=Layout(text=text),
        links=Links(text=text, edits=edits),
        contents=MarkedContents(text=text),
    )
    scanner.scan_text()
    return edited(text, edits, first_line=first_line)


@dataclass(slots=True, kw_only=True)
class _Scanner:
    """Takes each mark in turn, and says where to look for the next."""

    text: str
    edits: list[Edit]
    layout: Layout
    links: Links
    contents: MarkedContents
    marks: re.Pattern[str] = _MARKS
    unclosed: set[str] = field(default_factory=set)
    """What was looked for and is not in the rest of the text."""
    sections: list[tuple[int, int]] = field(default_factory=list)
    """Tables of contents and module lines, which go as a whole unless they are in code."""

    def scan_text(self) -> None:
        """Take the whole text."""
        text = self.text
        if "&" in text and _ENTITY.search(text):
            self.marks = _ENTITY_MARKS
        elif "~~~" in text or ("{" in text and _BRACE.search(text)):
            self.marks = _RARE_MARKS
        self.sections = headed_contents(text)
        if modules := module_spans(text):
            self.sections = sorted([*self.sections, *modules])
        if self.sections:
            self._scan_sections()
        else:
            self.scan(0, len(text))

    def _scan_sections(self) -> None:
        at = 0
        for start, end in self.sections:
            at = self.scan(at, start) if at < start else at
            if at <= start:
                self.edits.append((start, end, GONE))
                at = end
        self.scan(at, len(self.text))

    def scan(self, at: int, end: int) -> int:
        """Take the marks between these places; where to go on, which is behind `end` inside code."""
        text, prose = self.text, self.marks.match
        while at < end:
            before = prose(text, at, end)
            at = before.end() if before else at
            if at < end:
                at = self._take(at)
        return max(at, end)

    def _take(self, at: int) -> int:
        mark = self.text[at]
        layout = self.layout
        layout.locate(at)
        if layout.kept_until > at:
            return layout.kept_until
        if mark == "\\":
            return at + 2
        if mark == "[":
            return self._take_bracket(at)
        if mark == "<":
            return self._take_angle(at)
        if mark == "{":
            return self._take_brace(at)
        if mark == "&":
            return self._take_entity(at)
        return self._take_run(at, mark)

    def _take_run(self, at: int, mark: str) -> int:
        """Backticks or tildes: a fence, or a code span."""
        run = (_TICKS if mark == "`" else _TILDES).match(self.text, at)
        end = run.end() if run else at + 1
        length = end - at
        if length >= 3 and at == self.layout.words_start:
            line_end = self.layout.line_end(end)
            if mark == "~" or self.text.find("`", end, line_end) < 0:
                close = self.layout.fence_end(at, mark * length)
                if self.text.startswith(_LISTED_ONLY, end):
                    self.edits.append((self.layout.line_start, close, GONE))
                return close
        return self.layout.code_span_end(at, length) if mark == "`" else end

    def _take_bracket(self, at: int) -> int:
        text, layout = self.text, self.layout
        is_image = at > 0 and text[at - 1] == "!" and not (at > 1 and text[at - 2] == "\\")
        if not is_image and (simple := SIMPLE_LINK.match(text, at)):
            self.links.take_simple_link(simple)
            if self.marks is _ENTITY_MARKS:
                self.scan(*simple.span("text"))
            return simple.end()
        if at == layout.words_start and (definition := DEFINITION.match(text, layout.line_start)):
            self.links.take_definition(definition)
            return definition.end()
        if at == layout.words_start and (mark := MARK.match(text, layout.line_start)):
            self.edits.append((*mark.span(), GONE))
            return mark.end()
        link = LINK.match(text, at - is_image, at + MAX_LINK_CHARS)
        if link is None:
            return at + 1
        if is_image:
            self.links.take_image(link)
            return link.end()
        before = len(self.edits)
        if _HAS_MARKS.search(link["text"]):
            self.scan(*link.span("text"))
        self.links.take_link(link, first_inner=before)
        return link.end()

    def _take_angle(self, at: int) -> int:
        text = self.text
        if text.startswith("<!--", at):
            close = self._find("-->", at + 2)
            if close < 0:
                return at + 4
            end = self.contents.end(at, close + 3) or close + 3
            self.edits.append((at, end, GONE))
            return end
        tag = TAG.match(text, at, at + MAX_TAG_CHARS)
        if tag is None:
            return at + 1
        name = tag["name"].lower()
        if name in _RAW and not tag["close"] and (close := self._close(name, tag.end())) > 0:
            if name != "pre":
                self.edits.append((at, close, GONE))
            return close
        self._take_heading_tag(tag)
        if name in ("abbr", "dfn") and (meaning := spelt_out(text, tag)):
            self.edits.append(meaning)
        words = tag_words(text, tag)
        if words is not None:
            self.edits.append((at, tag.end(), words))
        return tag.end()

    def _take_heading_tag(self, tag: re.Match[str]) -> None:
        """`<h1>` and what is in it as a heading, on the line of its first words."""
        heading = _HEADING_TAG.match(tag[0])
        if heading is None or tag.start() != self.layout.words_start:
            return
        close = self.text.find(f"</{tag['name']}>", tag.end(), tag.end() + _MAX_HEADING_CHARS)
        if close < 0:
            return
        marks = "#" * int(heading[1]) + " "
        for pattern in _HEADING_WORDS:
            start = tag.end()
            while start >= 0:
                if words := pattern.match(self.text, start, close):
                    here = (self.layout.line_start, tag.start()) if start == tag.end() else words.span()
                    self.edits.append((*here, marks))
                    return
                start = self.text.find("\n", start, close) + 1 or -1

    def _take_brace(self, at: int) -> int:
        text, layout = self.text, self.layout
        if text.startswith("{/*", at) and (close := self._find("*/}", at + 3)) > 0:
            self.edits.append((at, close + 3, GONE))
            return close + 3
        attributes = _ATTRIBUTES.match(text, at, at + MAX_TAG_CHARS)
        alone = at == layout.words_start
        if attributes and (alone or text.startswith("#", layout.words_start) or text[at + 1] in ":"):
            self.edits.append((*attributes.span(), GONE))
            return attributes.end()
        return at + 1

    def _take_entity(self, at: int) -> int:
        """`&copy;` or `&#8203;` as the character that it stands for; a line end or a control is none."""
        entity = _ENTITY.match(self.text, at)
        if entity is None:
            return at + 1
        character = unescape(entity[0])
        if character != entity[0] and min(character, default="") > "\x1f":
            self.edits.append((*entity.span(), character + GONE if character.isspace() else character))
        return entity.end()

    def _find(self, words: str, at: int) -> int:
        """As `str.find`, once: what is not in the rest of the text is not looked for again."""
        found = -1 if words in self.unclosed else self.text.find(words, at)
        if found < 0:
            self.unclosed.add(words)
        return found

    def _close(self, name: str, at: int) -> int:
        found = None if name in self.unclosed else _RAW[name].search(self.text, at)
        if found is None:
            self.unclosed.add(name)
        return found.end() if found else -1
