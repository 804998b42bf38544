"""Tables that are cut: whole rows, and the names of the columns with each piece."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rag_pipeline.chunking import chunk_document, count_words
from rag_pipeline.documents.asciidoc import extract_asciidoc
from rag_pipeline.documents.extract import Extract
from rag_pipeline.documents.html_text import extract_html
from rag_pipeline.documents.markdown import extract_markdown
from rag_pipeline.documents.rst import extract_rst
from rag_pipeline.model import Chunk, Document, text_hash
from rag_pipeline.settings import Chunking

MakeDocument = Callable[..., Document]
LIMITS = Chunking(max_tokens=48, min_tokens=8)
ROWS = range(12)
KEYS = [f"key{number}" for number in ROWS]
PIPES = [f"| {key} | the type of it | 1.5 seconds. Or none |" for key in KEYS]
HEADER = "Key | Value type | Default"
WIDTHS = (8, 16, 24)


def drawn(cells: list[str], *, edge: str, gap: str) -> str:
    return edge + gap.join(cell.ljust(width) for cell, width in zip(cells, WIDTHS, strict=True)) + edge


def grid() -> str:
    rows = [
        drawn([f" {key} ", " the type of it ", " 1.5 seconds. "], edge="|", gap="  |")
        + "\n"
        + drawn(["", " and more ", " Or none "], edge="|", gap="  |")
        for key in KEYS
    ]
    head = (
        drawn([" Key", " Value", " Default"], edge="|", gap="  |")
        + "\n"
        + drawn(["", " type", ""], edge="|", gap="  |")
    )
    rule = "".join("+" if mark == "|" else "-" for mark in rows[0].split("\n")[0])
    return "\n".join([rule, head, rule.replace("-", "="), *(f"{row}\n{rule}" for row in rows)])


def simple(*, blank: str = "") -> str:
    rule = drawn(["=" * width for width in WIDTHS], edge="", gap=" ")
    head = drawn(["Key", "Value", "Default"], edge="", gap=" ") + "\n" + drawn(["", "type", ""], edge="", gap=" ")
    rows = [
        drawn([key, "the type of it", "1.5 seconds."], edge="", gap=" ")
        + "\n"
        + drawn(["", "and more", "Or none"], edge="", gap=" ")
        for key in KEYS
    ]
    return "\n".join([rule, head, rule, f"\n{blank}".join(rows), rule])


LISTED = (
    ".. list-table:: The title\n   :header-rows: 1\n   :stub-columns: 1\n\n"
    "   * - Key\n     - Value type\n     - Default\n"
    + "\n".join(f"   * - {key}\n     - the type\n       of it\n     - 1.5 seconds. Or none" for key in KEYS)
)
CSV = '.. csv-table:: The title\n   :header: Key, "Value type", Default\n   :delim: ,\n\n' + "\n".join(
    f'   {key}, "the type,\n   of it", 1.5 seconds. Or none' for key in KEYS
)
ASCIIDOC = '[cols="1,2a,3", options="header"]\n|===\n|Key\n|Value type\n|Default\n\n' + "\n\n".join(
    f"|{key}\n|the type of it\n|1.5 seconds. Or none" for key in KEYS
)
HTML = "<table><thead><tr><th>Key<th>Value type<th>Default</thead>\n" + "\n".join(
    f"<tr><td>{key}</td><td><p>the type</p><p>of it</p></td><td>1.5 seconds.<br>Or none</td></tr>" for key in KEYS
)
MARKED = "\n".join([f"| {HEADER} |", "|:--|:-:|--:|", *PIPES])
BARE = "\n".join([HEADER, "--- | --- | ---", *(row.strip("| ") for row in PIPES)])
TABLES: dict[str, tuple[Callable[[str], Extract], str]] = {
    "pipes": (extract_markdown, MARKED),
    "no outer pipes": (extract_markdown, BARE),
    "in a list item": (extract_markdown, "- An item:\n\n  " + MARKED.replace("\n", "\n  ")),
    "in a quote": (extract_markdown, "> " + MARKED.replace("\n", "\n> ")),
    "grid": (extract_rst, grid()),
    "simple": (extract_rst, simple()),
    "simple, blank lines": (extract_rst, simple(blank="\n")),
    "list-table": (extract_rst, LISTED),
    "csv-table": (extract_rst, CSV),
    "in a table directive": (extract_rst, ".. table:: The title\n\n   " + grid().replace("\n", "\n   ")),
    "AsciiDoc": (extract_asciidoc, f"{ASCIIDOC}\n|==="),
    "HTML": (extract_html, f"{HTML}\n</table>"),
}


def cut(make_document: MakeDocument, text: str, *, extract: Callable[[str], Extract] = extract_markdown) -> list[Chunk]:
    made = extract(text)
    document = make_document(made.text, markup=made.markup, source_lines=made.source_lines)
    chunks = chunk_document(document, settings=LIMITS, count_tokens=count_words)
    assert all(document.text[chunk.start_char : chunk.end_char] == chunk.text for chunk in chunks)
    assert all(chunk.text_hash == text_hash(chunk.context + chunk.text) for chunk in chunks)
    assert all(chunk.tokens <= LIMITS.max_tokens for chunk in chunks)
    return chunks


@pytest.mark.parametrize("kind", TABLES)
def test_every_piece_of_a_table_has_whole_rows_and_the_columns(make_document: MakeDocument, kind: str) -> None:
    extract, table = TABLES[kind]
    text = f"Before the table.\n\n{table}\n\nAfter the table.\n"
    if kind == "HTML":
        text = f"<p>Before the table.</p>{table}<p>After the table.</p>"
    chunks = cut(make_document, text, extract=extract)
    holding = [chunk for chunk in chunks if "key" in chunk.text]
    assert len(holding) > 2
    for key in KEYS:
        (chunk,) = (chunk for chunk in holding if f"{key} " in chunk.text or f"{key}\n" in chunk.text)
        assert chunk.text[chunk.text.index(key) :].count("Or none") >= 1
        assert chunk.context == ("" if "Default" in chunk.text else f"{HEADER}\n\n")
        assert (chunk.heading_path[-1:] == (HEADER,)) is ("Default" not in chunk.text)
    assert not any("Or none" in chunk.text.split("key")[0] for chunk in chunks)
    assert "Default" not in "".join(chunk.context for chunk in chunks if "key" not in chunk.text)


@pytest.mark.parametrize(
    "table",
    [
        "\n".join(PIPES),
        "\n".join(["| | | |", "|---|---|---|", *PIPES]),
        f"```\n{MARKED}\n```",
        f"~~~csv\n{BARE}\n~~~",
        "    " + BARE.replace("\n", "\n    "),
    ],
)
def test_no_columns_are_made_up(make_document: MakeDocument, table: str) -> None:
    chunks = cut(make_document, f"Words.\n\n{table}\n")
    assert len(chunks) > 2
    assert {(chunk.context, tuple(chunk.heading_path)) for chunk in chunks} == {("", ())}


def test_pieces_of_a_row_that_is_too_long_have_the_columns(make_document: MakeDocument) -> None:
    row = f"| long | {'many words of it ' * 40} | end |"
    chunks = cut(make_document, f"# Title\n\n| {HEADER} |\n|---|---|---|\n| a | b | c |\n{row}\n")
    assert len(chunks) > 3
    assert all(chunk.heading_path == ("Title", HEADER) for chunk in chunks[1:])


def test_columns_are_named_as_readers_see_them_and_not_without_end(make_document: MakeDocument) -> None:
    head = "| `key` | a\\|b | [Guide](x.md) |  | **Bold** |\n|---|---|---|---|---|\n"
    chunks = cut(make_document, head + "\n".join(f"| r{n} | x | y | z | words words words |" for n in range(12)))
    assert chunks[-1].context == "key | a|b | Guide |  | Bold\n\n"
    wide = " | ".join(f"column number {n}" for n in range(60))
    chunks = cut(make_document, f"| {wide} |\n{'|---' * 60}|\n" + "\n".join("| x " * 60 + "|" for _ in range(3)))
    assert chunks[-1].context.startswith("column number 0 | column number 1 |")
    assert len(chunks[-1].context) < 520


def test_what_follows_a_table_and_another_table_have_their_own_place(make_document: MakeDocument) -> None:
    other = MARKED.replace("Key", "Name").replace("key", "name")
    chunks = cut(make_document, f"{MARKED}\n\nBetween.\n\n{other}\n")
    for chunk in chunks:
        assert ("Key |" in chunk.context + chunk.text) is ("key" in chunk.text)
        assert ("Name |" in chunk.context + chunk.text) is ("name" in chunk.text)


def test_the_columns_stand_below_the_headings_that_are_embedded(make_document: MakeDocument) -> None:
    document = make_document(f"# Settings\n\n{MARKED}\n")
    chunks = chunk_document(document, settings=LIMITS, count_tokens=count_words, context="headings")
    assert chunks[-1].context == f"Settings\n\n{HEADER}\n\n"
