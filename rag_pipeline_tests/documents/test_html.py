"""HTML: the main content of a page, line by line, and nothing of what surrounds it."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import pytest

from rag_pipeline.documents.html_main import main_lines
from rag_pipeline.documents.html_text import extract_html
from rag_pipeline_tests.documents.extracts import assert_quick, assert_sound, extract_lines

PARAGRAPHS = "\n".join(
    f"<p>Paragraph {number} explains how the widget is configured, and why the default of {number} seconds was chosen"
    " for most of the installations that people run.</p>"
    for number in range(12)
)
MENU = "\n".join(f"<li><a href='/p{number}'>Menu entry {number}</a></li>" for number in range(30))


def page(body: str) -> str:
    return f"<!doctype html>\n<html><head><title>Widgets</title></head>\n<body>\n{body}\n</body></html>\n"


def test_what_the_author_marks_as_main_is_the_content() -> None:
    text = page(
        f"<div class='menu'><ul>{MENU}</ul></div>\n"
        f"<main>\n<h1>Widgets<a href='#w'>¶</a></h1>\n{PARAGRAPHS}\n</main>\n<p>© Acme</p>"
    )
    extract = extract_html(text)
    assert_sound(text, extract)
    assert extract.title == "Widgets"
    assert extract.text.startswith("# Widgets\n\nParagraph 0 explains")
    assert "Menu entry" not in extract.text
    assert "Acme" not in extract.text
    assert extract_lines(extract)[0] == text[: text.index("<h1>")].count("\n") + 1


def test_an_articles_own_header_holds_its_title() -> None:
    text = page(f"<header>Site</header><article><header><h1>The title</h1></header>{PARAGRAPHS}</article>")
    assert extract_html(text).text.startswith("# The title\n\nParagraph 0")


def test_the_extractor_finds_the_content_of_a_page_that_marks_nothing() -> None:
    sidebar = f"<div class='sidebar' id='sidebar'><ul>{MENU}</ul></div>"
    text = page(
        f"{sidebar}\n<div id='content'>"
        f"\n<h1>Widgets</h1>\n{PARAGRAPHS}\n<pre>x = 1\ny = 2</pre>\n<p>Last words.</p>\n</div>"
    )
    extract = extract_html(text)
    assert_sound(text, extract)
    assert "# Widgets" in extract.text
    assert extract.text.count("Paragraph") == 12
    assert "```\nx = 1\ny = 2\n```" in extract.text
    assert "Menu entry" not in extract.text


def test_a_short_page_is_its_content() -> None:
    assert extract_html("<p>Hello <a href='/'>there</a>").text == "Hello there"


def test_a_page_of_links_keeps_what_is_seen() -> None:
    extract = extract_html(page(f"<ul>{MENU}</ul>"))
    assert extract.text.count("Menu entry") == 30


def test_nested_or_huge_pages_are_not_given_to_the_extractor() -> None:
    lines = ["words " * 200]
    assert main_lines("x", lines, depth=5000) is None
    assert main_lines("x" * 5_000_001, lines, depth=1) is None


def test_too_little_is_not_believed() -> None:
    lines = [f"line {number} with words of its own that nobody extracted" for number in range(50)]
    assert main_lines("<p>other words", lines, depth=1) is None


def test_nothing_is_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a page was fetched")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    body = f"<img src='https://example.org/a.png'><link href='https://example.org/a.css'>{PARAGRAPHS}"
    assert "Paragraph 3" in extract_html(page(body)).text


def test_the_extractor_is_loaded_when_it_is_needed() -> None:
    source = Path(sys.modules["rag_pipeline.documents.html_main"].__file__ or "").read_text("utf-8")
    assert "\nfrom resiliparse" not in source


@pytest.mark.parametrize(
    "piece", ["<div>", "<p>a</p>", "<a href='", "<b>x", "<table><tr><td>", "<main>", "</p>", "<li>a", "&amp;"]
)
def test_hostile_pages_take_linear_time(piece: str) -> None:
    assert_quick(extract_html, piece * (100_000 // len(piece)) + "text")


@pytest.mark.parametrize(
    "page",
    [
        "<p>Seen</p><another>if (a < b) { show('<p>no</p>') }</script><p>too</p>",
        "<p>Seen</p><scirpt type=module>\nrun('</p>')\n</script>\n<p>too</p>",
        "<style>p {}</style><p>Seen</p><stile>p { color: red }</style><script>1</script><p>too</p>",
    ],
)
def test_code_whose_opening_tag_is_broken_is_not_shown(page: str) -> None:
    assert extract_html(page).text.split() == ["Seen", "too"]


@pytest.mark.parametrize(
    "page",
    [
        "<mine>Seen</mine> too</script>",
        "<p>Seen</p></script><p>too</p>",
        "<script>'<another>'</script><p>Seen</p><p>too</p></style>",
        "<another>Seen <p>too",
    ],
)
def test_only_what_such_a_tag_would_hide_is_hidden(page: str) -> None:
    assert extract_html(page).text.split() == ["Seen", "too"]


def test_many_broken_scripts_take_linear_time() -> None:
    assert "Seen" in extract_html("<another>x</script>" * 20_000 + "<p>Seen").text
