"""What marks cover, what they cut out of a thread, and that they can be kept without a name."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from rag_pipeline.bounded_json import parse_json
from rag_pipeline.forgotten import (
    NOTHING,
    Forgotten,
    Mark,
    author_mark,
    document_mark,
    read_marks,
    repository_mark,
    tenant_mark,
    write_marks,
)
from rag_pipeline.model import Json, SourceItem, document_id

MOMENT = datetime(2024, 5, 1, tzinfo=UTC)
LOGINS = ("ada", "Grace", "linus", "dependabot[bot]")
logins = st.sampled_from(LOGINS)
entries = st.lists(st.builds(lambda login, body: {"author": {"login": login}, "body": body}, logins, st.text()))


def item(**changed: Any) -> SourceItem:
    kinds: dict[str, Any] = {
        "tenant": "acme", "source_type": "github_issue", "source_id": "github.com/7#1", "repository": "rocket",
        "day": date(2024, 5, 1), "source_updated_at": MOMENT, "observed_at": MOMENT,
    }  # fmt: skip
    return SourceItem(**kinds | changed)


def thread(said: list[dict[str, Any]], *assignees: str, opened_by: str = "ada") -> SourceItem:
    metadata: dict[str, Json] = {"author": opened_by, "assignees": list(assignees)}
    content = {"title": "T", "body": "B", "author": {"login": opened_by}, "entries": said, "assignees": list(assignees)}
    return item(content=json.dumps(content).encode(), metadata=metadata)


def marked(*marks: Mark) -> Forgotten:
    return Forgotten(marks=frozenset(marks))


def test_each_kind_of_mark_covers_what_it_names_and_nothing_else():
    id_ = document_id(tenant="acme", source_type="github_issue", source_id="github.com/7#1")
    other_id = document_id(tenant="acme", source_type="github_issue", source_id="github.com/7#2")
    opened = item(metadata={"author": "grace"})
    for mark in (document_mark("acme", id_), repository_mark("acme", "rocket"), tenant_mark("acme")):
        assert marked(mark).covers(opened)
    assert marked(author_mark("acme", "GRACE")).covers(opened)
    for mark in (
        document_mark("acme", other_id), repository_mark("acme", "engine"), tenant_mark("other"),
        repository_mark("other", "rocket"), author_mark("acme", "ada"), author_mark("other", "grace"),
    ):  # fmt: skip
        assert marked(mark).left_of(opened) is opened
    assert NOTHING.left_of(opened) is opened


def test_a_tombstone_is_covered_like_what_it_was_of():
    mark = document_mark("acme", document_id(tenant="acme", source_type="github_issue", source_id="github.com/7#1"))
    assert marked(mark).left_of(item(deleted=True)) is None


def test_a_file_outlives_its_last_author_but_not_the_name():
    file = item(
        source_type="docs", source_id="rocket:a.md", content=b"words", metadata={"author": "Ada", "commit": "7"}
    )
    left = marked(author_mark("acme", "ada")).left_of(file)
    assert left is not None
    assert (left.content, left.metadata) == (b"words", {"commit": "7"})


@settings(deadline=None)
@given(said=entries, gone=st.sets(logins, max_size=3), assigned=st.lists(logins))
def test_of_a_thread_exactly_what_others_said_is_left_in_its_order(said, gone, assigned):
    forgotten = marked(*(author_mark("acme", login.swapcase()) for login in gone))
    whole = thread(said, *assigned, opened_by="margaret")
    left = forgotten.left_of(whole)
    assert left is not None
    content = json.loads(left.content)
    # What PostgreSQL cannot store, such as NUL, is not kept.
    storable = parse_json(json.dumps(said))
    assert content["entries"] == [entry for entry in storable if entry["author"]["login"] not in gone]
    assert content["assignees"] == [login for login in assigned if login not in gone]
    assert left.metadata.get("assignees", []) == content["assignees"]
    assert forgotten.left_of(left) is left
    assert gone or left is whole


@settings(deadline=None)
@given(content=st.binary() | st.text().map(str.encode) | st.recursive(st.none() | st.text(), st.lists).map(
    lambda value: json.dumps(value).encode()
))  # fmt: skip
def test_what_is_no_thread_is_left_to_those_who_say_so(content):
    broken = item(content=content)
    assert marked(author_mark("acme", "grace")).left_of(broken) is broken


def test_what_is_too_old_is_not_kept_and_only_of_types_that_have_an_age():
    kept = Forgotten(kept_from={"github_issue": MOMENT})
    assert not kept.covers(item())
    assert kept.covers(item(source_updated_at=MOMENT - timedelta(seconds=1)))
    assert not kept.covers(item(source_type="docs", source_updated_at=MOMENT - timedelta(days=9)))


def test_the_copy_of_the_marks_names_nobody_and_is_written_once(tmp_path):
    marks = {author_mark("acme", "grace"), repository_mark("acme", "rocket"), tenant_mark("umbrella")}
    assert read_marks(tmp_path / "home") == frozenset()
    assert write_marks(tmp_path / "home", marks)
    assert not write_marks(tmp_path / "home", marks)
    assert read_marks(tmp_path / "home") == marks
    (file,) = (tmp_path / "home").iterdir()
    assert not [name for name in ("grace", "rocket", "umbrella") if name in file.read_text()]
    assert write_marks(tmp_path / "home", ())
    assert read_marks(tmp_path / "home") == frozenset()
