"""Where a person sees a file."""

from __future__ import annotations

import pytest

from rag_pipeline.sources.git.forge import link


@pytest.mark.parametrize(
    ("source", "url", "anchor"),
    [
        ("https://github.com/o/n.git", "https://github.com/o/n/blob/c0/a/b%20c.py", "#L{start}-L{end}"),
        ("git@github.com:o/n.git", "https://github.com/o/n/blob/c0/a/b%20c.py", "#L{start}-L{end}"),
        ("ssh://git@gitlab.acme.org:2222/g/s/n.git",
         "https://gitlab.acme.org/g/s/n/-/blob/c0/a/b%20c.py", "#L{start}-{end}"),
        ("https://bitbucket.org/o/n", "https://bitbucket.org/o/n/src/c0/a/b%20c.py", "#lines-{start}:{end}"),
        ("https://codeberg.org/o/n", "https://codeberg.org/o/n/src/commit/c0/a/b%20c.py", "#L{start}-L{end}"),
        ("http://forge.local:3000/o/n", "http://forge.local:3000/o/n/blob/c0/a/b%20c.py", "#L{start}-L{end}"),
        ("/srv/my repo", "file:///srv/my%20repo/a/b%20c.py", "#L{start}-L{end}"),
        ("file:///srv/my%20repo", "file:///srv/my%20repo/a/b%20c.py", "#L{start}-L{end}"),
    ],
)  # fmt: skip
def test_links_to_forges_and_to_files(source: str, url: str, anchor: str) -> None:
    assert link(source, commit="c0", path="a/b c.py") == (url, anchor)


@pytest.mark.parametrize(
    ("source", "anchor"),
    [
        ("https://github.com/o/n.git", "?plain=1#L{start}-L{end}"),
        ("https://gitlab.acme.org/o/n", "?plain=1#L{start}-{end}"),
        ("https://codeberg.org/o/n", "?display=source#L{start}-L{end}"),
        ("/srv/x", "#L{start}-L{end}"),
    ],
)
@pytest.mark.parametrize("name", ["Study.ipynb", "README.md", "guide.RST", "a.b.adoc", "notes.org", "report.Rmd"])
def test_lines_of_a_rendered_page_are_those_of_its_source(source: str, anchor: str, name: str) -> None:
    assert link(source, commit="c0", path=f"a/{name}")[1] == anchor


def test_a_configured_page_wins() -> None:
    url, _ = link("/srv/x", commit="c0", path="a#b?.md", web_url="https://github.com/o/n/")
    assert url == "https://github.com/o/n/blob/c0/a%23b%3F.md"


def test_a_path_that_is_not_utf8_is_quoted_byte_by_byte() -> None:
    path = b"caf\xe9.md".decode("utf-8", "surrogateescape")
    assert link("https://github.com/o/n", commit="c0", path=path)[0].endswith("/caf%E9.md")
    assert link("/srv/x", commit="c0", path=path)[0] == "file:///srv/x/caf%E9.md"
