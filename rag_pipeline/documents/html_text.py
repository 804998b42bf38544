"""HTML as markdown-like text: the main content, line by line, with the source line each came from."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from bs4 import BeautifulSoup, ParserRejectedMarkup
from bs4.element import CData, NavigableString, PageElement, Tag

from rag_pipeline.documents.decoding import plain_text
from rag_pipeline.documents.extract import Extract
from rag_pipeline.documents.html_lists import Numbers
from rag_pipeline.documents.html_main import declared_main, main_lines
from rag_pipeline.documents.html_mending import with_scripts_opened
from rag_pipeline.documents.html_tables import Table, first_words, is_data
from rag_pipeline.documents.html_tags import script_mark
from rag_pipeline.documents.link_words import image_words, is_badge

_NOISE_TAGS = "script style nav header footer template head noscript svg iframe object canvas select button dialog"
_INLINE_TAGS = (
    "a abbr b bdi bdo cite code data del dfn em font i img ins kbd label mark q s samp small span strong sub sup time"
    " tt u var wbr"
)
_TIGHT_TAGS = "br li tr dt dd option"

_NOISE = frozenset(_NOISE_TAGS.split())
_INLINE = frozenset(_INLINE_TAGS.split())
_TIGHT = frozenset(_TIGHT_TAGS.split())  # begins a new line, but not a new paragraph
_CONTENT = frozenset(["main", "article", "section"])
_LINE_ENDS = re.compile("[\r\n\x85\u2028\u2029]+")
"""Entities may be line ends, but the lines are counted here."""
_ANCHOR_MARKS = frozenset("¶#§\uf0c1")
_HEADINGS = {f"h{depth}": "#" * depth + " " for depth in range(1, 7)}


def extract_html(text: str) -> Extract:
    """Main content with headings as `# ` lines; the title is `<title>`, else the first `<h1>`.

    All visible text where the main content cannot be told. Markup that the parser rejects is kept as plain text.
    """
    try:
        with warnings.catch_warnings():  # of XML, or of what looks like a file name: it is a page to us
            warnings.simplefilter("ignore")
            soup = BeautifulSoup(with_scripts_opened(_terminated(text)), "html.parser")
    except (ParserRejectedMarkup, AssertionError, RecursionError):
        return Extract(text=text, markup="text")
    main = declared_main(soup, text)
    page = _Page()
    for event, node in _walk(main or soup):
        page.take(event, node)
    page.end_line()
    lines, source_lines = page.lines, page.source_lines
    if main is None and (kept := main_lines(text, lines, depth=page.depth)):
        lines, source_lines = _kept(lines, source_lines, kept)
    body = plain_text("\n".join(lines))
    return Extract(text=body, markup="markdown", title=_title(soup), source_lines=source_lines or [1])


def _kept(lines: Sequence[str], source_lines: Sequence[int], kept: Sequence[bool]) -> tuple[list[str], list[int]]:
    """The lines that are kept, without a blank line at the start."""
    numbers = [number for number, keep in enumerate(kept) if keep]
    while numbers and not lines[numbers[0]]:
        numbers.pop(0)
    return [lines[number] for number in numbers], [source_lines[number] for number in numbers]


def _terminated(text: str) -> str:
    """The text without a tag that never ends: html.parser reads on from each to the end, in quadratic time."""
    head, bracket, tail = text.rpartition(">")
    return head + bracket + tail.replace("<", "&lt;")


def _title(soup: BeautifulSoup) -> str | None:
    for name in ("title", "h1"):
        tag = soup.find(name)
        if isinstance(tag, Tag) and (words := " ".join(tag.get_text(" ").split())):
            return words
    return None


def _walk(root: Tag) -> Iterator[tuple[str, PageElement]]:
    """Every node in reading order, tags twice; with a stack of its own, for tags can be nested 100,000 deep."""
    stack: list[tuple[Tag, Iterator[PageElement]]] = [(root, iter(root.contents))]
    while stack:
        tag, children = stack[-1]
        child = next(children, None)
        if child is None:
            stack.pop()
            yield "end", tag
        elif not isinstance(child, Tag):
            yield "text", child
        elif not _is_noise(child, stack):
            yield "start", child
            stack.append((child, iter(child.contents)))


def _is_noise(tag: Tag, stack: Sequence[tuple[Tag, object]]) -> bool:
    if tag.name == "a":  # the mark behind a heading that links to itself
        return tag.string is not None and tag.string.strip() in _ANCHOR_MARKS
    if tag.name == "header":  # an article's own holds its title
        return not any(parent.name in _CONTENT for parent, _ in stack)
    return tag.name in _NOISE


@dataclass(slots=True, kw_only=True)
class _Page:
    """The lines written so far, and the one being written."""

    lines: list[str] = field(default_factory=list)
    source_lines: list[int] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    prefix: str = ""
    blank_before: bool = False
    preformatted: int = 0
    source_line: int = 1
    first_line: int = 0
    depth: int = 0
    """How deep the tags were nested at most."""
    cell: Tag | None = None
    table: Table | None = None
    """The table of data that is open."""
    lists: list[Numbers | None] = field(default_factory=list)
    """The lists that are open, the innermost last; None for one without numbers."""
    _open: int = 0

    def take(self, event: str, node: PageElement) -> None:
        if isinstance(node, Tag):
            self._take_tag(node, starts=event == "start")
        elif isinstance(node, NavigableString):
            if type(node) is NavigableString or isinstance(node, CData):
                self._take_text(str(node))
            else:  # a comment or declaration: unseen, but its lines count
                self.source_line += node.count("\n")

    def end_line(self) -> None:
        """Write the words collected, as one line."""
        words = "".join(self.words) if self.preformatted else " ".join("".join(self.words).split())
        self.words = []
        if words.strip() or (self.preformatted and self.lines):
            self._write(self.prefix + words)
            self.prefix = ""

    def _take_tag(self, tag: Tag, *, starts: bool) -> None:
        self._open += 1 if starts else -1
        self.depth = max(self.depth, self._open)
        if starts and tag.sourceline:
            self.source_line = tag.sourceline
        if tag.name in _INLINE:
            self._take_inline(tag, starts=starts)
        elif self.table is not None:
            self._take_in_table(tag, self.table, starts=starts)
        elif tag.name in ("td", "th"):
            if starts and "".join(self.words).strip():
                self.words.append(" | ")
        else:
            self._take_block(tag, starts=starts)

    def _take_block(self, tag: Tag, *, starts: bool) -> None:
        self.end_line()
        self.blank_before = self.blank_before or tag.name not in _TIGHT
        if tag.name == "pre":
            self._take_pre(starts=starts)
        elif not self.preformatted:
            self._set_prefix(tag, starts=starts)

        if tag.name == "table" and starts and not self.preformatted and is_data(tag):
            self.table = Table()
        elif tag.name in ("ol", "ul", "menu"):
            self._take_list(tag, starts=starts)

    def _take_inline(self, tag: Tag, *, starts: bool) -> None:
        before = self.words[-1] if self.words else ""
        if tag.name == "img" and starts:
            source, alt = str(tag.get("src", "")), str(tag.get("alt", ""))
            if words := "" if is_badge(source) else image_words(alt):
                self._add_words(f" {words} ")
        elif tag.name in ("sup", "sub") and starts:
            self._add_words(script_mark(tag.name, before=before, inside=first_words(tag)))
        elif tag.name in ("abbr", "dfn") and not starts:
            meaning = " ".join(str(tag.get("title", "")).split())
            if meaning and meaning != first_words(tag):
                self._add_words(f" ({meaning})")

    def _add_words(self, words: str) -> None:
        if words and not self.words:
            self.first_line = self.source_line
        if words:
            self.words.append(words)

    def _take_in_table(self, tag: Tag, table: Table, *, starts: bool) -> None:
        """Whatever stands in a cell is on one line."""
        name = tag.name
        if name in ("td", "th", "tr", "caption", "table", "thead", "tbody", "tfoot"):
            self._end_cell(table)
        if name in ("td", "th"):
            self.cell = tag if starts else None
        elif name == "tr" and starts:
            table.open_row(self.source_line)
        elif name == "thead":
            table.in_head = starts
        elif name == "caption" and not starts:
            self.end_line()
        elif name == "table" and not starts:
            for line, words in table.lines():
                self.first_line = line
                self._write(words)
            self.table, self.blank_before = None, True
        elif self.words:
            self.words.append(" ")

    def _end_cell(self, table: Table) -> None:
        if self.cell is not None:
            table.add(self.cell, "".join(self.words), line=self.first_line or self.source_line)
            self.cell, self.words = None, []

    def _take_list(self, tag: Tag, *, starts: bool) -> None:
        if starts:
            self.lists.append(Numbers.of(tag) if tag.name == "ol" else None)
        elif self.lists:
            self.lists.pop()

    def _take_pre(self, *, starts: bool) -> None:
        if starts and not self.preformatted:
            self._write("```")
            self.blank_before = False
        self.preformatted = max(0, self.preformatted + (1 if starts else -1))
        if not starts and not self.preformatted:
            self.blank_before = False
            self._write("```")
            self.blank_before = True

    def _set_prefix(self, tag: Tag, *, starts: bool) -> None:
        name = tag.name
        if name in _HEADINGS:
            self.prefix = _HEADINGS[name] if starts else ""
        elif name == "li":
            numbers = self.lists[-1] if self.lists else None
            self.prefix = "" if not starts else numbers.next(tag) if numbers else "- "

    def _take_text(self, text: str) -> None:
        if not self.preformatted:
            if not self.words:
                text_start = len(text) - len(text.lstrip())
                self.first_line = self.source_line + text.count("\n", 0, text_start)
            if self.words or text.strip():
                self.words.append(text)
            self.source_line += text.count("\n")
            return
        for number, line in enumerate(text.split("\n")):
            if number:
                self.end_line()
                self.source_line += 1
            self.first_line = self.source_line
            self.words.append(line)

    def _write(self, line: str) -> None:
        source_line = self.first_line or self.source_line
        if self.blank_before and self.lines and not self.preformatted:
            self.lines.append("")
            self.source_lines.append(source_line)
        self.blank_before = False
        self.lines.append(_LINE_ENDS.sub(" ", line))
        self.source_lines.append(source_line)
