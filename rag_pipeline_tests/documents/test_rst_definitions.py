"""reStructuredText: what a file defines reaches its text, and tables become rows."""

from __future__ import annotations

import pytest

from rag_pipeline.documents.rst import extract_rst
from rag_pipeline_tests.documents.extracts import assert_quick, extract_lines


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Use |release|.\n\n.. |release| replace:: 5.1", "Use 5.1."),
        (".. |a| replace:: one\n   two\n\nx |a| y", "x one two y"),
        (".. |a| replace:: the :class:`~b.C` of |d|\n.. |d| replace:: ``z``\n\n|a|", "the b.C of ``z``"),
        (".. |Name| replace:: N\n\n|name| |NAME|_ |Name|__", "N N N"),
        (".. |two words| replace:: N\n\na |two\nwords| b", "a N\nb"),
        (".. |c| unicode:: 0xA9 .. sign\n.. |m| unicode:: U+2014\n   :trim:\n\n|c| a |m| b", "© a—b"),
        (".. |l| image:: l.png\n   :alt: The flow\n.. |n| image:: n.png\n\n|l| |n|", "The flow n"),
        (".. |b| image:: https://img.shields.io/x.svg\n\nx |b| y", "x y"),
        (".. |d| date:: %Y\n\n|d| |version| |release|", "|d| |version| |release|"),
        (".. |a| replace:: x\n\n``|a|`` `q |a| <y.html>`_ ::\n\n   |a|", "``|a|`` q |a| ::\n\n   |a|"),
        (".. |a| replace:: x\n\n.. parsed-literal::\n\n   f==|a|", ".. parsed-literal::\n\n   f==x"),
        (".. |a| replace:: |b|\n.. |b| replace:: |a|\n\n|a|", "|a|"),
        (".. |v| replace:: a much longer one\n\nThe |v|\n=======\n", "The a much longer one\n" + 21 * "="),
        (".. |a| replace:: x\n\n| |a| line\n| b", "| x line\n| b"),
        ("a | b and |c| or |d e|", "a | b and |c| or |d e|"),
    ],
)
def test_substitutions_are_put_in_where_the_file_defines_them(text: str, expected: str) -> None:
    assert extract_rst(text).text.strip("\n") == expected


def test_substitutions_that_grow_by_each_other_stay_small() -> None:
    names = [f".. |a{n}| replace:: {f'|a{n + 1}| ' * 20}" for n in range(12)]
    text = "\n".join([*names, "", *["|a0|" for _ in range(50_000)]])
    assert len(assert_quick(extract_rst, text).text) < 4 * len(text) + 200_000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            '.. csv-table:: T\n   :header: "A", B\n   :widths: 1, 2\n\n   1, "x, y"\n   2, z',
            "T\n\n| A | B |\n| --- | --- |\n| 1 | x, y |\n| 2 | z |",
        ),
        (
            ".. csv-table::\n   :header-rows: 1\n   :delim: ;\n\n   A;B\n   1;|\n",
            "| A | B |\n| --- | --- |\n| 1 | \\| |",
        ),
        (".. csv-table::\n   :delim: tab\n\n   a\tb\n   c\td", "| a | b |\n| c | d |"),
        ('.. csv-table::\n\n   a,"b\n\n   c"\n   d,e', "| a | b c |\n| d | e |"),
        (".. csv-table:: T\n   :file: d/x.csv\n   :header: A, B", "T (rows in d/x.csv)\n\n| A | B |\n| --- | --- |"),
        (
            ".. list-table:: T\n   :header-rows: 1\n\n   * - A\n     - B\n   * - `a`\n     -\n"
            "   * - x\n\n       y\n     - :ref:`z <q>`",
            "T\n\n| A | B |\n| --- | --- |\n| `a` |  |\n| x y | z |",
        ),
        (
            ".. flat-table::\n   :header-rows: 2\n\n   * - A\n   * - B\n   * - c",
            "| A |\n| B |\n| --- |\n| c |",
        ),
        (
            ".. table:: T\n   :widths: auto\n\n   == ==\n   A  B\n   == ==\n   1  2\n   \\  x\n   3  4\n   == ==",
            "T\n\n   | A | B |\n   | --- | --- |\n   | 1 | 2 |\n   | \\ | x |\n   | 3 | 4 |",
        ),
        (
            "+---+---+\n| A | B |\n+===+===+\n| 1 | 2 |\n|   | 3 |\n+---+---+\n| both  |\n+---+---+",
            "| A | B |\n| --- | --- |\n| 1 | 2 3 |\n| both |  |",
        ),
        (
            "=== === ===\n A    B\n--- -------\nx   y   z\n=== === ===\n1   2   3\n\n4   5   6\n=== === ===",
            "| A x | B y | z |\n| --- | --- | --- |\n| 1 | 2 | 3 |\n| 4 | 5 | 6 |",
        ),
        (".. list-table::\n\n   No list\n   at all", ".. list-table::\n\n   No list\n   at all"),
    ],
)
def test_tables_become_rows_below_the_names_of_their_columns(text: str, expected: str) -> None:
    assert extract_rst(text).text.strip("\n") == expected


def test_rows_know_the_lines_that_they_begin_on() -> None:
    rows = "   * - A\n     - B\n   * - a\n     - b\n\n   * - c\n     - d\n"
    text = f".. list-table:: T\n   :header-rows: 1\n\n{rows}\nEnd.\n"
    extract = extract_rst(text)
    assert list(zip(extract_lines(extract), extract.text.split("\n"), strict=True)) == [
        (1, "T"),
        (3, ""),
        (4, "| A | B |"),
        (4, "| --- | --- |"),
        (6, "| a | b |"),
        (9, "| c | d |"),
        (11, ""),
        (12, "End."),
        (13, ""),
    ]


@pytest.mark.parametrize(
    ("directive", "shown"),
    [
        (
            ".. confval:: numfig\n   :type: :py:`bool`\n   :default: ``False``\n",
            "numfig\n   Type: bool\n   Default: ``False``\n",
        ),
        (".. py:data:: PI\n   :value: 3.14\n   :no-index:\n", "data PI\n   Value: 3.14\n"),
        (".. module:: sound\n   :synopsis: Plays *tones*.\n", "module sound\n   Plays *tones*.\n"),
        (".. option:: --x\n   :type:\n", "--x\n"),
    ],
)
def test_options_that_define_an_object_are_shown(directive: str, shown: str) -> None:
    assert extract_rst(f"{directive}\n   Words.\n").text == f"{shown}\n   Words.\n"


@pytest.mark.parametrize(
    "piece",
    [
        ".. |a| replace:: |a|\n",
        "|a ",
        "+-+\n",
        "= =\n",
        "   * - a\n",
        '.. csv-table::\n\n   "a\n',
        ".. |a|",
        "| |",
        "== ==\n\n",
    ],
)
def test_hostile_definitions_take_linear_time(piece: str) -> None:
    assert_quick(extract_rst, ".. |x| replace:: y\n\n.. list-table::\n\n" + piece * (100_000 // len(piece)))
