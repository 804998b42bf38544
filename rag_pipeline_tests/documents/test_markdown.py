"""Markdown: what stays of a document, and that a change in one place changes the cleaned text only there."""

from __future__ import annotations

import re
from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_pipeline.documents.decoding import plain_text
from rag_pipeline.documents.link_words import carries_words, image_words, is_badge
from rag_pipeline.documents.markdown import extract_markdown
from rag_pipeline_tests.documents.extracts import assert_sound, extract_lines


def cleaned(text: str) -> str:
    extract = extract_markdown(text)
    assert_sound(text, extract)
    return extract.text


README = """\
---
title: Widgets
---
<h1 align="center">
  <img src="logo.png" alt="logo">
  Acme <em>Widgets</em>
</h1>

[![Build](https://travis-ci.org/acme/widgets.svg)](https://travis-ci.org/acme/widgets) |
[![npm](https://img.shields.io/npm/v/widgets)][npm]

<!-- a note
to editors -->
## Table of Contents

- [Install](#install)
  - [From source](#source)

## Install {#install}

See [the guide](docs/configuration.md), [PyPI](https://packages.corp.io/project/acme) or [Install](#install).<br>
Press <kbd>Ctrl</kbd>+<kbd>C</kbd>.

<details>
<summary>More</summary>

![The data flow](flow.png)

</details>

[npm]: https://www.npmjs.com/
"""


def test_a_readme_keeps_its_words_and_their_lines() -> None:
    extract = extract_markdown(README)
    assert extract.title == "Widgets"
    kept = list(zip(extract_lines(extract), extract.text.split("\n"), strict=True))
    assert kept == [
        (6, "# Acme Widgets"),
        (8, ""),
        (19, "## Install"),
        (20, ""),
        (21, "See [the guide](docs/configuration.md), [PyPI](https://packages.corp.io/project/acme) or Install."),
        (22, "Press Ctrl+C."),
        (23, ""),
        (25, "More"),
        (26, ""),
        (27, "The data flow"),
        (32, ""),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "```html\n<!-- a -->\n<b>[x](#y)</b>\n```",
        "~~~\n<b>\n```\n~~~",
        "````\n```\n<b>\n```\n````",
        "> ```\n> <b>x</b>\n> ```",
        "- ```sh\n  <b>\n  ```",
        "para\n\n    <b>[x](#y)</b>\n\n    <i>",
        "- item\n\n      <b>code of the item</b>",
        "| [a](#a) | <br> |\n|---|---|\n| <!-- c --> | ![x](y) |",
        "a | b\n- | -\n[x](#y) | <br>",
        "Use `<b>` and ``[x](#y) ` `` and `<!-- c -->`.",
        "`spans\nlines <b>`",
        "List<String> and Option<A>, <your-token> and <source> <output>",
        "a < b and c > d, <https://example.org/a>, <me@example.org>",
        r"\<b\> \[x](#y)",
        "- [ ] todo\n- [x] done",
        "> [!NOTE]\n> words",
        "[^1]\n\n[^1]: A foot note.",
        "<!-- never closed",
        "![unfinished](",
        "<pre>\n<b>kept</b>\n</pre>",
        "```{note}\nWords.\n```",
        "{% include a.html %} {{ page.title }} {not} an attribute",
        "## Contents\n\n- Install\n- words of their own",
    ],
)
def test_what_is_left_alone(text: str) -> None:
    assert extract_markdown(text).text == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a <!-- b --> c", "a c"),
        ("a\n<!-- b -->\nc", "a\nc"),
        ("a\n\n<!-- b -->\n\n<!-- c -->\n\nd", "a\n\nd"),
        ("a\n\n<!-- b -->\n", "a\n"),
        ('<a name="x"></a>\n\n# T', "# T"),
        ("<p align='center'>\n  words\n</p>", "  words\n"),
        ("<table><tr><td>a</td><td>b</td></tr></table>", "a b"),
        ("one<br/>two", "one two"),
        ("<abbr title='JSON Web Token'>JWT</abbr>s", "JWT (JSON Web Token)s"),
        ("<style>\np {}\n</style>\nx", "x"),
        ("- ![](a.png)\n- b", "- b"),
        ("![Screenshot 2](a.png)\n\nx", "x"),
        ("x <img src=a.png alt='The flow'> y", "x The flow y"),
        (f"![](data:image/png;base64,{'A' * 9000})\n![A chart](data:image/png;base64,{'A' * 9000})", "A chart"),
        ("[`code`](https://x.org/code)", "`code`"),
        ("[![logo](a.png)](https://x.org/secret-page) x", "x"),
        ("[![Guide](a.png)](https://x.org) x", "Guide x"),
        ("[a\nb](#c)", "a\nb"),
        ("[text][1]\n\n[1]: https://x.org", "text\n"),
        ("[text][1]\n\n[1]: https://x.org/hidden/words", "[text][1]\n\n[1]: https://x.org/hidden/words"),
        ("[//]: # (a comment)\nx", "x"),
        ("[TOC]\n\nx", "x"),
        ("[[_TOC_]]\n\nx", "x"),
        ("<!-- toc -->\n\n- [A](#a)\n  * [B](#b)\n\n<!-- tocstop -->\n\nx", "x"),
        ("**Contents**\n1. [A](#a)\n2. [`B`](#b)\n\nx", "x"),
        ("# T { #t .c }\n\nText.\n{: .note}", "# T\n\nText.\n"),
        ("import Tabs from '@theme/Tabs';\n\n# T\n\n<Tabs>\n<TabItem label='npm'>\n\nx\n\n</TabItem>\n</Tabs>",
         "# T\n\nnpm\n\nx\n"),
        ("import {\n  a,\n  b,\n} from 'c'\n\nexport const x = {\n  y: 1,\n};\n\n# T", "# T"),
        ("{/* a\ncomment */}\nx", "x"),
        ("```{toctree}\na\nb\n```\nx", "x"),
        ("- a\n\n    <b>paragraph of the item</b>", "- a\n\n    paragraph of the item"),
        ("a ` b\n```\n`<b>`\n```\n<b>c</b>", "a ` b\n```\n`<b>`\n```\nc"),
    ],
)  # fmt: skip
def test_what_goes(text: str, expected: str) -> None:
    assert extract_markdown(text).text == expected


@pytest.mark.parametrize(
    ("target", "text", "carries"),
    [
        ("docs/configuration.md", "here", True),
        ("docs/configuration.md", "Configuration", False),
        ("#configuration", "here", False),
        ("https://docs.python.org/3/library/asyncio-task.html", "gather", True),
        ("https://www.example.org", "Example", False),
        ("https://github.com/acme/widgets/issues/12", "#12", False),
        ("https://github.com/acme/widgets/commit/0a1b2c3d4e", "0a1b2c3", False),
        ("https://github.com/acme/widgets/blob/main/docs/secrets.md", "here", True),
        ("https://x.org/p/7f9c24e8b1aa4d2", "post", False),
        ("/getting_started/", "Getting started", False),
    ],
)
def test_a_target_is_kept_when_it_says_more_than_its_text(target: str, text: str, carries: bool) -> None:
    assert carries_words(target, text=text) is carries


def test_badges_and_images_without_words() -> None:
    assert is_badge("https://img.shields.io/pypi/v/a")
    assert is_badge("https://github.com/a/b/actions/workflows/ci.yml/badge.svg")
    assert not is_badge("docs/images/badge-design.png")
    assert [image_words(alt) for alt in ("logo", "Screenshot 3.png", "", "Login screen")] == [
        "",
        "",
        "",
        "Login screen",
    ]


WORDS = st.lists(
    st.sampled_from(["alpha", "beta", "gamma", "delta", "code-span", "x.y_z", "naïve", "数据", "a*b", "10%", "(c)"]),
    min_size=1,
    max_size=8,
)
PARAGRAPHS = WORDS.map(" ".join)
NOISE = st.sampled_from(
    [
        "<!-- hidden -->", "[![b](https://img.shields.io/b)](https://b.io)", "<div align='center'>", "</div>", "",
        "![](a.png)", "[TOC]", "<!-- multi\nline -->", "[id]: https://x.org", "<br>",
    ]
)  # fmt: skip
BLOCKS = st.one_of(
    PARAGRAPHS,
    PARAGRAPHS.map(lambda words: f"# {words}"),
    PARAGRAPHS.map(lambda words: f"- {words}\n- [{words}](#a)"),
    PARAGRAPHS.map(lambda words: f"```\n{words} <b>\n```"),
    PARAGRAPHS.map(lambda words: f"    {words} <b>"),
    PARAGRAPHS.map(lambda words: f"| {words} | <b> |\n|---|---|"),
    PARAGRAPHS.map(lambda words: f"> `{words} <b>` <i>{words}</i>"),
    NOISE,
)
DOCUMENTS = st.lists(BLOCKS, max_size=8).map("\n\n".join)


@given(DOCUMENTS)
def test_lines_are_sound_and_words_survive(text: str) -> None:
    extract = extract_markdown(text)
    assert_sound(text, extract)
    wanted = re.findall(r"alpha|beta|gamma|delta|code-span|x\.y_z|naïve|数据|a\*b|10%", text)
    assert re.findall(r"alpha|beta|gamma|delta|code-span|x\.y_z|naïve|数据|a\*b|10%", extract.text) == wanted


@given(DOCUMENTS)
def test_cleaning_twice_changes_nothing_more(text: str) -> None:
    once = extract_markdown(text).text
    assert extract_markdown(once).text == once


@given(DOCUMENTS, PARAGRAPHS, DOCUMENTS)
def test_an_inserted_paragraph_changes_nothing_around_it(before: str, words: str, after: str) -> None:
    head, tail = f"# A\n\n{before}\n\nanchor one\n\n", f"anchor two\n\n{after}\n"
    old, new = extract_markdown(head + tail).text, extract_markdown(f"{head}{words}\n\n{tail}").text
    start = new.index("anchor one\n\n") + len("anchor one\n\n")
    assert new[:start] + new[new.index("anchor two") :] == old
    assert new[start : new.index("anchor two")] == f"{words}\n\n"


@given(st.text(alphabet="ab `~<>[]()!#-|\\\n\t{}:/*_\"'=x", max_size=200))
def test_any_marks_in_any_order(text: str) -> None:
    extract = extract_markdown(text)
    lines = extract_lines(extract)
    assert len(lines) == extract.text.count("\n") + 1
    assert lines == sorted(lines)


def test_a_nested_list_keeps_its_indentation() -> None:
    text = dedent("""\
        1. First <b>bold</b>

           - nested [link](#a)

             more <i>words</i>
        2. Second
        """)
    assert cleaned(text) == text.replace("<b>bold</b>", "bold").replace("[link](#a)", "link").replace(
        "<i>words</i>", "words"
    )


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("# Q&amp;A &mdash; docu&shy;ment", "# Q&A — document"),
        ("zero&#8203;width and no&#x2060;break", "zero width and nobreak"),
        ("List&lt;T&gt; &amp;lt; [R&amp;D](https://example.org/a?b=1&c;)", "List<T> &lt; R&D"),
        ("a&nbsp;b\n\n&nbsp;\n\nc", "a\xa0b\n\nc"),
        (
            "`&lt;` stays, and a & b, AT&T, &unknown; &#10; &#0;",
            "`&lt;` stays, and a & b, AT&T, &unknown; &#10; \ufffd",
        ),
        ("```\n&shy;&lt;\n```\n\n    &amp;", "```\n&shy;&lt;\n```\n\n    &amp;"),
    ],
)
def test_entities_are_the_characters_they_stand_for(written: str, shown: str) -> None:
    assert plain_text(extract_markdown(written).text) == shown
