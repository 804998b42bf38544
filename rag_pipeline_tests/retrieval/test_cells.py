"""A notebook's hits name their cell and open its lines."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from uuid import UUID

from rag_pipeline.chunking import chunk_document, count_words
from rag_pipeline.cli.console import place_of
from rag_pipeline.documents.clean import clean
from rag_pipeline.model import SearchHit, SourceItem
from rag_pipeline.retrieval.hits import hit_of
from rag_pipeline.retrieval.whole_document import _spellings
from rag_pipeline.settings import Chunking

NOW = datetime(2024, 5, 1, tzinfo=UTC)


def found(text: str) -> list[SearchHit]:
    """All chunks of a notebook, as the index gives them as hits."""
    item = SourceItem(
        tenant="acme",
        source_type="docs",
        source_id="study:a.ipynb",
        repository="study",
        day=date(2024, 5, 1),
        source_updated_at=NOW,
        observed_at=NOW,
        content=text.encode(),
        path="a.ipynb",
        url="https://github.com/o/n/blob/c0/a.ipynb",
        anchor="?plain=1#L{start}-L{end}",
    )
    document = clean(item)
    chunks = chunk_document(document, settings=Chunking(max_tokens=40, min_tokens=8), count_tokens=count_words)
    row = (document.title, document.url, document.anchor, document.path, "study", "docs", "study:a.ipynb", None, NOW)
    title, url, anchor, path, repository, source_type, source_id, language, updated = row
    return [
        hit_of(
            (
                UUID(int=0),
                UUID(int=1),
                title,
                c.text,
                url,
                anchor,
                path,
                repository,
                source_type,
                source_id,
                language,
                c.heading_path,
                c.start_line,
                c.end_line,
                updated,
                c.tokens,
                c.anchor,
                None,
            ),
            rank=1,
            score=1.0,
        )
        for c in chunks
    ]


def test_a_hit_links_to_the_lines_of_its_cell_and_says_which() -> None:
    cells = [
        {"cell_type": "markdown", "metadata": {}, "source": [f"# Part {number}\n", "\n", "some words here " * 9]}
        for number in range(4)
    ]
    text = json.dumps({"cells": cells, "metadata": {}, "nbformat": 4}, indent=1)
    source = text.split("\n")
    hits = found(text)
    assert len(hits) == 4
    for number, hit in enumerate(hits):
        assert f"# Part {number}" in source[hit.start_line - 1]
        assert "some words" in source[hit.end_line - 1]
        assert hit.location == f"a.ipynb:{hit.start_line}-{hit.end_line} · cell {number + 1}"
        assert hit.url.endswith(f"/a.ipynb?plain=1#L{hit.start_line}-L{hit.end_line}")
        assert place_of(hit) == f" · cell {number + 1}"
        assert "a.ipynb" in _spellings(hit.location, "acme")["names"]
        assert "https://github.com/o/n/blob/c0/a.ipynb" in _spellings(hit.url, "acme")["names"]


def test_a_hit_over_several_cells_names_the_first_and_the_last() -> None:
    cells = [{"cell_type": "code", "metadata": {}, "outputs": [], "source": [f"x{n} = {n}"]} for n in range(3)]
    (hit,) = found(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4}, indent=1))
    assert hit.location.endswith(" · cell 1 to cell 3")
