"""Org mode as markdown: headings, code, links and tables in its marks, without drawers, keywords and comments."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from rag_pipeline.documents.edits import GONE, Edit, edited
from rag_pipeline.documents.extract import Extract
from rag_pipeline.documents.titles import markdown_title

_MAX_LINE_CHARS = 4000
_HEADING = re.compile(
    r"(?P<stars>\*+)[ \t]+(?:(?:TODO|DONE|NEXT|WAITING|CANCELED|CANCELLED)[ \t]+)?(?:\[#\w\][ \t]*)?(?:COMMENT[ \t]+)?"
    r"(?P<words>.*?)(?P<tags>[ \t]+:[\w@#%:]+:)?[ \t]*$"
)
_BEGIN = re.compile(r"[ \t]*#\+begin_(?P<name>\w+)[ \t]*(?P<rest>.*)$", re.IGNORECASE)
_END = re.compile(r"[ \t]*#\+end_(?P<name>\w+)[ \t]*$", re.IGNORECASE)
_KEYWORD = re.compile(r"[ \t]*#\+(?P<name>[\w-]+)(?:\[[^\]\n]*\])?:[ \t]*(?P<words>.*)$")
_SHOWN_KEYWORDS = frozenset(["caption", "description", "subtitle"])
_DRAWER = re.compile(r"[ \t]*:(?!END:)[\w-]+:[ \t]*$", re.IGNORECASE)
_END_OF_DRAWER = re.compile(r"[ \t]*:END:[ \t]*$", re.IGNORECASE)
_PLANNING = re.compile(r"[ \t]*(?:SCHEDULED|DEADLINE|CLOSED):[ \t]*[<\[]")
_COMMENT = re.compile(r"[ \t]*#(?:[ \t]|$)")
_FIXED = re.compile(r"(?P<indent>[ \t]*):(?: |$)")
_RULE = re.compile(r"[ \t]*\|[-+]+\|?[ \t]*$")
_INLINE = re.compile(
    r"\[\[(?P<target>[^\[\]\n]{1,1000})\](?:\[(?P<words>[^\[\]\n]{1,1000})\])?\]"
    r"|(?<![\w/])(?P<mark>[=~])(?=\S)(?P<code>[^\n]{1,300}?)(?<=\S)(?P=mark)(?!\w)"
)
_CODE_BLOCKS = frozenset(["src", "example", "export"])
_LANGUAGE = re.compile(r"[A-Za-z][\w+#.-]{0,30}")
_PICTURE = re.compile(r"\.(?:png|jpe?g|gif|svg|webp)\Z", re.IGNORECASE)


def extract_org(text: str) -> Extract:
    """The words of an Org file as markdown, each on its line; the title is `#+TITLE:`, else the first heading."""
    scanner = _Scanner(text=text)
    scanner.scan()
    cleaned, source_lines = edited(text, scanner.edits)
    title = scanner.title or markdown_title(cleaned)
    return Extract(text=cleaned, markup="markdown", title=title, source_lines=source_lines)


@dataclass(slots=True, kw_only=True)
class _Scanner:
    """Goes from line to line."""

    text: str
    edits: list[Edit] = field(default_factory=list)
    title: str = ""
    block: str = ""
    """The name of the block of code or comment that is open; empty outside."""
    drawer: list[Edit] = field(default_factory=list)
    """The lines of a drawer that is open, which goes when it is closed."""

    def scan(self) -> None:
        """Take the whole text."""
        start = 0
        for line in self.text.split("\n"):
            if line:
                self._take(line[:_MAX_LINE_CHARS], start, start + len(line))
            start += len(line) + 1

    def _take(self, line: str, start: int, end: int) -> None:
        if self.block:
            self._take_code(line, start, end)
        elif heading := _HEADING.match(line):
            self.drawer = []
            marks = "#" * min(6, len(heading["stars"]))
            self.edits.append((start, start + heading.start("words"), f"{marks} "))
            if heading["tags"]:
                self.edits.append((start + heading.start("tags"), end, GONE))
            self._take_words(line, start + heading.start("words"), start)
        elif self.drawer:
            self.drawer.append((start, end, GONE))
            if _END_OF_DRAWER.match(line):
                self.edits += self.drawer
                self.drawer = []
        elif _DRAWER.match(line):
            self.drawer = [(start, end, GONE)]
        elif not self._take_mark(line, start, end):
            self._take_words(line, start, start)

    def _take_code(self, line: str, start: int, end: int) -> None:
        close = _END.match(line)
        if close and close["name"].lower() == self.block:
            self.edits.append((start, end, GONE if self.block == "comment" else "```"))
            self.block = ""
        elif self.block == "comment":
            self.edits.append((start, end, GONE))
        elif line.lstrip().startswith((",*", ",#+", ",,")):  # escaped, as it would be a heading
            comma = start + line.index(",")
            self.edits.append((comma, comma + 1, ""))

    def _take_mark(self, line: str, start: int, end: int) -> bool:
        """Take a line that is markup as a whole; False when it is words."""
        if begin := _BEGIN.match(line):
            self._take_begin(begin, start, end)
        elif keyword := _KEYWORD.match(line):
            name = keyword["name"].lower()
            if name == "title" and not self.title:
                self.title = keyword["words"].strip()
            words = keyword["words"].strip() if name in _SHOWN_KEYWORDS else ""
            self.edits.append((start, end, words or GONE))
        elif _END.match(line) or _PLANNING.match(line) or _COMMENT.match(line):
            self.edits.append((start, end, GONE))
        elif _RULE.match(line):
            self.edits.append((start, end, line.replace("+", "|")))
        elif fixed := _FIXED.match(line):
            self.edits.append((start, start + fixed.end(), "    "))
        else:
            return False
        return True

    def _take_begin(self, begin: re.Match[str], start: int, end: int) -> None:
        name = begin["name"].lower()
        if name not in _CODE_BLOCKS and name != "comment":
            self.edits.append((start, end, GONE))  # a quotation or the like: prose
            return
        self.block = name
        language = _LANGUAGE.match(begin["rest"]) if name == "src" else None
        fence = f"```{language[0] if language else ''}"
        self.edits.append((start, end, GONE if name == "comment" else fence))

    def _take_words(self, line: str, at: int, start: int) -> None:
        for found in _INLINE.finditer(line, at - start):
            span = start + found.start(), start + found.end()
            if found["code"]:
                self.edits.append((*span, f"`{found['code']}`"))
            elif found["words"] or not _PICTURE.search(found["target"]):
                self.edits.append((*span, found["words"] or found["target"].removeprefix("file:")))
            else:
                self.edits.append((*span, GONE))
