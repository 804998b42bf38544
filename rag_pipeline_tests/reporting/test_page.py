"""The page: whole, harmless whatever the data say, readable without colour, script or network."""

from __future__ import annotations

import re
import struct
import subprocess
import sys
import zlib
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_pipeline.reporting import Report, markdown, page, picture, write_report
from rag_pipeline.reporting.style import STYLE
from rag_pipeline_tests.reporting.reports import NOW, empty_report, full_report, quality, size

HOSTILE = "\"><script>alert(1)</script><img src=x onerror=alert(2)>`</style></title>&amp;$'--"
_VOID = {"meta", "img", "br", "hr", "link", "input"}


class Strict(HTMLParser):
    """Fails on tags that are not closed, or closed in another order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.seen.add(tag)
        if tag not in _VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def soup_of(report: Report) -> BeautifulSoup:
    return BeautifulSoup(page(report), "html.parser")


@pytest.mark.parametrize("report", [empty_report(), full_report()], ids=["empty", "full"])
def test_every_tag_is_closed_and_nothing_is_loaded(report):
    text = page(report)
    parser = Strict()
    parser.feed(text)
    parser.close()
    assert parser.open == []
    assert not parser.seen & {"script", "link", "img", "iframe", "object", "embed", "form"}
    assert not re.search(r"(?:src|href|action)=\"(?!#)", text), "only links inside the page"
    assert "url(" not in STYLE and "@import" not in STYLE
    assert "default-src 'none'" in text


@pytest.mark.parametrize("name", [HOSTILE, "<b>bold</b>", "a & b < c", "$x^2$ _hidden", "Zoë 日本 \u202e"])
def test_names_from_data_are_shown_and_never_run(name):
    text = page(full_report(name))
    soup = BeautifulSoup(text, "html.parser")
    assert not soup.find_all(["script", "img", "b", "style"])[1:], "the page's own style is the only one"
    assert name in [cell.get_text() for cell in soup.find_all("td")]
    Strict().feed(text)


@settings(max_examples=25, deadline=None)
@given(st.text(alphabet=st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=30))
def test_no_name_adds_an_element_or_an_attribute(name):
    def shape(report: Report) -> list[tuple[str, list[str]]]:
        found = BeautifulSoup(page(report), "html.parser").find_all(True)
        return [(tag.name, sorted(set(tag.attrs) - {"class"})) for tag in found if tag.name != "code"]

    assert shape(full_report(name)) == shape(full_report("x"))


def test_headings_tables_and_charts_can_be_heard():
    soup = soup_of(full_report())
    assert soup.html["lang"] == "en" and len(soup.find_all("h1")) == 1
    levels = [int(tag.name[1]) for tag in soup.find_all(re.compile("^h[1-6]$"))]
    assert levels[0] == 1 and all(after - before <= 1 for before, after in pairwise(levels))
    for table in soup.find_all("table"):
        assert table.caption.get_text() and {th["scope"] for th in table.find_all("th")} == {"col"}
        columns = len(table.find_all("th"))
        assert all(len(row.find_all("td")) == columns for row in table.tbody.find_all("tr"))
    charts = soup.find_all("svg", role="img")
    assert len(charts) == 4
    assert all(re.search(r"\d", chart["aria-label"]) for chart in charts), "its numbers are told in words, too"
    ids = {tag["id"] for tag in soup.find_all(id=True)}
    assert {link["href"].lstrip("#") for link in soup.find_all("a")} == ids
    assert {section["aria-labelledby"] for section in soup.find_all("section")} == ids


def test_both_colour_schemes_can_be_read():
    light, dark = STYLE.split("prefers-color-scheme: dark", 1)
    assert "@media print" in STYLE and "max-width: 40rem" in STYLE
    for scheme in (light, dark.split("* {", 1)[0]):
        colors = dict(re.findall(r"--(\w+): (#[0-9a-f]{3,6});", scheme))
        for name in ("ink", "soft", "accent", "alarm"):
            for ground in ("ground", "panel"):
                assert contrast(colors[name], colors[ground]) >= 4.5, (name, ground)
        assert all(contrast(colors[f"s{n}"], colors["ground"]) >= 3.0 for n in range(6)), "lines: WCAG 1.4.11"


def contrast(one: str, other: str) -> float:
    """Of WCAG 2, from 1 to 21."""

    def luminance(color: str) -> float:
        digits = color[1:] if len(color) == 7 else "".join(2 * digit for digit in color[1:])
        parts = [int(digits[n : n + 2], 16) / 255 for n in (0, 2, 4)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@given(st.one_of(st.just(HOSTILE), st.text(alphabet="ab |\\`*_[]()<>&!~#:/.\n", min_size=1, max_size=30)))
@settings(max_examples=60, deadline=None)
def test_no_name_is_a_mark_of_markdown(name):
    """Every line keeps its number of cells, and nothing that is not ours could be code, HTML, a picture or a link."""
    found, expected = (markdown(full_report(text)).splitlines() for text in (name, "x"))
    assert len(found) == len(expected)
    for line, like in zip(found, expected, strict=True):
        bare, ours = (re.sub(r"\\.", " ", text) for text in (line, like))
        assert bare.count("|") == ours.count("|")
        if line.startswith("|"):
            assert not set(bare) & set("`*_[]<>~#!&")
        assert "://" not in bare and "<" not in bare


def test_markdown_holds_tables_and_no_charts():
    text = markdown(full_report())
    assert "| tenant | repository | source type |" in text and "| --- | --- | --- | --: |" in text
    assert "svg" not in text and text.count("### ") == 7
    assert "Nothing is indexed yet" in markdown(empty_report())


def test_an_empty_index_says_what_to_do():
    text = soup_of(empty_report()).get_text(" ")
    assert "Nothing is indexed yet" in text and "No evaluation is on record" in text
    assert "No source was measured yet" in text and "Nothing waits in quarantine" in text
    assert not soup_of(empty_report()).find_all("svg", role="img")


def test_figures_of_other_labels_are_not_compared():
    report = full_report()
    moved = replace(report, facts=replace(report.facts, quality=[quality(9, 0.9), quality(1, 0.5)]))
    assert "1 of 1 label sets are answered worse" in soup_of(moved).get_text()
    other = replace(report, facts=replace(report.facts, quality=[quality(9, 0.9), quality(1, 0.5, labels="v2")]))
    assert "No label set is answered worse" in soup_of(other).get_text()


def test_long_tables_are_cut_and_say_so():
    many = [size(NOW.date(), 10 + n, repository=f"acme/{n}") for n in range(60)]
    report = replace(full_report(), facts=replace(full_report().facts, sizes=many))
    soup = soup_of(report)
    assert len(soup.find("section", attrs={"aria-labelledby": "corpus"}).tbody.find_all("tr")) == 40
    assert "20 more are not shown" in soup.get_text()


@pytest.mark.parametrize("report", [empty_report(), full_report(HOSTILE)], ids=["empty", "hostile"])
def test_the_picture_is_a_picture(report):
    drawn = picture(report)
    assert drawn.startswith(b"\x89PNG\r\n\x1a\n") and len(drawn) < 250_000
    width, height = struct.unpack(">II", drawn[16:24])
    assert (width, height) == (1300, 780)
    pixels = zlib.decompress(b"".join(chunks(drawn, b"IDAT")))
    assert len(set(pixels)) > 10, "something is drawn"


def chunks(png: bytes, kind: bytes) -> list[bytes]:
    """The contents of a PNG's chunks of a kind, their checksums checked."""
    found, at = [], 8
    while at < len(png):
        (length,) = struct.unpack(">I", png[at : at + 4])
        name, content = png[at + 4 : at + 8], png[at + 8 : at + 8 + length]
        assert zlib.crc32(name + content) == struct.unpack(">I", png[at + 8 + length : at + 12 + length])[0]
        found += [content] if name == kind else []
        at += 12 + length
    return found


def test_importing_the_report_loads_no_plotting_library():
    code = "import sys, rag_pipeline.reporting; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_writing_replaces_both_files_whole(tmp_path: Path):
    folder = tmp_path / "new" / "reports"
    write_report(folder, page="old", picture=b"old")
    written = write_report(folder, page="new \udcff", picture=b"new")
    assert (written.page.read_text(), written.picture.read_bytes()) == ("new ?", b"new")
    assert sorted(path.name for path in folder.iterdir()) == ["pipeline_report.html", "pipeline_report.png"]
