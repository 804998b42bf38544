"""What a record's fields and a page's front matter may say."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest

from rag_pipeline.model import SourceItem
from rag_pipeline.sources.drops.parse import parse_drop
from rag_pipeline_tests.sources.drops.parsing import NOW, RECORD, WRITTEN, item, refusal


def test_a_record_becomes_an_item_with_all_that_it_says() -> None:
    found = item(
        RECORD | {
            "tenant": "globex", "source_type": "faq", "title": " How? ", "url": "https://example.org/faq?q=1#a",
            "content_type": "text/html", "updated_at": "2024-04-30T12:00:00+02:00", "scope": "user:jane",
            "metadata": {"team": ["docs"], "rank": 1.5}, "author": "Jane",
        },
        repository="help",
    )  # fmt: skip
    assert found == SourceItem(
        tenant="globex", source_type="faq", source_id="faq-1", repository="help", day=date(2024, 5, 2),
        source_updated_at=datetime(2024, 4, 30, 10, tzinfo=UTC), as_of=datetime(2024, 4, 30, 10, tzinfo=UTC),
        observed_at=WRITTEN, scope="user:jane", content=b"# Hello", title="How?", url="https://example.org/faq?q=1#a",
        metadata={"team": ["docs"], "rank": 1.5, "author": "Jane", "content_type": "text/html"},
    )  # fmt: skip


def test_what_a_record_leaves_out_has_defaults() -> None:
    found = item({"id": 42, "content": "", "title": None, "url": None, "scope": None, "metadata": None})
    assert found == SourceItem(
        tenant="acme", source_type="knowledge", source_id="42", repository="inbox", day=date(2024, 5, 2),
        source_updated_at=WRITTEN, as_of=WRITTEN, observed_at=WRITTEN, metadata={"content_type": "text/markdown"},
    )  # fmt: skip


def test_a_deleted_record_needs_no_content_and_keeps_none() -> None:
    assert item({"id": "faq-1", "deleted": True}).deleted
    assert item(RECORD | {"deleted": True}).content == b""
    assert not item(RECORD | {"deleted": False}).deleted


def test_a_key_we_do_not_know_does_not_replace_metadata() -> None:
    assert item(RECORD | {"author": "x", "metadata": {"author": "y"}}).metadata["author"] == "y"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2024-04-30", datetime(2024, 4, 30, tzinfo=UTC)),
        ("2024-04-30T12:00:00", datetime(2024, 4, 30, 12, tzinfo=UTC)),
        ("2024-04-30T12:00:00.25Z", datetime(2024, 4, 30, 12, 0, 0, 250_000, tzinfo=UTC)),
        (1_714_478_400, datetime(2024, 4, 30, 12, tzinfo=UTC)),
        (1_714_478_400.5, datetime(2024, 4, 30, 12, 0, 0, 500_000, tzinfo=UTC)),
        (-1, datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC)),
        ("2024-05-02T20:00:00Z", datetime(2024, 5, 2, 20, tzinfo=UTC)),
        ("2034-05-02T20:00:00Z", WRITTEN),
    ],
)
def test_times_are_utc_and_a_far_future_counts_as_the_moment_it_came(value: object, expected: datetime) -> None:
    found = item(RECORD | {"updated_at": value})
    assert (found.source_updated_at, found.as_of, found.observed_at) == (expected, expected, WRITTEN)


def test_a_file_time_in_the_future_counts_as_now() -> None:
    found = item(RECORD, modified_at=NOW + timedelta(days=3))
    assert (found.source_updated_at, found.observed_at) == (NOW, NOW)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"id": None}, "id is missing"),
        ({"id": ""}, "id is empty"),
        ({"id": True}, "id must be a string"),
        ({"id": "x" * 501}, "id is longer than 500 characters"),
        ({"id": "a\x1fb"}, "id holds control characters"),
        ({"id": "a\x00b"}, "id holds control characters"),
        ({"id": "\ud800"}, "id holds control characters"),
        ({"content": None}, "content is missing"),
        ({"content": ["x"]}, "content must be a string"),
        ({"deleted": "yes"}, "deleted must be true or false"),
        ({"tenant": ""}, "tenant is empty"),
        ({"tenant": "x" * 201}, "tenant is longer than 200 characters"),
        ({"tenant": "ü" * 50}, "tenant has too many characters that a folder's name cannot hold"),
        ({"source_type": "FAQ"}, "source_type must be lower-case"),
        ({"source_type": "github_issue"}, "source_type 'github_issue' is read from its own source"),
        ({"source_type": "code"}, "source_type 'code' is read from its own source"),
        ({"title": "x" * 1_001}, "title is longer than 1,000 characters"),
        ({"title": "a\nb"}, "title holds control characters"),
        ({"title": {}}, "title must be a string"),
        ({"url": "ftp://example.org"}, "url must be an http or https address"),
        ({"url": "javascript:alert(1)"}, "url must be an http or https address"),
        ({"url": "https://[::1"}, "url must be an http or https address"),
        ({"url": "https:///path"}, "url must be an http or https address"),
        ({"url": "https://me:secret@example.org"}, "url holds a user name or password"),
        ({"url": "https://example.org/" + "x" * 2_000}, "url is longer than 2,000 characters"),
        ({"updated_at": "yesterday"}, "updated_at is not a time in ISO 8601"),
        ({"updated_at": True}, "updated_at must be a time"),
        ({"updated_at": 1_714_478_400_000}, "updated_at is out of range"),
        ({"updated_at": "0001-01-01T00:00:00+05:00"}, "updated_at is out of range"),
        ({"scope": ""}, "scope is empty"),
        ({"scope": "jane"}, "scope must be a kind and a name, such as user:jane"),
        ({"scope": "user:"}, "scope must be a kind and a name"),
        ({"metadata": []}, "metadata must be an object"),
        ({"content_type": 1}, "content_type must be a string"),
    ],
)
def test_a_field_that_cannot_be_followed_is_named(change: dict[str, object], reason: str) -> None:
    assert refusal(RECORD | change).startswith(f"a.json: {reason}")


def test_a_page_is_identified_by_its_files_name() -> None:
    found = item("# Hello\r\n\xff".encode("latin-1"), "guide.md")
    assert found == SourceItem(
        tenant="acme", source_type="knowledge", source_id="guide.md", repository="inbox", day=date(2024, 5, 2),
        source_updated_at=WRITTEN, as_of=WRITTEN, observed_at=WRITTEN, content=b"# Hello\r\n\xff",
        metadata={"content_type": "text/markdown", "file_name": "guide.md"},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "content_type"),
    [
        ("a.MD", "text/markdown"), ("a.markdown", "text/markdown"), ("a.html", "text/html"), ("a.htm", "text/html"),
        ("a.txt", "text/plain"), ("a.ipynb", "application/x-ipynb+json"), ("a.rst", "text/x-rst"),
        ("a.adoc", "text/asciidoc"), ("a.org", "text/org"), ("a.qmd", "text/markdown"), ("a.Rmd", "text/markdown"),
    ],
)  # fmt: skip
def test_the_suffix_says_what_a_page_is(name: str, content_type: str) -> None:
    assert item(b'{"cells": []}', name).metadata["content_type"] == content_type


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "latin-1"])
def test_front_matter_says_what_a_page_is_and_leaves_its_text(encoding: str, newline: str) -> None:
    front = ["---", "id: g-1", "tenant: globex", "source_type: guide", "title: Größe", "url: https://example.org/g"]
    front += [
        "updated_at: 2024-04-30",
        "scope: user:jane",
        "tags: [a, b]",
        "content_type: x",
        "metadata: {k: 1}",
        "---",
    ]
    found = item(newline.join([*front, "# Maß", ""]).encode(encoding), "guide.md")
    assert (found.source_id, found.tenant, found.source_type, found.title) == ("g-1", "globex", "guide", "Größe")
    assert (found.url, found.scope, found.source_updated_at.day) == ("https://example.org/g", "user:jane", 30)
    assert found.metadata == {"tags": ["a", "b"], "k": 1, "content_type": "text/markdown", "file_name": "guide.md"}
    assert found.content.decode("utf-8-sig" if encoding == "utf-8" else encoding) == f"# Maß{newline}"


def test_a_damaged_page_keeps_its_bytes_behind_the_front_matter() -> None:
    found = item("---\ntitle: Größe\n---\n".encode() + b"a\xffb", "guide.txt")
    assert (found.title, found.content) == ("Größe", b"a\xffb")


def test_a_page_can_be_deleted_by_its_front_matter() -> None:
    found = item("---\ndeleted: yes\n---\n", "guide.md")
    assert (found.deleted, found.content, found.source_id) == (True, b"", "guide.md")


def test_a_wrong_field_in_front_matter_is_named() -> None:
    assert refusal("---\nurl: file:///etc/passwd\n---\n", "guide.md").startswith("guide.md: url must be an http")
    assert refusal("---\nsource_type: docs\n---\n", "guide.md").startswith("guide.md: source_type 'docs'")


@pytest.mark.parametrize("text", ["---\njust words\n---\nx", "---\nnever: closed\n"])
def test_what_is_no_front_matter_stays_in_a_page(text: str) -> None:
    assert item(text, "guide.md").content == text.encode()


def test_an_empty_page_waits_while_it_is_new_and_is_then_refused() -> None:
    assert parse_drop("a.md", b"", modified_at=NOW, now=NOW, tenant="acme") is None
    assert refusal(b" \n", "a.md") == "a.md: is empty"
