"""Org files become markdown: headings, code, links and tables, without what only steers Org."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rag_pipeline.documents.org import extract_org
from rag_pipeline_tests.bench.splitters import our_chunks
from rag_pipeline_tests.documents.extracts import assert_quick, extract_lines

GUIDE = """\
#+TITLE: The Guide
#+AUTHOR: Jane
# a comment
* TODO [#A] Install :setup:linux:
:PROPERTIES:
:CUSTOM_ID: install
:END:
SCHEDULED: <2024-01-01 Mon>
Run =make install= or see [[https://example.org/docs][the manual]].

** From source
#+begin_src shell :results output
make  # build
,* no heading
#+end_src
#+RESULTS:
: built in 3 s

| name | size |
|------+------|
| a    | 1    |

#+BEGIN_QUOTE
Never give up.
#+END_QUOTE
#+begin_comment
* hidden
#+end_comment
:unclosed:
The end.
"""


def test_org_becomes_markdown_line_by_line() -> None:
    extract = extract_org(GUIDE)
    assert (extract.title, extract.markup) == ("The Guide", "markdown")
    assert extract.text.split("\n") == [
        "# Install", "Run `make install` or see the manual.", "", "## From source", "```shell", "make  # build",
        "* no heading", "```", "    built in 3 s", "", "| name | size |", "|------|------|", "| a    | 1    |", "",
        "Never give up.", ":unclosed:", "The end.", "",
    ]  # fmt: skip
    assert extract_lines(extract) == [4, 9, 10, 11, 12, 13, 14, 15, 17, 18, 19, 20, 21, 22, 24, 29, 30, 31]


def test_headings_are_sections_of_chunks() -> None:
    words = "Some words about this step, and then some more. " * 8
    content = f"* Install\n{words}\n** From source\n{words}\n* Use\n{words}\n".encode()
    paths = [chunk.heading_path for chunk in our_chunks("guide.org", content, tokens=120)]
    assert ("Install",) in paths
    assert ("Install", "From source") in paths
    assert ("Use",) in paths


@given(st.text(alphabet="* #+begin_srcend:[]=~|-\nAa,TODO", max_size=300))
def test_every_line_keeps_its_number(text: str) -> None:
    extract = extract_org(text)
    lines = extract_lines(extract)
    assert len(lines) == extract.text.count("\n") + 1
    assert lines == sorted(lines)


def test_long_and_odd_org_takes_linear_time() -> None:
    for piece in ("[[", "[[a][", "=a ", "* ", "#+begin_src\n", ":a:\n", "| a ", "#+a: "):
        assert_quick(extract_org, piece * (300_000 // len(piece)))
