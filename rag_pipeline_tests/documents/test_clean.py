"""Source items of every kind become documents."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rag_pipeline.documents import clean
from rag_pipeline.errors import ItemError
from rag_pipeline.model import Document, SourceItem, document_id

Cleaned = Callable[..., Document]
MakeItem = Callable[..., SourceItem]

PATHS = ["a.md", "a.mdx", "a.rst", "a.adoc", "a.txt", "a.html", "a.py", "LICENSE", None]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(content=st.text(max_size=300) | st.binary(max_size=300), path=st.sampled_from(PATHS))
def test_any_content_becomes_a_storable_document(cleaned: Cleaned, content: str | bytes, path: str | None) -> None:
    content = content.encode("utf-8", "replace") if isinstance(content, str) else content
    document = cleaned(content, path=path)
    assert document.title
    assert len(document.title) <= 200
    for text in (document.text, document.title, json.dumps(document.metadata, ensure_ascii=False, allow_nan=False)):
        assert "\x00" not in text
        text.encode("utf-8")
    assert document.source_lines is None or len(document.source_lines) == document.text.count("\n") + 1


def test_identity_time_and_place_are_kept(make_item: MakeItem) -> None:
    item = make_item(
        "# Hello", url="https://example.org/guide.md", anchor="#L{start}-L{end}", language="markdown", metadata={"k": 1}
    )
    document = clean(item)
    assert document.document_id == document_id(tenant="acme", source_type="docs", source_id="handbook:guide.md")
    for name in ("tenant", "source_type", "source_id", "repository", "day", "source_updated_at", "observed_at"):
        assert getattr(document, name) == getattr(item, name)
    for name in ("path", "language", "url", "anchor", "metadata", "deleted"):
        assert getattr(document, name) == getattr(item, name)


def test_a_tombstone_stays_one(cleaned: Cleaned) -> None:
    document = cleaned("# Gone", deleted=True)
    assert (document.deleted, document.text, document.title) == (True, "", "guide")


@pytest.mark.parametrize(
    ("path", "content", "title"),
    [
        ("a.md", "intro\n\n# The *big* [guide](x.md) `v2` #\n", "The big guide v2"),
        ("a.md", "Set up\n------\ntext", "Set up"),
        ("a.md", "```\n# not this\n```\n\n## This", "This"),
        ("a.md", '<h1 align="center"><b>Flask</b></h1>\n\n## Later', "Flask"),
        ("a.md", "- item\n---\n", "a"),
        ("a.md", "---\ntitle: From front matter\n---\n# Heading", "From front matter"),
        ("a.rst", ".. _label:\n\n=====\nTitle\n=====\n", "Title"),
        ("a.rst", "Use :class:`~flask.Flask` now\n=============================\n", "Use flask.Flask now"),
        ("a.adoc", ":toc:\n\n= Manual\n\n== Part", "Manual"),
        ("notes.txt", "\nRelease notes\n\nlong text", "Release notes"),
        ("notes.txt", "x" * 300, "notes"),
        ("a.html", "<html><head><title> The\npage </title></head><body><h1>Other</h1></body></html>", "The page"),
        ("a.html", "<p>x<h1>Only <em>this</em></h1>", "Only this"),
        ("docs/empty.md", " \n", "empty"),
    ],
)
def test_titles(cleaned: Cleaned, path: str, content: str, title: str) -> None:
    assert cleaned(content, path=path).title == title


def test_the_title_of_code_is_its_path_and_its_text_is_untouched(cleaned: Cleaned) -> None:
    document = cleaned("# Not a title\n<b>\n", path="src/a.html", source_type="code")
    assert (document.title, document.text) == ("src/a.html", "# Not a title\n<b>\n")


def test_what_the_source_calls_it_wins_and_long_titles_are_cut(cleaned: Cleaned) -> None:
    assert cleaned("# Mine", title="Theirs").title == "Theirs"
    assert len(cleaned("# " + "long " * 200).title or "") <= 200


def test_front_matter_becomes_metadata_and_lines_shift(cleaned: Cleaned) -> None:
    document = cleaned("---\ntags: [a, b]\ndate: 2024-05-01\nweight: .nan\n2: {x: 12:30:00}\n---\n# Title\n\ntext")
    assert document.text == "# Title\n\ntext"
    assert list(document.source_lines or ()) == [7, 8, 9]
    front_matter = document.metadata["front_matter"]
    assert isinstance(front_matter, dict)
    assert (front_matter["tags"], front_matter["date"], front_matter["weight"]) == (["a", "b"], "2024-05-01", "nan")
    json.dumps(front_matter, allow_nan=False)


@pytest.mark.parametrize(
    "text",
    [
        "---\n: : [\n---\nx",
        "---\njust words\n---\nx",
        "---\nnever: closed\n",
        "---\n" + "[" * 10_000 + "\n---\nx",
        "text\n---\na: b\n---\n",
    ],
)
def test_what_is_no_front_matter_stays_in_the_text(cleaned: Cleaned, text: str) -> None:
    document = cleaned(text)
    assert (document.text, document.source_lines) == (text, None)
    assert "front_matter" not in document.metadata


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("---\ntitle: never closed\n\nx", "line 1: "),
        ("---\na: &a [x]\nb: *a\n---\nx", "line 3: "),
        ("---\na: !!python/object:os.system {}\n---\nx", "line 2: "),
        ("---\ntitle: Q3: plans\n---\nx", "line 2: "),
        ("\n---\ntitle: Plans\n---\nx", "line 1: "),
        ("<!-- licence -->\n---\ntitle: Plans\n----\nx", "line 1: "),
        ("+++\ntitle = Plans\n+++\nx", "line 2: "),
    ],
)
def test_broken_front_matter_leaves_the_text_and_is_no_title(cleaned: Cleaned, text: str, problem: str) -> None:
    document = cleaned(text)
    assert (document.text.strip(), document.title) == ("x", "guide")
    assert str(document.metadata["broken_front_matter"]).startswith(f"{problem}broken front matter: ")
    assert list(document.source_lines or ())[-1] == text.count("\n") + 1


def test_toml_is_read_as_well_as_yaml(cleaned: Cleaned) -> None:
    document = cleaned("+++\ntitle = 'Plans'\ndate = 2024-05-01\n[extra]\ntags = ['a']\n+++\n# Heading\n")
    assert (document.title, document.text) == ("Plans", "# Heading\n")
    assert document.metadata["front_matter"] == {"title": "Plans", "date": "2024-05-01", "extra": {"tags": ["a"]}}


def test_encoding_and_losses_are_recorded(cleaned: Cleaned) -> None:
    assert cleaned("größe".encode("utf-16")).metadata == {"encoding": "utf-16"}
    assert cleaned("größe ü".encode() + b"\xff").metadata == {"replaced_characters": 1}


@pytest.mark.parametrize(
    ("language", "markup"),
    [("rst", "rst"), ("markdown", "markdown"), ("text", "text"), ("asciidoc", "asciidoc"), (None, "rst")],
)
def test_a_language_of_markup_decides_before_the_suffix_does(make_item: MakeItem, language: str, markup: str) -> None:
    assert clean(make_item("Title\n=====\n", path="a.rst", language=language)).markup == markup


def test_content_type_decides_where_there_is_no_path(cleaned: Cleaned) -> None:
    page = cleaned("<p>Hello<p>there", path=None, source_id="1", metadata={"content_type": "text/html; charset=utf-8"})
    assert page.text == "Hello\n\nthere"
    assert cleaned("<p>Hello", path=None, source_id="drop-1").text == "<p>Hello"


HTML = """<!doctype html>
<html><head><title>T</title><style>p {}</style></head>
<body>
<nav>menu</nav>
<h2>Set
   up</h2>
<p>First <b>bold</b>
and more.</p>
<ul><li>one</li><li>two</li></ul>
<pre><code>def f():

    return 1
</code></pre>
<table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table>
<script>alert(1)</script>
after
</body></html>
"""


def test_html_keeps_what_a_reader_sees_and_its_lines(cleaned: Cleaned) -> None:
    document = cleaned(HTML, path="a.html")
    lines = document.text.split("\n")
    assert [line for line in lines if line] == [
        "## Set up", "First bold and more.", "- one", "- two", "```", "def f():", "    return 1", "```", "| a | b |",
        "| --- | --- |", "| 1 | 2 |", "after",
    ]  # fmt: skip
    source = dict(zip(lines, document.source_lines or (), strict=True))
    assert {line: source[line] for line in ("## Set up", "First bold and more.", "- one", "def f():", "| a | b |")} == {
        "## Set up": 5, "First bold and more.": 7, "- one": 9, "def f():": 10, "| a | b |": 14,
    }  # fmt: skip
    assert source["    return 1"] == 12
    assert source["after"] == 16


@pytest.mark.parametrize(
    "markup",
    [
        "",
        "{% extends 'a' %}<div {% if x %}class='a'{% endif %}>{{ x }}</div><p>b",
        "<![if x]>text<![endif]>",
        "<!DOCTYPE [ <p>text",
        "&#xD800;&#0;text",
        "<a " * 20_000,
        "<div>" * 20_000 + "text",
        "<p>" + "<b>" * 20_000 + "text" + "</i>" * 20_000,
    ],
)
def test_broken_html_does_no_harm(cleaned: Cleaned, markup: str) -> None:
    document = cleaned(markup, path="a.html")
    document.text.encode("utf-8")
    assert ("text" in document.text) == ("text" in markup)


def notebook(**fields: object) -> str:
    return json.dumps({"nbformat": 4, "metadata": {"language_info": {"name": "julia"}}, **fields})


def test_notebooks_become_markdown(cleaned: Cleaned) -> None:
    printed = {"output_type": "stream", "text": [f"line {n}\n" for n in range(50)]}
    shown = {"output_type": "execute_result", "data": {"text/plain": "42", "image/png": "AAAA"}}
    failed = {"output_type": "error", "ename": "KeyError", "evalue": "'x'", "traceback": ["..."]}
    cells = [
        {"cell_type": "markdown", "source": ["# Study\n", "\n", "Why.\ud800"]},
        {"cell_type": "code", "source": "f(1) # ```", "outputs": [printed]},
        {"cell_type": "code", "source": "f(2)", "outputs": [shown, failed]},
        {"cell_type": "code", "source": "", "outputs": []},
        "not a cell",
    ]
    document = cleaned(notebook(cells=cells), path="study.ipynb", source_type="code")
    assert document.title == "Study"
    assert document.text.startswith("# Study\n\nWhy.\ufffd\n\n````julia\nf(1) # ```\n````\n\n```text\nline 0\n")
    assert "line 19\n…\n```" in document.text
    assert document.text.endswith("```julia\nf(2)\n```\n\n```text\n42\nKeyError: 'x'\n```\n")
    assert "AAAA" not in document.text
    assert set(document.source_lines or ()) == {1}
    assert len(document.source_lines or ()) == document.text.count("\n") + 1


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"cells": 3}', "[" * 100_000])
def test_a_malformed_notebook_is_an_item_error(cleaned: Cleaned, text: str) -> None:
    with pytest.raises(ItemError, match=r"study\.ipynb is not a notebook: .*: repair the file"):
        cleaned(text, path="study.ipynb")


def test_cleaning_is_deterministic(make_item: MakeItem) -> None:
    item = make_item(HTML, path="a.html", observed_at=datetime(2024, 6, 1, tzinfo=UTC))
    assert clean(item) == clean(item)
