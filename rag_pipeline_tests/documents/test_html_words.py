"""HTML: tables, numbers of lists, and words that attributes hold."""

from __future__ import annotations

import pytest

from rag_pipeline.documents.html_text import extract_html
from rag_pipeline.documents.numerals import Style, numeral
from rag_pipeline_tests.documents.extracts import assert_quick, extract_lines


def table(*rows: str, before: str = "") -> str:
    return f"<table>{before}{''.join(f'<tr>{row}</tr>' for row in rows)}</table>"


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        (
            table("<th>A<th>B", "<td>1<td>2|3", before="<caption>The <b>title</b></caption>"),
            "The title\n| A | B |\n| --- | --- |\n| 1 | 2\\|3 |",
        ),
        (
            f"<table><thead>{'<tr><td>A<td>B</tr>'}</thead><tbody><tr><td>1<td>2</tr></tbody></table>",
            "| A | B |\n| --- | --- |\n| 1 | 2 |",
        ),
        (table("<th>a<td>1", "<th>b<td>2"), "| a | 1 |\n| b | 2 |"),
        (
            table("<th rowspan=2>K<th colspan=2>S", "<th>W<th>H", "<td rowspan=2>x<td>1<td>2", "<td>3<td>4"),
            "| K | S |  |\n| K | W | H |\n| --- | --- | --- |\n| x | 1 | 2 |\n| x | 3 | 4 |",
        ),
        (
            table("<th>A<th>B", "<td>a<br>b<ul><li>c</li><li>d</li></ul><td><pre>e</pre><p>f</p>"),
            "| A | B |\n| --- | --- |\n| a b c d | e f |",
        ),
        (table("<th>A<th>B", "<td><td>", "<td>1<td>"), "| A | B |\n| --- | --- |\n| 1 |  |"),
        (table("<td>a<td>b"), "a | b"),
        (table("<th>A", "<td>" + table("<td>in<td>side") + "words"), "A\n\nin | side\n\nwords"),
        (table("<td><h2>Title</h2><p>One</p><p>Two</p>", "<td>x"), "## Title\n\nOne\n\nTwo\n\nx"),
        (table("<td><pre>1\n2</pre><td><pre>x\ny</pre>", "<td>z"), "```\n1\n2\n```\n\n```\nx\ny\n```\n\nz"),
    ],
)
def test_tables_of_data_become_rows_and_those_of_layout_do_not(page: str, expected: str) -> None:
    assert extract_html(page).text == expected


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("<ol><li>a<li>b</ol>", "1. a\n2. b"),
        ("<ol start=4 type=a><li>a</li><li value=9>b</li><li>c</li></ol>", "d. a\ni. b\nj. c"),
        ("<ol reversed type=I><li>a</li><li>b</li></ol>", "II. a\nI. b"),
        ("<ol reversed><li>a<li>b<li>c</ol>", "3. a\n2. b\n1. c"),
        ("<ol><li>a<ul><li>x</li></ul></li><li>b<ol><li>y</li></ol></li></ol>", "1. a\n\n- x\n\n2. b\n\n1. y"),
        ("<ul><li>a</ul><ol start=x><li>b</ol>", "- a\n\n1. b"),
    ],
)
def test_items_have_their_numbers(page: str, expected: str) -> None:
    assert extract_html(page).text == expected


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("x<sup>2</sup> 2<sup>31</sup> word<sup><a href=#f>1</a></sup> 1<sup>st</sup>", "x^2 2^31 word^1 1st"),
        ("H<sub>2</sub>O a<sub>ij</sub>", "H2O a_ij"),
        ('<img src=a.png alt="The flow"> <img src=b.png alt=image> <img src=c.png>.', "The flow ."),
        ('<abbr title="Hypertext">HT</abbr> <dfn title=x>x</dfn>', "HT (Hypertext) x"),
        ("<details><summary>More</summary>inside</details>", "More\n\ninside"),
        ("<dl><dt>Term<dd>Meaning</dl>", "Term\nMeaning"),
        ("<figure><img src=a alt=Chart1><figcaption>Caption</figcaption></figure>", "Chart1\n\nCaption"),
        ("<kbd>Ctrl</kbd>+<kbd>C</kbd> &amp;lt; &nbsp;&copy;", "Ctrl+C &lt; ©"),
    ],
)
def test_words_of_attributes_and_raised_parts_stay(page: str, expected: str) -> None:
    assert extract_html(page).text == expected


def test_what_follows_a_table_has_its_own_line() -> None:
    extract = extract_html("<table>\n<tr><th>A</th></tr>\n<tr><td>1</td></tr>\n</table>\nafter\n")
    assert list(zip(extract_lines(extract), extract.text.split("\n"), strict=True)) == [
        (2, "| A |"),
        (2, "| --- |"),
        (3, "| 1 |"),
        (5, ""),
        (5, "after"),
    ]


@pytest.mark.parametrize(
    "piece",
    ["<sup>", "<abbr title=x>a", "<ol reversed>", "<ol><li>", "<td>a", "<tr>", "<td rowspan=99>x<tr>", "<img alt=a>"],
)
def test_hostile_pages_take_linear_time(piece: str) -> None:
    assert_quick(extract_html, "<table>" + piece * (60_000 // len(piece)))
    assert_quick(extract_html, piece * (60_000 // len(piece)))


@pytest.mark.parametrize(
    ("number", "style", "shown"),
    [
        (3, "arabic", "3"),
        (-1, "loweralpha", "-1"),
        (27, "loweralpha", "aa"),
        (26, "upperalpha", "Z"),
        (1994, "lowerroman", "mcmxciv"),
        (4000, "upperroman", "4000"),
    ],
)
def test_numerals(number: int, style: Style, shown: str) -> None:
    assert numeral(number, style) == shown
