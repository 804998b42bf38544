"""Jupyter notebooks as markdown: prose cells cleaned, code cells fenced, outputs cut to their text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from rag_pipeline.documents.decoding import plain_text
from rag_pipeline.documents.extract import Extract
from rag_pipeline.documents.fences import fenced
from rag_pipeline.documents.markdown import clean_markdown
from rag_pipeline.documents.titles import markdown_title
from rag_pipeline.notebook_json import read_notebook

_MAX_OUTPUT_LINES = 20
_MAX_OUTPUT_LINE_CHARS = 500
_MAX_HTML_CHARS = 100_000
_TEXTS = ("text/plain", "text/markdown", "text/latex")
_LANGUAGE = re.compile(r"[A-Za-z][\w+#.-]{0,30}")


def extract_notebook(text: str, *, path: str) -> Extract:
    """Markdown of the notebook; every line counts as source line 1, for nobody reads a notebook's JSON by line.

    Raises:
        ItemError: the text is not JSON, or has no list of cells.
    """
    notebook = read_notebook(text, path=path)
    language = _language(notebook.metadata)
    parts = [part for cell in notebook.cells for part in _cell_parts(cell, language) if part.strip()]
    body = plain_text("\n\n".join(parts))
    body = body + "\n" if body else body
    lines = [1] * (body.count("\n") + 1)
    return Extract(text=body, markup="markdown", title=markdown_title(body), source_lines=lines)


def _cell_parts(cell: Mapping[str, object], language: str) -> Iterator[str]:
    source = _joined(cell.get("source", cell.get("input"))).strip("\n")
    if not source.strip():
        return
    kind = cell.get("cell_type")
    if kind == "heading":  # nbformat 3
        level = cell.get("level")
        yield "#" * (level if isinstance(level, int) and 1 <= level <= 6 else 1) + f" {source}"
    elif kind == "markdown":
        yield clean_markdown(plain_text(source))[0].strip("\n")
    elif kind != "code":
        yield source
    else:
        yield fenced(source, language)
        outputs = cell.get("outputs")
        outputs = outputs if isinstance(outputs, list) else []
        printed = [_output_text(output) for output in outputs if isinstance(output, dict)]
        if shown := _cut("\n".join(text for text in printed if text.strip())):
            yield fenced(shown, "text")


def _output_text(output: Mapping[str, object]) -> str:
    """What an output says in words, without colours; pictures and widgets say nothing."""
    data = output.get("data", output)
    if output.get("output_type") in ("error", "pyerr"):
        text = f"{_joined(output.get('ename'))}: {_joined(output.get('evalue'))}"
    elif isinstance(data, Mapping):
        text = next((words for key in _TEXTS if (words := _joined(data.get(key)))), "") or _joined(output.get("text"))
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
