"""Texts made to break parsers, as documents of every kind: no crash, sound lines, linear time."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rag_pipeline.documents.asciidoc import extract_asciidoc
from rag_pipeline.documents.code_text import extract_code
from rag_pipeline.documents.decoding import plain_text
from rag_pipeline.documents.extract import Extract
from rag_pipeline.documents.html_text import extract_html
from rag_pipeline.documents.markdown import extract_markdown
from rag_pipeline.documents.plain import extract_text
from rag_pipeline.documents.rst import extract_rst
from rag_pipeline_tests.documents.extracts import (
    HOSTILE,
    assert_quick,
    commonmark_examples,
    extract_lines,
    naughty_strings,
)

Extractor = Callable[[str], Extract]


def extract_source(text: str) -> Extract:
    return extract_code(text, path="a.py")


MARKED_UP = [extract_markdown, extract_rst, extract_asciidoc, extract_source]
EXTRACTORS = [*MARKED_UP, extract_html, extract_text]
needs_data = pytest.mark.skipif(not HOSTILE.exists(), reason="the hostile texts are not here (shared/data/hostile)")

PIECES = [
    "[![", "[", "![", "[a](", "[a](b \"", "[a](b", "[a][b]", "[a]: b\n", "[[TOC]]\n", "`", "``a`", "\n```\n", "~~~\n",
    "<!--", "<!-- a -->", "<!-- toc -->\n- [a](#b)\n", "<!-- start doctoc -->\n", "# contents\n- [a](#b)\n",
    "<a ", "<a href=\"", "<b>", "<h1>a\n", "<abbr title=a>", "<pre>", "<script>", "<A b={{", "{/*", "{#a", "\\",
    "\n    <b>\n\n", "> ", "- ", "|a|-|\n", "a|b\n-|-\n", "import {a,\n", "export const a;\n", ":a:`", "`a <", "`a `_",
    ".. a\n", ".. note::\n\n   a\n", "::\n\n a\n", "== ==\n", "+--+\n", "link:a[", "<<a,", "[[a]]", "////\n", "[a]\n",
    ":a: b\n", "# copyright\n", "/* copyright", "/* copyright */\n", "# licensed under a\n", "\"\"\"", "&nbsp;", "\t",
    "word ",
]  # fmt: skip


@pytest.mark.parametrize("piece", PIECES)
def test_repeated_marks_take_linear_time(piece: str) -> None:
    text = piece * (300_000 // len(piece))
    for extract in MARKED_UP:
        assert_quick(extract, text)


@pytest.mark.parametrize("extract", MARKED_UP)
def test_a_line_of_five_megabytes(extract: Extractor) -> None:
    made = assert_quick(extract, "# copyright " + "words and `code` and more words, " * 150_000)
    assert made.text or made.metadata["skipped"] == "minified"


@needs_data
@pytest.mark.parametrize("extract", EXTRACTORS)
def test_commonmark_examples_of_every_kind(extract: Extractor) -> None:
    examples = commonmark_examples()
    assert len(examples) > 600
    for example in [*examples, "\n\n".join(examples)]:
        made = extract(plain_text(example))
        lines = extract_lines(made)
        assert len(lines) == made.text.count("\n") + 1
        assert lines == sorted(lines)
        assert "\0" not in made.text
        assert "\x01" not in made.text


@needs_data
@pytest.mark.parametrize("extract", EXTRACTORS)
def test_naughty_strings_of_every_kind(extract: Extractor) -> None:
    strings = naughty_strings()
    assert len(strings) > 500
    for string in [*strings, "\n".join(strings)]:
        made = extract(plain_text(string))
        assert len(extract_lines(made)) == made.text.count("\n") + 1
        assert "\0" not in made.text
