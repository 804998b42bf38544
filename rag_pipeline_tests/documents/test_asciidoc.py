"""AsciiDoc: attributes, comments and the names of blocks go; words, listings and tables stay."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_pipeline.documents.asciidoc import extract_asciidoc
from rag_pipeline_tests.documents.extracts import assert_sound, extract_lines

MANUAL = """\
= The Manual
Jane Doe <jane@example.org>
:toc: left
:long: a \\
  value
// a comment

[[intro]]
== Introduction

See <<intro,the introduction>>, https://example.org[Example] and link:docs/secret.adoc[this].

////
a block
////

[NOTE]
====
Read xref:intro[this].
====

[source,python]
----
x = "link:a[b]" // kept
[[kept]]
----

include::other.adoc[]
image::flow.png[The flow,100]
"""


def test_a_manual_keeps_its_words_and_their_lines() -> None:
    extract = extract_asciidoc(MANUAL)
    assert_sound(MANUAL, extract)
    assert extract.title == "The Manual"
    assert list(zip(extract_lines(extract), extract.text.split("\n"), strict=True)) == [
        (1, "= The Manual"),
        (2, "Jane Doe <jane@example.org>"),
        (7, ""),
        (9, "== Introduction"),
        (10, ""),
        (11, "See the introduction, Example and link:docs/secret.adoc[this]."),
        (12, ""),
        (17, "NOTE:"),
        (18, "===="),
        (19, "Read this."),
        (20, "===="),
        (21, ""),
        (23, "----"),
        (24, 'x = "link:a[b]" // kept'),
        (25, "[[kept]]"),
        (26, "----"),
        (27, ""),
        (29, "The flow"),
        (30, ""),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "|===\n|a |link:b[c]\n|===",
        "....\n:a: b\n....",
        "```ruby\n[source]\n```",
        "* [x] done\n* [ ] open",
        "Use kbd:[Ctrl+C] and `link:a[b]`.",
        "https://example.org is an address",
        "term:: what it means",
        "--\nopen block\n--",
        "a [remark] in brackets",
        "'''",
    ],
)
def test_what_is_left_alone(text: str) -> None:
    assert extract_asciidoc(text).text == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[TIP]\nDo it.", "TIP:\nDo it."),
        ("[quote, A. Lincoln, Address]\n____\nFour score\n____", "A. Lincoln, Address\n____\nFour score\n____"),
        ("ifdef::env-github[Shown.]\nifdef::x[]\ny\nendif::[]", "Shown.\ny\n"),
        ("toc::[]\n\n[#id.role%header,cols=2]\nx", "x"),
        ("<<id>> and <<id,the\nwords>>", "id and <<id,the\nwords>>"),
        ("x image:https://img.shields.io/a.svg[build] icon:fire[] y", "x y"),
        ("image::a.png[alt=\"A chart\", width=3]", "A chart"),
        ("https://x.org[X^] https://x.org[X,window=_blank] mailto:a@x.org[A]", "X X A"),
        ("link:https://x.org[]", "https://x.org"),
        ("== T [[anchor]]\n[.lead]#words#", "== T\n#words#"),
    ],
)  # fmt: skip
def test_what_goes(text: str, expected: str) -> None:
    assert extract_asciidoc(text).text == expected


WORDS = st.lists(st.sampled_from(["alpha", "beta", "gamma", "delta", "x.y_z", "naïve"]), min_size=1, max_size=6).map(
    " ".join
)
BLOCKS = st.one_of(
    WORDS,
    WORDS.map(lambda words: f"== {words}"),
    WORDS.map(lambda words: f"[NOTE]\n====\n{words} link:https://x.org[{words}]\n===="),
    WORDS.map(lambda words: f"[source,sh]\n----\n{words} [[a]]\n----"),
    WORDS.map(lambda words: f"|===\n|{words} |xref:a[b]\n|==="),
    st.sampled_from(["// zeta", ":zeta: eta", "[[zeta]]", "////\nzeta\n////", "include::zeta[]"]),
)
DOCUMENTS = st.lists(BLOCKS, max_size=7).map("\n\n".join)


@given(DOCUMENTS)
def test_lines_are_sound_words_survive_and_twice_changes_nothing(text: str) -> None:
    extract = extract_asciidoc(text)
    assert_sound(text, extract)
    wanted = re.findall(r"alpha|beta|gamma|delta|x\.y_z|naïve", text)
    assert re.findall(r"alpha|beta|gamma|delta|x\.y_z|naïve", extract.text) == wanted
    assert extract_asciidoc(extract.text).text == extract.text


@given(DOCUMENTS, WORDS, DOCUMENTS)
def test_an_inserted_paragraph_changes_nothing_around_it(before: str, words: str, after: str) -> None:
    head, tail = f"{before}\n\nanchor one\n\n", f"anchor two\n\n{after}\n"
    old, new = extract_asciidoc(head + tail).text, extract_asciidoc(f"{head}{words}\n\n{tail}").text
    start = new.index("anchor one\n\n") + len("anchor one\n\n")
    assert new[:start] + new[new.index("anchor two") :] == old


@given(st.text(alphabet="ab `_:.<>|\\\n\t-+=*[]/,#x", max_size=200))
def test_any_marks_in_any_order(text: str) -> None:
    extract = extract_asciidoc(text)
    lines = extract_lines(extract)
    assert len(lines) == extract.text.count("\n") + 1
    assert lines == sorted(lines)
