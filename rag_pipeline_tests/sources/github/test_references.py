"""What a text refers to, and what a pull request closes: by GitHub's own keywords, and never what is only quoted."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_pipeline.sources.github import references


def mentions(*texts: str) -> list[str]:
    return references.mentions(texts, repository="acme/app", host="github.com")


def closes(text: str) -> list[str]:
    return references.closes(text, repository="acme/app", host="github.com")


@pytest.mark.parametrize(
    "keyword", ["close", "closes", "closed", "fix", "fixes", "fixed", "resolve", "resolves", "resolved"]
)
@pytest.mark.parametrize(
    "written", ["{0} #7", "{0}: #7", "{1} acme/app#7", "So, {2} https://github.com/acme/app/issues/7."]
)
def test_each_of_githubs_keywords_closes(keyword: str, written: str) -> None:
    assert closes(written.format(keyword, keyword.title(), keyword.upper())) == ["acme/app#7"]


@pytest.mark.parametrize(
    "text",
    [
        "#7", "see #7", "fixing #7", "closing: #7", "hotfixes #7", "prefix #7", "fix 7", "fixes#7", "Fixes the #7",
        "fixes #0", "fixes #007", "fixes #7a", "fixes # 7",
    ],
)  # fmt: skip
def test_other_words_close_nothing(text: str) -> None:
    assert closes(text) == []


def test_a_keyword_closes_only_the_issue_after_it() -> None:
    assert closes("Fixes #1, #2 and resolves other/place#3; fixes GH-4") == [
        "acme/app#1",
        "other/place#3",
        "acme/app#4",
    ]


@pytest.mark.parametrize(
    "hidden",
    [
        "<!-- Fixes #7 -->", "<!--\nFixes #7\n-->", "<!-- Fixes #7", "`Fixes #7`", "``Fixes ` #7``",
        "```\nFixes #7\n```", "```python\nFixes #7\n```", "~~~\nFixes #7\n~~~", "```\nFixes #7",
        "> ```\n> Fixes #7\n> ```",
        "- ```\n  Fixes #7\n  ```", "````\n```\nFixes #7\n```\n````", "```\r\nFixes #7\r\n```\r\n",
        "~~~\n```\nFixes #7\n~~~",
    ],
)  # fmt: skip
def test_code_and_comments_do_not_count_and_what_surrounds_them_does(hidden: str) -> None:
    assert closes(hidden) == mentions(hidden) == []
    assert closes(f"Fixes #1\n\n{hidden}") == ["acme/app#1"]


@pytest.mark.parametrize(
    "before",
    [
        "<!-- Use ``` for code -->\n", "`<!--` begins a comment\n", "a lone ` tick\n", "three ``` in a line\n",
        "```\ncode\n```\n", "```\n<!--\n```\n", "<!-- a --> b <!-- c -->", "````\n```\n````\n", "`a` and ``b``\n",
    ],
)  # fmt: skip
def test_what_begins_within_code_or_a_comment_hides_nothing_after_it(before: str) -> None:
    assert closes(f"{before}Fixes #7") == ["acme/app#7"]


def test_mentions_are_whatever_github_makes_a_link_of() -> None:
    text = (
        "See #1, other/place#2, GH-3, https://github.com/acme/app/pull/4/files#r1 and (#5). Not a#6, &#7; or x/#8. "
        "Nor https://github.com/acme/app/discussions/9."
    )
    assert mentions(text) == ["acme/app#1", "other/place#2", "acme/app#3", "acme/app#4", "acme/app#5"]


def test_the_address_of_another_host_is_no_reference() -> None:
    text = "https://gitlab.com/acme/app/issues/1 https://GitHub.com/acme/app/issues/2"
    assert mentions(text) == ["acme/app#2"]
    own = references.mentions([text], repository="acme/app", host="gitlab.com")
    assert own == ["acme/app#1"]


def test_each_is_named_once_in_the_order_of_the_texts_and_ours_as_we_are_called() -> None:
    assert mentions("#2 #1", "Acme/App#2, #3 and https://github.com/ACME/app/issues/1") == [
        "acme/app#2", "acme/app#1", "acme/app#3",
    ]  # fmt: skip


def test_a_text_of_references_alone_is_cut_off() -> None:
    assert len(mentions(" ".join(f"#{number}" for number in range(1, 5000)))) == 500


@settings(deadline=None, derandomize=True)
@given(text=st.text(alphabet="`~<!->#/ \n\rfixesGH-17.:acme&@\u0661"))
def test_any_text_gives_references_of_the_right_form(text: str) -> None:
    for found in (*mentions(text), *closes(text)):
        repository, _, number = found.partition("#")
        assert repository.count("/") == 1 and number.isdecimal() and int(number) > 0


@pytest.mark.parametrize(
    "part", ["`", "``` ", "```\n", "~~~\n```\n", "<!--", "a/", "a-", "#1 ", "fix ", "> `", "https://a"]
)
def test_a_comment_of_a_megabyte_is_read_in_a_moment(part: str) -> None:
    text = part * (1_000_000 // len(part)) + "#1"
    started = time.process_time()
    mentions(text)
    closes(text)
    assert time.process_time() - started < 3
