"""AsciiDoc: the words that a reader sees; comments, anchors and the names of blocks go, attributes are put in.

Listing, literal and passthrough blocks are whole, tables become rows; example, sidebar and quote blocks hold prose.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from rag_pipeline.documents.asciidoc_attributes import ENTRY, Attributes
from rag_pipeline.documents.asciidoc_lists import Lists
from rag_pipeline.documents.asciidoc_tables import read_table
from rag_pipeline.documents.edits import ADDED, GONE, Edit, edited
from rag_pipeline.documents.extract import Extract
from rag_pipeline.documents.link_words import carries_words, image_words, is_badge
from rag_pipeline.documents.pipe_rows import row_words
from rag_pipeline.documents.titles import asciidoc_title

_MAX_LINE_CHARS = 4000
_VERBATIM = re.compile(r"(-{4,}|\.{4,}|\+{4,}|[|,:!]={3,}|`{3,})[^\n`]{0,80}$")
_COMMENT_BLOCK = re.compile(r"/{4,}[ \t]*$")
_DELIMITED = re.compile(r"(?:={1,6}[ \t]+\S|={4,}[ \t]*$|\*{4,}[ \t]*$|_{4,}[ \t]*$)")
"""A heading, or a block that holds prose."""
_REPLACED = re.compile(r"\bsubs[ \t]*=[ \t]*\"?[\w+,\- ]*(?:(?<!-)\battributes\b|(?<!-)\bnormal\b)")
_LISTED = re.compile(r"[ \t]+(?:[*.-]|\d+\.)")
_HEADER_LINES: Final = 2
_PREPROCESSOR = re.compile(
    r"(?P<name>include|ifdef|ifndef|ifeval|endif|toc)::(?P<target>[^\[\]\s]*)\[(?P<words>.*)\][ \t]*$"
)
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
    scanner = _Scanner(text=text, attributes=Attributes(room=2 * len(text) + 100_000))
    scanner.scan()
    cleaned, source_lines = edited(text, scanner.edits)
    return Extract(text=cleaned, markup="asciidoc", title=asciidoc_title(cleaned), source_lines=source_lines)


@dataclass(slots=True, kw_only=True)
class _Scanner:
    """Goes from line to line; what is inside a verbatim block is passed over."""

    text: str
    attributes: Attributes
    lists: Lists = field(default_factory=Lists)
    edits: list[Edit] = field(default_factory=list)
    closes: str = ""
    """The line that ends the block that is open; empty outside."""
    is_comment: bool = False
    is_replaced: bool = False
    """Whether attributes in the block are replaced (`subs=attributes`)."""
    table: list[tuple[int, str]] | None = None
    """The lines of the table that is open, its first mark among them, with their places; None outside."""
    table_attributes: str = ""
    entry: re.Match[str] | None = None
    """The attribute entry that goes on in the present line."""
    value: str = ""
    header_line: int = 0
    """Of the document's header, the title being 1; 0 outside it."""
    is_literal: bool = False
    """The paragraph is indented, and stays as it is."""
    conditions: list[bool] = field(default_factory=list)
    """For each condition that is open, whether what stands under it is shown."""

    def scan(self) -> None:
        """Take the whole text."""
        start = 0
        for line in self.text.split("\n"):
            if line.strip() or self.closes:
                self._take(line, start)
            else:
                self.header_line, self.is_literal = 0, False
                self.lists.take_blank()
            start += len(line) + 1

    def _take(self, line: str, start: int) -> None:
        if self.closes:
            self._take_verbatim(line, start)
        elif self.entry:
            self._cut(line, start)
            self._take_value(line)
        elif not all(self.conditions):
            self._take_condition(line)
            self._cut(line, start)
        elif not (line[0] in "-.+|,:!`/[itev=*_" and self._take_block(line[:_MAX_LINE_CHARS], line, start)):
            self._take_words(line, start)

    def _take_verbatim(self, line: str, start: int) -> None:
        if self.is_comment:
            self._cut(line, start)
        elif self.table is not None:
            self.table.append((start, line))
        elif self.is_replaced and (words := self.attributes.replaced(line)) != line:
            self._replace(line, start, words)
        if line.rstrip() == self.closes:
            if self.table is not None:
                self._end_table(self.table)
            self.closes, self.is_comment, self.is_replaced, self.table = "", False, False, None

    def _take_block(self, mark: str, line: str, start: int) -> bool:
        """Take a line that is markup as a whole; False when it is words."""
        first = mark[0]
        if first == "/":
            return self._take_comment(mark, line, start)
        if first == "[":
            return self._take_attributes(mark, line, start)
        if first == ":" and (entry := ENTRY.match(mark)):
            self._cut(line, start)
            self.entry, self.value = entry, ""
            self._take_value(entry["value"] or "")
        elif first in "=*_":
            if _DELIMITED.match(mark):
                self.lists.take_block()
            return False
        elif first in "-.+|,:!`" and (fence := _VERBATIM.match(mark)):
            if first != "`" and fence[1] != mark.rstrip():
                return False
            self._open_verbatim(fence[1], line, start)
        elif directive := _PREPROCESSOR.match(mark):
            self._take_directive(directive, line, start)
        elif media := _BLOCK_MEDIA.match(mark):
            words = self.attributes.replaced(media["words"])
            self._replace(line, start, _media_words(media["source"], words))
        else:
            return False
        return True

    def _take_comment(self, mark: str, line: str, start: int) -> bool:
        if not mark.startswith("//") or (mark.startswith("///") and not _COMMENT_BLOCK.match(mark)):
            return False
        if mark.startswith("////"):
            self.closes, self.is_comment = mark.rstrip(), True
        self.lists.take_block()
        self._cut(line, start)
        return True

    def _open_verbatim(self, fence: str, line: str, start: int) -> None:
        attributes = self.lists.attributes
        self.lists.take_block()
        self.closes = fence
        self.is_replaced = _REPLACED.search(attributes) is not None
        if fence[1] == "=":
            self.table, self.table_attributes = [(start, line)], attributes

    def _take_value(self, line: str) -> None:
        """Take what the present line says of an entry's value, which goes on behind a backslash."""
        goes_on = line.rstrip().endswith(" \\")
        words = line.strip().removesuffix(" \\").rstrip()
        words = words.removesuffix(" +") if goes_on else words
        self.value = f"{self.value} {words}".strip()[:_MAX_LINE_CHARS]
        if self.entry and not goes_on:
            self.attributes.enter(self.entry, self.value)
            self.entry = None

    def _take_directive(self, directive: re.Match[str], line: str, start: int) -> None:
        name, words = directive["name"], directive["words"]
        if name not in ("ifdef", "ifndef"):
            self._take_condition(line)
            self._cut(line, start)
            return
        shown = self._is_shown(name, directive["target"])
        if not words:
            self.conditions.append(shown)
        elif shown and (entry := ENTRY.match(words)):
            self.attributes.enter(entry, entry["value"] or "")
            words = ""
        self._replace(line, start, self.attributes.replaced(words) if shown else "")

    def _take_condition(self, line: str) -> None:
        """Keep count of the conditions that open and close."""
        directive = _PREPROCESSOR.match(line[:_MAX_LINE_CHARS])
        if directive is None:
            return
        if directive["name"] == "endif" and self.conditions:
            self.conditions.pop()
        elif directive["name"] == "ifeval" or (directive["name"] in ("ifdef", "ifndef") and not directive["words"]):
            self.conditions.append(True)

    def _is_shown(self, name: str, target: str) -> bool:
        """Whether what stands under the condition is shown: yes, unless the file itself says otherwise."""
        decided = self.attributes.decides(target)
        return decided is None or decided is (name == "ifdef")

    def _take_attributes(self, mark: str, line: str, start: int) -> bool:
        """`[source,python]`, `[[id]]`, `[NOTE]` and their like above a block."""
        if not _BLOCK_ATTRIBUTES.match(mark) or mark.startswith(("[ ]", "[x]", "[X]", "[*]")):
            return False
        self.lists.take_attributes(mark)
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
        blank_before = self.lists.blank_before
        if not blank_before and self.is_literal:
            return
        item = self.lists.take_line(line)
        if line.rstrip() == "+":  # binds the next block to the item above
            self._cut(line, start)
            return
        self.is_literal = blank_before and line[0] in " \t" and not item and not _LISTED.match(line)
        if self.is_literal:
            return
        if line.startswith("= ") or self.header_line:
            self._take_header(line)
        words = self.attributes.replaced(line)
        marker = ""
        if item:
            marker, words = item[2], words[item[1] :]
        if item:
            self.edits.append((start, start + len(line), marker + _words(words)))
        elif words != line:
            self._replace(line, start, _words(words))
        elif _HAS_MACRO.search(line):
            self.edits += [(start + first, start + last, words) for first, last, words in _inline_edits(line)]

    def _take_header(self, line: str) -> None:
        """The title, and the lines of the author and the revision directly below it."""
        if self.header_line:
            self.attributes.enter_header(line, number=self.header_line)
        else:
            self.attributes.known["doctitle"] = self.attributes.replaced(line[2:].strip())
        self.header_line = self.header_line + 1 if self.header_line < _HEADER_LINES else 0

    def _end_table(self, table: list[tuple[int, str]]) -> None:
        """Put rows in the place of a table's lines; a table of one row, or that cannot be read, stays as it is."""
        (opened, mark), *inside, (closed, _) = table
        read = read_table(self.table_attributes, mark, [line for _, line in inside])
        if read is None or len(read.rows) < 2:
            return
        starts = [start for start, _ in inside]
        first = starts[read.rows[0].line]
        by_line: dict[int, list[str]] = {}
        for number, row in enumerate(read.rows, start=1):
            cells = [_words(self.attributes.replaced(cell)) for cell in row.cells]
            by_line.setdefault(starts[row.line], []).append(row_words(cells, ends_header=number == read.header))
        self.edits.append((opened, first - 1, GONE))
        for (start, rows), end in zip(by_line.items(), [*list(by_line)[1:], closed], strict=True):
            self.edits.append((start, end - 1, f"\n{ADDED}".join(rows)))
        self.edits.append((closed, closed + len(mark), GONE))

    def _cut(self, line: str, start: int) -> None:
        self.edits.append((start, start + len(line), GONE))

    def _replace(self, line: str, start: int, words: str) -> None:
        self.edits.append((start, start + len(line), GONE + words))


def _words(text: str) -> str:
    """The text with the words of its macros in their place."""
    if not _HAS_MACRO.search(text):
        return text
    pieces: list[str] = []
    at = 0
    for start, end, words in sorted(_inline_edits(text)):
        pieces += (text[at:start], words)
        at = end
    return "".join([*pieces, text[at:]])


def _inline_edits(text: str) -> list[Edit]:
    return [edit for macro in _MACRO.finditer(text) for edit in _macro_edits(macro)]


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
