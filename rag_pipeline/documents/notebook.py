"""Jupyter notebooks as markdown: prose cells cleaned, code cells fenced, outputs cut to their text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from rag_pipeline.documents.decoding import plain_text
from rag_pipeline.documents.extract import Extract
from rag_pipeline.documents.fences import fenced
from rag_pipeline.documents.markdown import clean_markdown
from rag_pipeline.documents.notebook_lines import CellPlace, cell_places
from rag_pipeline.documents.titles import markdown_title
from rag_pipeline.model import Section
from rag_pipeline.notebook_json import read_notebook

_MAX_OUTPUT_LINES = 20
_MAX_OUTPUT_LINE_CHARS = 500
_MAX_HTML_CHARS = 100_000
_TEXTS = ("text/plain", "text/markdown", "text/latex")
_NAMELESS = re.compile(r"<[A-Za-z][\w.]*(?: [^<>\n]{0,200})?(?: at 0x[0-9A-Fa-f]+| size [\dx]+[^<>\n]{0,60})>")
"""What stands for an object that has no text: `<Figure size 432x288 with 1 Axes>`, `<Line2D at 0x1186d90b8>`."""
_HAS_WORD = re.compile(r"\w")
_LANGUAGE = re.compile(r"[A-Za-z][\w+#.-]{0,30}")


def extract_notebook(text: str, *, path: str) -> Extract:
    """Markdown of the notebook, with a section for each cell; its lines are those of the cells in the file's JSON.

    Raises:
        ItemError: the text is not JSON, or has no list of cells.
    """
    notebook = read_notebook(text, path=path)
    language = _language(notebook.metadata)
    cells = notebook.cells
    places = cell_places(text)
    if len(places) != len(cells):  # such as a key that stands there twice: no line is better than a wrong one
        places = [CellPlace(1) for _ in cells]
    written = _Written()
    for number, (cell, place) in enumerate(zip(cells, places, strict=True), start=1):
        for part in _cell_parts(cell, language, place):
            written.add(part, name=f"cell {number}")
    body = "\n".join([*written.lines, ""]) if written.lines else ""
    return Extract(
        text=body,
        markup="markdown",
        title=markdown_title(body),
        source_lines=[*written.source_lines, (written.source_lines or [1])[-1]],
        sections=written.sections,
    )


class _Part(NamedTuple):
    """A text of a cell, and the line of the file for each of its lines; the last one stands for those after it."""

    text: str
    source_lines: Sequence[int]


@dataclass(slots=True)
class _Written:
    """The notebook's text so far."""

    lines: list[str] = field(default_factory=list)
    source_lines: list[int] = field(default_factory=list)
    sections: list[Section] = field(default_factory=list)
    size: int = 0

    def add(self, part: _Part, *, name: str) -> None:
        """Add a text of the cell of this name, a blank line before it."""
        lines = plain_text(part.text).split("\n")
        if not any(line.strip() for line in lines):
            return
        known = list(part.source_lines[: len(lines)]) or [1]
        known += known[-1:] * (len(lines) - len(known))
        if self.lines:
            self._write([""], known[:1])
        if not self.sections or self.sections[-1].name != name:
            self.sections.append(Section(start_char=self.size, anchor=name, name=name))
        self._write(lines, known)

    def _write(self, lines: Sequence[str], source_lines: Sequence[int]) -> None:
        self.lines += lines
        # What is printed above a cell's source is shown below it.
        last = self.source_lines[-1] if self.source_lines else 1
        self.source_lines += [max(last, line) for line in source_lines]
        self.size += sum(map(len, lines)) + len(lines)


def _cell_parts(cell: Mapping[str, object], language: str, place: CellPlace) -> Iterator[_Part]:
    whole = cell.get("source", cell.get("input"))
    strings = whole if isinstance(whole, list) else [whole]
    joined = _joined(whole)
    source = joined.strip("\n")
    if not source.strip():
        return
    known = place.lines_of([string for string in strings if isinstance(string, str)])
    known = known[len(joined) - len(joined.lstrip("\n")) :] or known[-1:]
    kind = cell.get("cell_type")
    if kind == "heading":  # nbformat 3
        level = cell.get("level")
        yield _Part("#" * (level if isinstance(level, int) and 1 <= level <= 6 else 1) + f" {source}", known)
    elif kind == "markdown":
        yield _markdown_part(source, known)
    elif kind != "code":
        yield _Part(source, known)
    else:
        yield _Part(fenced(source, language), [known[0], *known])
        outputs = cell.get("outputs")
        outputs = outputs if isinstance(outputs, list) else []
        printed = [_output_text(output) for output in outputs if isinstance(output, dict)]
        if shown := _cut("\n".join(text for text in printed if text.strip())):
            yield _Part(fenced(shown, "text"), known[-1:])


def _markdown_part(source: str, known: Sequence[int]) -> _Part:
    cleaned, source_lines = clean_markdown(plain_text(source))
    text = cleaned.strip("\n")
    numbers = source_lines or range(1, cleaned.count("\n") + 2)
    above = len(cleaned) - len(cleaned.lstrip("\n"))
    kept = numbers[above : above + text.count("\n") + 1]
    return _Part(text, [known[min(number, len(known)) - 1] for number in kept])


def _output_text(output: Mapping[str, object]) -> str:
    """What an output says in words, without colours; pictures and widgets say nothing."""
    data = output.get("data", output)
    if output.get("output_type") in ("error", "pyerr"):
        text = f"{_joined(output.get('ename'))}: {_joined(output.get('evalue'))}"
    elif isinstance(data, Mapping):
        text = next((words for key in _TEXTS if (words := _joined(data.get(key)))), "") or _joined(output.get("text"))
        if "<" in text and not _HAS_WORD.search(_NAMELESS.sub("", text)):
            text = ""
        if not text and (html := _joined(data.get("text/html", data.get("html")))):
            from rag_pipeline.documents.html_text import extract_html  # see `clean`

            text = extract_html(html[:_MAX_HTML_CHARS]).text
    else:
        text = _joined(output.get("text"))
    return plain_text("\n".join(_last_state(line) for line in text.split("\n")))


def _last_state(line: str) -> str:
    """What a line shows at last, of all that was written over itself, as progress bars do."""
    return line.rstrip("\r").rpartition("\r")[2] if "\r" in line else line


def _cut(output: str) -> str:
    lines = [line[:_MAX_OUTPUT_LINE_CHARS].rstrip() for line in output.strip("\n").split("\n")]
    return "\n".join([*lines[:_MAX_OUTPUT_LINES], "…"] if len(lines) > _MAX_OUTPUT_LINES else lines)


def _joined(source: object) -> str:
    if isinstance(source, list):
        return "".join(line for line in source if isinstance(line, str))
    return source if isinstance(source, str) else ""


def _language(metadata: Mapping[str, object]) -> str:
    for section, key in (("language_info", "name"), ("kernelspec", "language")):
        about = metadata.get(section)
        name = about.get(key) if isinstance(about, Mapping) else None
        if isinstance(name, str) and _LANGUAGE.fullmatch(name):
            return name
    return "python"
