"""AsciiDoc: attributes, numbers of lists and tables reach the text."""

from __future__ import annotations

import pytest

from rag_pipeline.documents.asciidoc import extract_asciidoc
from rag_pipeline_tests.documents.extracts import assert_quick, extract_lines


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (":version: 5.1\n\nUse {version}, {Version}.", "Use 5.1, 5.1."),
        (":v: 1\n\n{v}\n\n:v: 2\n\n{v}\n\n:v!:\n\n{v}", "1\n\n2\n\n{v}"),
        (":!v:\n\n{v} {unknown} {a b}", "{v} {unknown} {a b}"),
        (":v: one \\\n  two \\\n  three\n\n{v}.", "one two three."),
        (":a: 1\n:b: {a}.2\n:a: 9\n\n{b}", "1.2"),
        (":v: 1\n\n\\{v} `{v}` `+{v}+` +++{v}+++ pass:[{v}]", "{v} `1` `+{v}+` +++{v}+++ pass:[{v}]"),
        ("a{nbsp}b{plus}c{empty}{blank}d {lt}{cpp}{two-colons}", "a b+cd <C++::"),
        ("{counter:x} {counter:x}{counter2:x} {x} {counter:y:B} {counter:y}", "1 2 3 B C"),
        ("{set:a:1}{a} {set:a!}{a}", "1 {a}"),
        (":v: 1\n\n----\n{v}\n----", "----\n{v}\n----"),
        (':v: 1\n\n[source,subs="attributes"]\n----\n{v}\n----', "----\n1\n----"),
        (":v: 1\n\n[subs=+attributes]\n....\n{v}\n....\n\n  lit {v}", "....\n1\n....\n\n  lit {v}"),
        (":url: https://x.org\n\n{url}[Docs] link:{url}[more]", "Docs more"),
        (":p: Foo\n\n== The {p}\n\n|===\n|{p}\n|b\n|===", "== The Foo\n\n| Foo |\n| b |"),
        ("= T\nJane Doe <j@x.org>\nv1.2, 2024-01-01\n\n{doctitle} {author} {revnumber} {revdate}",
         "= T\nJane Doe <j@x.org>\nv1.2, 2024-01-01\n\nT Jane Doe 1.2 2024-01-01"),
        (":a:\n\nifdef::a[yes]\nifndef::a[no]\nifdef::b[perhaps]", "yes\nperhaps"),
        (":a:\n\nifndef::a[]\nifdef::b[]\nno\nendif::[]\nno\nendif::[]\nyes", "yes"),
        (":!a:\n\nifdef::a[]\nno\nendif::a[]\nifeval::[1 > 2]\nkept\nendif::[]", "kept"),
        ("ifndef::v[:v: 7]\n\n{v}", "7"),
    ],
)  # fmt: skip
def test_attributes_are_put_in_as_far_as_the_file_defines_them(text: str, expected: str) -> None:
    assert extract_asciidoc(text).text.strip("\n") == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (". a\n. b\n\n. c", "1. a\n2. b\n\n3. c"),
        (". a\n.. x\n.. y\n... deep\n. b\n.. z", "1. a\n   a. x\n   b. y\n      i. deep\n2. b\n   a. z"),
        ("[start=4]\n. a\n. b", "4. a\n5. b"),
        ("[upperroman,start=4]\n. a\n. b", "IV. a\nV. b"),
        ("[%reversed,start=2]\n. a\n. b", "2. a\n1. b"),
        (". a\n+\nmore\n. b\n+\n----\n. code\n----\n. c", "1. a\nmore\n2. b\n----\n. code\n----\n3. c"),
        (". a\n\nwords\n\n. b", "1. a\n\nwords\n\n1. b"),
        (". a\n\n== T\n\n. b", "1. a\n\n== T\n\n1. b"),
        ("* u\n. a\n. b\n* v\n. c", "* u\n   1. a\n   2. b\n* v\n   1. c"),
        ("3. three\n4. four", "3. three\n4. four"),
        (". a {x}\n. link:https://x.org[b]", "1. a {x}\n2. b"),
        (".Title\n. a", ".Title\n1. a"),
    ],
)
def test_items_of_ordered_lists_have_their_numbers(text: str, expected: str) -> None:
    assert extract_asciidoc(text).text.strip("\n") == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("|===\n|A |B\n\n|1 |2\n|3 |4\n|===", "| A | B |\n| --- | --- |\n| 1 | 2 |\n| 3 | 4 |"),
        ("[%header,cols=2*]\n|===\n|A\n|B\n|1\n|2\n|===", "| A | B |\n| --- | --- |\n| 1 | 2 |"),
        ('[cols="1,a",options="header,footer"]\n|===\n|A |B\n|1\na|* x\n* y\n|===',
         "| A | B |\n| --- | --- |\n| 1 | * x * y |"),
        ("[%noheader]\n|===\n|A |B\n\n|1 |2\n|===", "| A | B |\n| 1 | 2 |"),
        ("[cols=3*]\n|===\n2+|wide |c\n.2+|tall |1 |2\n|3 |4\n2*|x |y\n|===",
         "| wide |  | c |\n| tall | 1 | 2 |\n| tall | 3 | 4 |\n| x | x | y |"),
        ("|===\n|a \\| b |<<id,c>>\n|d |`e`\n|===", "| a \\| b | c |\n| d | `e` |"),
        ('[%header,format=csv]\n|===\nA,"B, C"\n1,"x\ny"\n|===', "| A | B, C |\n| --- | --- |\n| 1 | x y |"),
        (",===\na,b\nc,d\n,===", "| a | b |\n| c | d |"),
        (":===\na:b\nc:d\n:===", "| a | b |\n| c | d |"),
        ('[separator=¦]\n|===\n¦a|b ¦c\n¦d ¦e\n|===', "| a\\|b | c |\n| d | e |"),
    ],
)  # fmt: skip
def test_tables_become_rows(text: str, expected: str) -> None:
    assert extract_asciidoc(text).text.strip("\n") == expected


def test_rows_know_the_lines_that_they_begin_on() -> None:
    extract = extract_asciidoc("Words.\n\n[%header,cols=2*]\n|===\n|A\n|B\n\n|1\n|2\n|===\n\nEnd.\n")
    assert list(zip(extract_lines(extract), extract.text.split("\n"), strict=True)) == [
        (1, "Words."),
        (2, ""),
        (5, "| A | B |"),
        (5, "| --- | --- |"),
        (8, "| 1 | 2 |"),
        (11, ""),
        (12, "End."),
        (13, ""),
    ]


def test_attributes_that_grow_by_each_other_stay_small() -> None:
    entries = [":a0: " + "x" * 900, *(f":a{n}: {f'{{a{n - 1}}}' * 9}" for n in range(1, 30))]
    text = "\n".join([*entries, "", *["{a29}" for _ in range(50_000)]])
    assert len(assert_quick(extract_asciidoc, text).text) < 4 * len(text) + 200_000


@pytest.mark.parametrize(
    "piece",
    [
        "{a",
        "{counter:a}\n",
        ". a\n",
        ".. a\n. b\n",
        "|===\n",
        "|a ",
        "99.99+|a\n",
        "200*|\n",
        "ifdef::a[]\n",
        ":a: b \\\n",
    ],
)
def test_hostile_definitions_take_linear_time(piece: str) -> None:
    assert_quick(extract_asciidoc, "|===\n" + piece * (100_000 // len(piece)) + "\n|===\n")
    assert_quick(extract_asciidoc, piece * (100_000 // len(piece)))
