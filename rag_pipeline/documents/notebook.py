"""Jupyter notebooks as markdown: prose cells as they are, code cells fenced, long outputs cut."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from rag_pipeline.documents.decoding import plain_text
from rag_pipeline.documents.extract import Extract
from rag_pipeline.documents.fences import fenced
from rag_pipeline.documents.titles import markdown_title
from rag_pipeline.errors import ItemError

_MAX_OUTPUT_LINES = 20
_MAX_OUTPUT_LINE_CHARS = 500
_TERMINAL_COLOURS = re.compile(r"\x1b?\[[0-9;]*m")
_LANGUAGE = re.compile(r"[A-Za-z][\w+#.-]{0,30}")


def extract_notebook(text: str, *, path: str) -> Extract:
    """Markdown of the notebook; every line counts as source line 1, for nobody reads a notebook's JSON by line.

    Raises:
        ItemError: the text is not JSON, or has no list of cells.
    """
    notebook = _read(text, path)
    language = _language(notebook)
    parts = [part for cell in _cells(notebook, path) for part in _cell_parts(cell, language)]
    body = plain_text("\n\n".join(parts))
    body = body + "\n" if body else body
    lines = [1] * (body.count("\n") + 1)
    return Extract(text=body, markup="markdown", title=markdown_title(body), source_lines=lines)


def _read(text: str, path: str) -> Mapping[str, object]:
    try:
        notebook = json.loads(text)
    except (ValueError, RecursionError) as error:
        reason = str(error) or type(error).__name__
        raise ItemError(f"{path} is not a notebook: {reason}: repair the file, or exclude it") from error
    if not isinstance(notebook, dict):
        raise ItemError(f"{path} is not a notebook: its JSON is no object: repair the file, or exclude it")
    return notebook


def _cells(notebook: Mapping[str, object], path: str) -> Iterator[Mapping[str, object]]:
    cells = notebook.get("cells")
    if cells is None and isinstance(sheets := notebook.get("worksheets"), list):  # nbformat 3
        cells = [cell for sheet in sheets if isinstance(sheet, dict) for cell in sheet.get("cells") or []]
    if not isinstance(cells, list):
        raise ItemError(f"{path} is not a notebook: it has no list of cells: repair the file, or exclude it")
    return (cell for cell in cells if isinstance(cell, dict))


def _cell_parts(cell: Mapping[str, object], language: str) -> Iterator[str]:
    source = _joined(cell.get("source", cell.get("input"))).strip("\n")
    if not source.strip():
        return
    if cell.get("cell_type") != "code":
        yield source
        return
    yield fenced(source, language)
    outputs = cell.get("outputs")
    outputs = outputs if isinstance(outputs, list) else []
    printed = [_output_text(output) for output in outputs if isinstance(output, dict)]
    if shown := _cut("\n".join(text for text in printed if text.strip())):
        yield fenced(shown, "text")


def _output_text(output: Mapping[str, object]) -> str:
    data = output.get("data", output)
    if output.get("output_type") in ("error", "pyerr"):
        return f"{_joined(output.get('ename'))}: {_joined(output.get('evalue'))}"
    plain = data.get("text/plain") if isinstance(data, Mapping) else None
    return _TERMINAL_COLOURS.sub("", _joined(plain or output.get("text")))


def _cut(output: str) -> str:
    lines = [line[:_MAX_OUTPUT_LINE_CHARS].rstrip() for line in output.strip("\n").split("\n")]
    return "\n".join([*lines[:_MAX_OUTPUT_LINES], "…"] if len(lines) > _MAX_OUTPUT_LINES else lines)


def _joined(source: object) -> str:
    if isinstance(source, list):
        return "".join(line for line in source if isinstance(line, str))
    return source if isinstance(source, str) else ""


def _language(notebook: Mapping[str, object]) -> str:
    metadata = notebook.get("metadata")
    if not isinstance(metadata, Mapping):
        return "python"
    for section, key in (("language_info", "name"), ("kernelspec", "language")):
        about = metadata.get(section)
        name = about.get(key) if isinstance(about, Mapping) else None
        if isinstance(name, str) and _LANGUAGE.fullmatch(name):
            return name
    return "python"
