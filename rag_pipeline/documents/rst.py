"""reStructuredText: directives as what a reader sees of them, roles as their words; literal blocks and tables whole.

The text stays reStructuredText, each line the source's line: admonitions become `Note:` and their body, what only
steers the tool that renders it goes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final

from rag_pipeline.documents.edits import GONE, Edit, edited
from rag_pipeline.documents.extract import Extract
from rag_pipeline.documents.link_words import carries_words, image_words, is_badge
from rag_pipeline.documents.rst_directives import DIRECTIVE, body_of, first_line, is_admonition, is_verbatim, read_as
from rag_pipeline.documents.rst_inline import Substitutions, inline_edits, reference_edits
from rag_pipeline.documents.rst_substitutions import read_substitutions
from rag_pipeline.documents.rst_tables import TABLES, TableEdit, drawn_edits, table_edits
from rag_pipeline.documents.titles import rst_title
from rag_pipeline.drawn_tables import GRID_RULE, SIMPLE_RULE

_MAX_LINE_CHARS = 2000
_MARKS: Final = ("`", "..", "__ ", ":orphan", ":tocdepth", ":no", ":hide", "+-", "= =", "=  =")
"""A text without any of them stays as it is."""
_TARGET = re.compile(r"[ \t]*(?:\.\.[ \t]+_(?P<name>`[^`\n]+`|[^:\n`]+|_)?:|__)(?:[ \t]+(?P<target>\S.*?))?[ \t]*$")
_FOOTNOTE = re.compile(r"[ \t]*\.\.[ \t]+(?=\[[^\[\]\n]+\][ \t])")
_OPTION = re.compile(r"[ \t]+:(?P<name>[\w-]+(?:[ ][\w-]+)?):(?:[ \t]+(?P<value>\S.*?))?[ \t]*$")
_SHOWN_OPTIONS: Final = {
    "alt": "", "caption": "", "title": "", "synopsis": "", "type": "Type: ", "default": "Default: ", "value": "Value: ",
}  # fmt: skip
"""With what is put before their words."""
_IMAGES: Final = frozenset(["image", "figure", "thumbnail"])
_TOOL_FIELD = re.compile(
    r":(?:orphan|tocdepth|nocomments|nosearch|no-search|hidetoc|hide-toc)(?:[ \t][^\n:]*)?:[^\n]*$"
)
_TITLE = re.compile(
    r"(?<![^\n]\n)^(?:(?P<over>(?P<mark>[!-/:-@\[-`{-~])(?P=mark){2,})(?P<gap>[ \t]*\n[ \t]*))?"
    r"(?P<words>\w[^\n]*)\n(?P<under>(?P<rule>[!-/:-@\[-`{-~])(?P=rule){2,})(?=[ \t]*$)",
    re.MULTILINE,
)
"""A line below a blank one, and the rule below it; perhaps one above it, too."""


def extract_rst(text: str) -> Extract:
    """reStructuredText without comments, targets, directives that show nothing, and the marks of those that do."""
    scanner = _Scanner(text=text, lines=text.split("\n"))
    scanner.scan()
    cleaned, source_lines = edited(text, scanner.edits)
    if scanner.substitutions:
        cleaned = _with_long_rules(cleaned)
    return Extract(text=cleaned, markup="rst", title=rst_title(cleaned), source_lines=source_lines)


def _with_long_rules(text: str) -> str:
    """The text with the rules of titles as long as these: what was put into a title may have made it longer."""

    def lengthened(title: re.Match[str]) -> str:
        over, words, under = title["over"] or "", title["words"], title["under"]
        rule = under[0] * max(len(under), len(words))
        return f"{rule if over else ''}{title['gap'] or ''}{words}\n{rule}"

    return _TITLE.sub(lengthened, text)


@dataclass(slots=True, kw_only=True)
class _Scanner:
    """Goes from line to line; a body that is kept whole or dropped is passed over."""

    text: str
    lines: list[str]
    edits: list[Edit] = field(default_factory=list)
    number: int = 0
    start: int = 0
    """Where the present line begins in the text."""
    prose_start: int = 0
    """Where the prose begins that was not looked through for inline markup yet."""
    literal_after: int = -1
    """Indentation of a paragraph that ended with `::`; -1 when the last one did not."""
    blank_before: bool = True
    substitutions: Substitutions = field(default_factory=Substitutions)

    def scan(self) -> None:
        """Take the whole text."""
        if not any(mark in self.text for mark in _MARKS):
            return
        self.substitutions = read_substitutions(self.text)
        while self.number < len(self.lines):
            line = self.lines[self.number]
            stripped = line.lstrip()
            if stripped:
                self._take(line, stripped)
                self.blank_before = False
            else:
                self.blank_before = True
                self._advance()
        self._flush()

    def _take(self, line: str, stripped: str) -> None:
        indent = len(line) - len(stripped)
        if self.literal_after >= 0 and self.blank_before:
            literal, self.literal_after = indent > self.literal_after, -1
            if literal:
                self._pass_body(base=indent - 1)
                return
        first = stripped[0]
        if first == "." and (stripped == ".." or stripped.startswith((".. ", "..\t"))):
            self._take_explicit(line[:_MAX_LINE_CHARS], indent)
        elif first == "_" and stripped.startswith("__ ") and (target := _TARGET.match(line[:_MAX_LINE_CHARS])):
            self._take_target(target, indent)
        elif first == ">" and stripped.startswith(">>>") and self.blank_before:
            self._pass_lines(lambda text: bool(text.strip()))
        elif first == "+" and GRID_RULE.match(stripped[:_MAX_LINE_CHARS]):
            self._pass_lines(lambda text: text.lstrip()[:1] in ("+", "|"))
        elif first == "=" and SIMPLE_RULE.match(stripped[:_MAX_LINE_CHARS]):
            self._pass_simple_table()
        elif first == ":" and _TOOL_FIELD.match(stripped[:_MAX_LINE_CHARS]):
            self._cut(1)
        else:
            self.literal_after = indent if stripped.rstrip().endswith("::") else -1
            self._advance()

    def _take_explicit(self, line: str, indent: int) -> None:
        """A line that begins with two dots: a directive, a target, a footnote, else a comment."""
        directive = DIRECTIVE.match(line)
        if directive and ".. |" not in line:
            self._take_directive(directive, indent)
        elif target := _TARGET.match(line):
            self._take_target(target, indent)
        elif footnote := _FOOTNOTE.match(line):
            self._edit_line(indent, footnote.end(), "")
            self._advance()
        elif line.strip() == ".." and not self._following().strip():
            self._cut(1)
        else:
            self._cut(1 + self._body_lines(indent))

    def _take_directive(self, directive: re.Match[str], indent: int) -> None:
        name, argument = read_as(directive["name"].lower()), directive["argument"] or ""
        body = body_of(name)
        if body == "dropped":
            self._cut(1 + self._body_lines(indent))
            return
        if directive["name"].lower() in TABLES and self._take_table(name, argument, indent):
            return
        if name in _IMAGES:
            self._take_image(argument)
        elif is_verbatim(name):
            self._advance()
        else:
            self._edit_directive(directive, indent, first_line(name, argument))
            self.literal_after = indent if argument.endswith("::") else -1
            self._advance()
        self._take_options()
        if name == "parsed-literal" and self.substitutions:
            start = self.start
            self._pass_body(base=indent)
            self.edits += inline_edits(self.text, start, min(self.start, len(self.text)), self.substitutions)
        elif body == "verbatim":
            self._pass_body(base=indent)
        elif is_admonition(name) and not argument and not self._line().strip() and self.number < len(self.lines) - 1:
            self._cut(1)  # the body continues the label

    def _take_table(self, name: str, argument: str, indent: int) -> bool:
        """Put rows in the place of a directive that lists them; False where it lists none."""
        count = 1 + self._body_lines(indent)
        lines = self.lines[self.number : self.number + count]
        edits = table_edits(name, argument, lines, indent=indent, substitutions=self.substitutions)
        if not edits:
            return False
        self._flush()
        self._edit_lines(self.start, lines, edits)
        for _ in range(count):
            self._advance()
        self.prose_start = self.start
        return True

    def _edit_directive(self, directive: re.Match[str], indent: int, words: str) -> None:
        """Put the words in the place of the line; what of its argument ends them stays as prose of its own."""
        argument = directive["argument"] or ""
        for rest in (argument, argument.partition(" ")[2].lstrip()):
            if rest and words.endswith(rest):
                self._edit_line(indent, directive.end("argument") - len(rest), words[: -len(rest)])
                return
        self._edit_line(indent, len(directive[0]), words or GONE)

    def _take_image(self, source: str) -> None:
        """Nothing of the directive's line; the words of its `:alt:` stay, as an option's."""
        if is_badge(source):
            self._cut(1 + self._body_lines(len(self._line()) - len(self._line().lstrip())))
        else:
            self._cut(1)

    def _take_options(self) -> None:
        """The lines of options below a directive: of those that are shown, the words."""
        while option := _OPTION.match(self._line()[:_MAX_LINE_CHARS]):
            label = _SHOWN_OPTIONS.get(option["name"])
            if option["value"] and label is not None and (label or image_words(option["value"])):
                self._edit_line(0, option.start("value"), " " * (option.start("name") - 1) + label)
                self._advance()
            else:
                self._cut(1)

    def _take_target(self, target: re.Match[str], indent: int) -> None:
        name, url = target["name"] or "", target["target"] or ""
        lines = 1 + self._body_lines(indent)
        if not url and lines > 1:
            url = "".join(line.strip() for line in self.lines[self.number + 1 : self.number + lines])[:_MAX_LINE_CHARS]
        if url and not url.endswith("_") and carries_words(url, text=name):
            for _ in range(lines):
                self._advance()
        else:
            self._cut(lines)

    def _line(self) -> str:
        return self.lines[self.number] if self.number < len(self.lines) else ""

    def _following(self) -> str:
        return self.lines[self.number + 1] if self.number + 1 < len(self.lines) else ""

    def _advance(self) -> None:
        self.start += len(self.lines[self.number]) + 1
        self.number += 1

    def _edit_line(self, start: int, end: int, words: str) -> None:
        """Replace these columns of the present line."""
        self.edits.append((self.start + start, self.start + end, words))

    def _cut(self, lines: int) -> None:
        """Drop the present line, and those after it."""
        self._flush()
        start = self.start
        for _ in range(lines):
            self._advance()
        self.edits.append((start, self.start - 1, GONE))
        self.prose_start = self.start
        self.literal_after = -1

    def _body_lines(self, indent: int) -> int:
        """How many lines after the present one are deeper than this, with blank lines between them."""
        last = number = self.number
        while number + 1 < len(self.lines):
            number += 1
            line = self.lines[number]
            stripped = line.lstrip()
            if not stripped:
                continue
            if len(line) - len(stripped) <= indent:
                break
            last = number
        return last - self.number

    def _pass_body(self, *, base: int) -> None:
        """Leave the lines alone that are deeper than this, from the present one on."""
        self._flush()
        while self.number < len(self.lines):
            line = self.lines[self.number]
            stripped = line.lstrip()
            if stripped and len(line) - len(stripped) <= base:
                break
            self._advance()
        self.prose_start, self.blank_before = self.start, True

    def _pass_lines(self, belongs: Callable[[str], bool]) -> None:
        """Leave these lines alone, the present one and those after it that belong to it; a table becomes rows."""
        self._flush()
        self._advance()
        while self.number < len(self.lines) and belongs(self.lines[self.number]):
            self._advance()
        self._end_table()

    def _pass_simple_table(self) -> None:
        """Leave a table alone: up to a rule with a blank line below, or what no table holds."""
        self._flush()
        self._advance()
        while self.number < len(self.lines):
            line = self._line()
            ends = SIMPLE_RULE.match(line.strip()[:_MAX_LINE_CHARS]) and not self._following().strip()
            if line.startswith(".. "):
                break
            self._advance()
            if ends:
                break
        self._end_table()

    def _end_table(self) -> None:
        """Put rows in the place of the lines since the last prose; a short table stays as it is drawn."""
        end = min(self.start, len(self.text))
        lines = self.text[self.prose_start : end].removesuffix("\n").split("\n")
        if edits := drawn_edits(lines, substitutions=self.substitutions):
            self._edit_lines(self.prose_start, lines, edits)
        elif self.substitutions:
            self.edits += reference_edits(self.text, self.prose_start, end, self.substitutions)
        self.prose_start = end

    def _edit_lines(self, start: int, lines: Sequence[str], edits: Sequence[TableEdit]) -> None:
        """Take edits of these lines, the first of which begins at `start`."""
        starts = [0, *accumulate(len(line) + 1 for line in lines)]
        self.edits += [(start + starts[at], start + starts[end] - 1, words) for at, end, words in edits]

    def _flush(self) -> None:
        """Look through the prose so far for inline markup."""
        end = min(self.start, len(self.text))
        if self.prose_start < end and ("`" in self.text or self.substitutions):
            self.edits += inline_edits(self.text, self.prose_start, end, self.substitutions)
        self.prose_start = end
