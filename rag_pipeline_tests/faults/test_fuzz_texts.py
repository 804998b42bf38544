"""Documents and code of every kind, mangled: what comes out can be stored, is covered by its chunks, and is bounded."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given

from rag_pipeline.chunking import chunk_document, count_words
from rag_pipeline.documents import clean
from rag_pipeline.errors import ItemError
from rag_pipeline.index.rows import storable
from rag_pipeline.index.writer import Entry
from rag_pipeline.model import SourceItem
from rag_pipeline.settings import Chunking
from rag_pipeline_tests.chunking.test_chunk import assert_sound
from rag_pipeline_tests.chunking.test_code import SAMPLES as CODE
from rag_pipeline_tests.documents.conftest import make_item
from rag_pipeline_tests.faults.mangling import deep, mangled, slower

__all__ = ["make_item"]

pytestmark = pytest.mark.faults
ROOT = Path(__file__).resolve().parents[2]
SMALL = Chunking(max_tokens=40, min_tokens=6)
LONGEST_S = 20.0
_NOTEBOOK = {
    "nbformat": 4, "nbformat_minor": 5,
    "metadata": {"language_info": {"name": "python"}, "kernelspec": {"language": "python"}},
    "cells": [
        {"cell_type": "markdown", "metadata": {}, "source": ["# Title\n", "Some *words*.\n"]},
        {"cell_type": "code", "metadata": {}, "execution_count": 1, "source": "import os\nprint(os.getcwd())",
         "outputs": [{"output_type": "stream", "name": "stdout", "text": ["/home\n"]},
                     {"output_type": "display_data", "data": {"text/html": "<b>x</b>", "image/png": "iVBORw0KGgo="}}]},
        {"cell_type": "raw", "metadata": {}, "source": "raw"},
    ],
}  # fmt: skip
_HTML = (
    "<!DOCTYPE html><html lang=en><head><title>The guide</title><script>var a='</p>';</script>"
    "<style>p{color:red}</style></head><body><nav><ul><li><a href=/>Home</a></ul></nav><main><h1 id=a>Guide</h1>"
    "<p>First &mdash; words <code>x &lt; y</code>.<table><tr><th>k<th>v<tr><td>1<td>2</table><pre>  code\n   here</pre>"
    "<ol><li>one<li>two<ul><li>inner</ul></ol><blockquote>said</blockquote><img alt='a picture' src=x>"
    "<details><summary>More</summary>hidden</details></main><footer>(c)</footer></body></html>"
)
_RST = (
    "=====\nTitle\n=====\n\n.. contents::\n\nIntro with ``code`` and `a link <https://x.y>`_ and |sub|.\n\nPart\n----\n"
    "\n"
    ".. code-block:: python\n   :linenos:\n\n   def f():\n       return 1\n\n.. note:: Take *care*.\n\n"
    "+---+---+\n| a | b |\n+===+===+\n| 1 | 2 |\n+---+---+\n\nTerm\n  What it means.\n\n"
    ".. _target:\n\n:field: value\n\n"
    ".. |sub| replace:: text\n"
)
_ASCIIDOC = (
    "= Title\nAn Author\n:toc:\n:name: value\n\nIntro with `code`, *bold* and {name}.\n\n== Part\n\n"
    "[source,python]\n----\ndef f():\n    return 1\n----\n\nNOTE: Take care.\n\n|===\n|a |b\n|1 |2\n|===\n\n"
    "* one\n** two\n\n<<part,see>> "
    "link:https://x.y[words] include::other.adoc[]\n\n////\ncomment\n////\n\n====\nexample\n====\n"
)
_MDX = (
    "import X from './x'\n\nexport const meta = {a: 1}\n\n# Page\n\n<X a={{b: 1}}>\n\nWords.\n\n</X>\n\n{/* gone */}\n"
)
TEXTS: dict[str, bytes] = {
    **{path.name: path.read_bytes()[:6000] for path in sorted((ROOT / "docs").glob("*.md"))[:6]},
    "page.html": _HTML.encode(), "page.rst": _RST.encode(), "page.adoc": _ASCIIDOC.encode(), "page.mdx": _MDX.encode(),
    "book.ipynb": json.dumps(_NOTEBOOK, indent=1).encode(), "plain.txt": b"One line.\n\nAnother line.\n" * 5,
}  # fmt: skip
SOURCES: dict[str, bytes] = {name: path.read_bytes() for name, path in CODE.items()}


def stored(text: str) -> None:
    """PostgreSQL takes it."""
    text.encode("utf-8")
    assert "\x00" not in text
    assert storable(text) == text


def follow(item: SourceItem) -> None:
    """Through cleaning and cutting, or to a reason."""
    started = time.perf_counter()
    try:
        document = clean(item)
    except ItemError as error:
        assert str(error)
        return
    for text in (document.text, document.title, json.dumps(document.metadata, ensure_ascii=False, allow_nan=False)):
        stored(text)
    chunks = chunk_document(document, settings=SMALL, count_tokens=count_words)
    for chunk in chunks:
        stored(chunk.text)
        assert 1 <= chunk.start_line <= chunk.end_line
    # Without the lines of the source, what the chunks say of themselves can be held against the text.
    plain = replace(document, source_lines=None)
    cut = chunk_document(plain, settings=SMALL, count_tokens=count_words)
    assert_sound(plain, cut, limits=SMALL, count_tokens=count_words)
    assert [chunk.text for chunk in cut] == [chunk.text for chunk in chunks]
    assert bool(chunks) == bool(document.text.strip()), "a document without chunks is lost to every question"
    assert Entry(document=document, chunks=chunks).document.document_id == document.document_id
    assert time.perf_counter() - started < LONGEST_S
    again = clean(replace(item))
    assert (again.text, again.title) == (document.text, document.title), "the same gives the same"


@deep
@given(sample=mangled(TEXTS))
def test_any_mangled_document_is_stored_whole_or_refused_with_a_reason(
    make_item: Callable[..., SourceItem], sample: tuple[str, bytes]
) -> None:
    name, content = sample
    follow(make_item(content, path=name))


@deep
@given(sample=mangled(SOURCES))
def test_any_mangled_code_is_stored_whole_or_refused_with_a_reason(
    make_item: Callable[..., SourceItem], sample: tuple[str, bytes]
) -> None:
    name, content = sample
    follow(make_item(content, path=name, source_type="code"))


@slower
@given(sample=mangled(TEXTS | SOURCES))
def test_any_content_under_any_name_is_stored_whole_or_refused_with_a_reason(
    make_item: Callable[..., SourceItem], sample: tuple[str, bytes]
) -> None:
    """Notebooks that are called `.rst`, code that is called `.html`."""
    name, content = sample
    for suffix in (".md", ".rst", ".adoc", ".html", ".ipynb", ".txt"):
        follow(make_item(content, path=f"{name}{suffix}"))
