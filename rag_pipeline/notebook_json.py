"""The JSON of Jupyter notebooks: drops are checked by it, and documents are made of its cells."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from rag_pipeline.bounded_json import parse_json
from rag_pipeline.errors import ItemError
from rag_pipeline.model import Json

CONTENT_TYPE: Final = "application/x-ipynb+json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Notebook:
    """A notebook as it is written."""

    cells: Sequence[Mapping[str, object]]
    metadata: Mapping[str, Json]
    others: Mapping[str, Json]
    """What else stands at the top of the file."""


def read_notebook(content: str | bytes, *, path: str) -> Notebook:
    """The notebook; bytes that are no text of their encoding count as unknown characters.

    Raises:
        ItemError: the text is not JSON, or has no list of cells.
    """
    text = content if isinstance(content, str) else content.decode(json.detect_encoding(content), "replace")
    try:
        notebook = parse_json(text)
    except ValueError as error:
        raise ItemError(f"{path} is not a notebook: it {error}: repair the file, or exclude it") from error
    if not isinstance(notebook, dict):
        raise ItemError(f"{path} is not a notebook: its JSON is no object: repair the file, or exclude it")
    cells = notebook.get("cells")
    if cells is None and isinstance(sheets := notebook.get("worksheets"), list):  # nbformat 3
        cells = [cell for sheet in sheets if isinstance(sheet, dict) for cell in _listed(sheet.get("cells"))]
    if not isinstance(cells, list):
        raise ItemError(f"{path} is not a notebook: it has no list of cells: repair the file, or exclude it")
    metadata = notebook.get("metadata")
    known = metadata if isinstance(metadata, dict) else {}
    others = {key: value for key, value in notebook.items() if key not in ("cells", "worksheets", "metadata")}
    return Notebook(cells=[cell for cell in cells if isinstance(cell, dict)], metadata=known, others=others)


def _listed(value: object) -> Sequence[object]:
    return value if isinstance(value, list) else ()
