"""GitHub's JSON to our few fields: whatever it sends, a resource or an ItemError comes out."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_pipeline.errors import ItemError
from rag_pipeline.sources.github import resources
from rag_pipeline.sources.github.resources import EPOCH, Resource, instant, moment, precise
from rag_pipeline_tests.github_server import pull_shapes, shapes
from rag_pipeline_tests.github_server.model import Forge
from rag_pipeline_tests.github_server.shapes import Site

READERS: dict[str, Callable[[object], Resource]] = {
    "issue": resources.issue,
    "pull": resources.pull,
    "issue_of_pull": resources.issue_of_pull,
    "comment": resources.comment,
    "review": partial(resources.review, number=1, version="2024-05-01T12:00:00Z"),
    "review_comment": resources.review_comment,
    "discussion": resources.discussion,
    "discussion_comment": partial(resources.discussion_comment, number=1),
    "release": partial(resources.release, version="2024-05-01T12:00:00Z"),
}
KEYS = (
    "id", "number", "title", "body", "user", "login", "type", "author", "name", "tag_name", "labels", "assignees",
    "milestone", "state", "state_reason", "pull_request", "comments", "created_at", "updated_at", "closed_at",
    "submitted_at", "published_at", "merged_at", "merge_commit_sha", "draft", "base", "head", "ref", "sha", "repo",
    "full_name", "issue_url", "pull_request_url", "html_url", "path", "line", "original_line", "start_line",
    "diff_hunk", "in_reply_to_id", "pull_request_review_id", "filename", "status", "additions",
)  # fmt: skip
ADDRESSES = ("https://api.github.com/repos/acme/app/issues/7", "x/0", "x/" + "9" * 5000, "#fragment")
TIMES = ("2024-05-01T12:00:00Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59-12:00", "yesterday", "2024-05-01")
SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
    | st.sampled_from(ADDRESSES + TIMES) | st.sampled_from(["\ud800", "\x00"])
)  # fmt: skip
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=12),
    max_leaves=20,
)
OBJECTS = st.dictionaries(st.sampled_from(KEYS), JSON, max_size=25).map(
    lambda found: {"id": 1, "number": 1, "issue_url": "x/1", "pull_request_url": "x/1", **found}
)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(data=JSON | OBJECTS, kind=st.sampled_from(sorted(READERS)))
def test_any_json_is_a_resource_that_can_be_kept_or_an_item_error(data: Any, kind: str) -> None:
    try:
        found = READERS[kind](data)
    except ItemError as error:
        assert str(error)
        return
    assert 0 < found.id < 1 << 63 and 0 < found.number < 1 << 63
    text = json.dumps(found.body, ensure_ascii=False, allow_nan=False)
    assert "\\u0000" not in text
    text.encode()
    assert found.version == "" or found.version == instant(found.version) >= EPOCH


@settings(max_examples=50, deadline=None, derandomize=True)
@given(data=JSON | OBJECTS)
def test_any_json_is_a_changed_file_or_an_item_error(data: Any) -> None:
    try:
        json.dumps(resources.changed_file(data)).encode()
    except ItemError as error:
        assert str(error)


@settings(deadline=None, derandomize=True)
@given(value=SCALARS | st.datetimes(timezones=st.timezones()).map(lambda when: when.isoformat()))
def test_a_time_is_text_that_sorts_and_can_be_read_back(value: object) -> None:
    text = instant(value)
    assert text == "" or len(text) == len(EPOCH)
    assert instant(moment(text).timestamp()) == (text or EPOCH)


def test_times_with_offsets_are_the_same_moment_in_utc() -> None:
    same = ("2024-05-01T14:30:00+02:30", "2024-05-01T12:00:00Z", "2024-05-01T12:00:00", "2024-05-01T12:00:00.999Z")
    assert {instant(text) for text in same} == {"2024-05-01T12:00:00Z"}
    assert instant(1714564800) == instant(1714564800.5) == "2024-05-01T12:00:00Z"


@pytest.mark.parametrize("value", [None, "", "soon", True, [], float("nan"), 1e300, "0001-01-01T00:00:00Z", -1])
def test_what_is_no_time_is_an_unknown_one(value: object) -> None:
    assert instant(value) == ""


def test_moments_of_ours_are_kept_to_the_microsecond() -> None:
    assert precise(moment("2024-05-01T12:00:00Z")) == "2024-05-01T12:00:00.000000+00:00"


def test_an_issue_without_text_author_and_labels_has_empty_ones() -> None:
    bare = {"number": 7, "title": None, "body": None, "user": None, "labels": None, "milestone": None}
    body = resources.issue(bare).body
    assert (body["title"], body["body"], body["labels"], body["milestone"]) == ("", "", [], None)
    assert body["author"] == {"login": "ghost", "bot": False}


@pytest.mark.parametrize("user", [{"login": "ci", "type": "Bot"}, {"login": "dependabot[bot]", "type": "User"}])
def test_bots_are_known_by_their_type_or_their_name(user: dict[str, str]) -> None:
    assert resources.comment({"id": 1, "user": user}, number=1).body["author"] == {"login": user["login"], "bot": True}


def test_labels_may_be_names_or_objects_and_come_in_order() -> None:
    issue = {"number": 1, "labels": [{"name": "zeta"}, "alpha", {"name": None}, 3]}
    assert resources.issue(issue).body["labels"] == ["alpha", "zeta"]


@pytest.mark.parametrize("missing", [{}, {"number": "7"}, {"number": True}, {"number": 0}, {"number": 1 << 63}])
def test_an_issue_without_a_usable_number_is_an_item_error(missing: dict[str, object]) -> None:
    with pytest.raises(ItemError, match="issue without a usable number"):
        resources.issue(missing)


def test_a_comment_that_names_no_thread_is_an_item_error_unless_its_thread_is_known() -> None:
    with pytest.raises(ItemError, match="comment 5 does not say which thread"):
        resources.comment({"id": 5})
    assert resources.comment({"id": 5}, number=7).number == 7


def test_a_review_of_which_only_the_draft_date_is_known_is_dated_by_that() -> None:
    draft = resources.review({"id": 5, "created_at": "2024-05-01T12:00:00Z", "state": None}, number=1, version="v")
    assert (draft.body["created_at"], draft.body["verdict"], draft.version) == (
        "2024-05-01T12:00:00Z",
        "commented",
        "v",
    )


def test_only_a_merged_pull_request_has_a_merge_commit() -> None:
    test_merge = {"number": 1, "merge_commit_sha": "a" * 40}
    assert resources.pull(test_merge).body["merge_commit"] is None
    assert resources.pull({**test_merge, "merged_at": "2024-05-01T12:00:00Z"}).body["merge_commit"] == "a" * 40


def test_the_head_of_a_deleted_fork_has_no_repository() -> None:
    head = resources.pull({"number": 1, "head": {"ref": "fix", "sha": "b", "repo": None}}).body["head"]
    assert head == {"ref": "fix", "sha": "b", "repository": None}


def test_each_entry_has_the_anchor_of_its_place_on_the_page() -> None:
    assert resources.comment({"id": 5}, number=1).body["anchor"] == "#issuecomment-5"
    assert resources.review({"id": 5}, number=1, version="").body["anchor"] == "#pullrequestreview-5"
    assert resources.review_comment({"id": 5}, number=1).body["anchor"] == "#discussion_r5"
    assert resources.discussion_comment({"id": 5}, number=1).body["anchor"] == "#discussioncomment-5"
    moved = {"id": 5, "html_url": "https://github.com/acme/app/pull/1#r5"}
    assert resources.review_comment(moved, number=1).body["anchor"] == "#r5"


def test_a_pull_request_is_the_same_issue_from_either_listing() -> None:
    forge, site = Forge(), Site()
    thread = forge.open_pull_request(forge.add_repository("acme/app"), body=None, author=None, labels=["b", "a"])
    forge.comment(thread)
    alone = resources.issue_of_pull(pull_shapes.pull(site, thread, alone=True))
    assert (
        alone == resources.issue(shapes.issue(site, thread)) == resources.issue(shapes.issue(site, thread, alone=True))
    )
    listed = resources.issue_of_pull(pull_shapes.pull(site, thread))
    assert listed.body["comments"] is None and listed.body | {"comments": 1} == alone.body


def test_a_release_without_a_name_is_called_by_its_tag() -> None:
    release = resources.release({"id": 5, "tag_name": "v1", "name": None, "author": None}, version="v")
    assert (release.body["title"], release.body["tag"], release.version) == ("v1", "v1", "v")
