"""What deliveries say: each touches something, is ignored by name, or is refused with a reason; none crashes."""

from __future__ import annotations

import json
import os
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_pipeline.errors import ItemError
from rag_pipeline.sources.github.deliveries import Touch, interpret
from rag_pipeline.sources.github.resources import instant
from rag_pipeline_tests.github_server import webhooks
from rag_pipeline_tests.github_server.model import Forge
from rag_pipeline_tests.github_server.nouns import Repository
from rag_pipeline_tests.github_server.shapes import Site
from rag_pipeline_tests.sources.github.mirrors import moment
from rag_pipeline_tests.sources.github.test_resources import JSON

EXAMPLES = (
    Path(os.environ.get("RAG_TEST_DATA", ""))
    / "webhooks" / "octokit-webhooks-examples" / "api.github.com" / "index.json"
)  # fmt: skip
needs_examples = pytest.mark.skipif(not EXAMPLES.is_file(), reason="RAG_TEST_DATA names no folder with webhooks/")
RECEIVED = "2024-05-03T12:00:00Z"
REPOSITORY = {"id": 7, "full_name": "acme/app", "html_url": "https://github.com/acme/app"}
TOUCHING = (
    "issues", "issue_comment", "pull_request", "pull_request_review", "pull_request_review_comment", "push",
    "repository", "release", "discussion", "discussion_comment",
)  # fmt: skip


def read(event: str, **payload: Any) -> Touch:
    return interpret(event, {"repository": REPOSITORY, **payload}, received_at=RECEIVED)


# Any payload.


@needs_examples
def test_each_of_githubs_examples_touches_something_or_is_ignored_by_name() -> None:
    examples = [(each["name"], payload) for each in json.loads(EXAMPLES.read_text()) for payload in each["examples"]]
    assert len(examples) > 300
    for event, payload in examples:
        touch = interpret(event, payload, received_at=RECEIVED)
        assert bool(touch.ignored) != bool(touch.kind), (event, touch)
        if event not in TOUCHING:
            assert touch.ignored == f"events of type {event} touch no knowledge"
        elif touch.kind not in ("", "push", "repository"):
            assert touch.number and (touch.resources or touch.thread_gone)
            assert all(resource.version for resource in touch.resources)
    touching = {event for event, payload in examples if interpret(event, payload, received_at=RECEIVED).kind}
    assert touching == set(TOUCHING)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    event=st.sampled_from(TOUCHING) | st.text(max_size=10),
    payload=st.dictionaries(
        st.sampled_from(("action", "issue", "comment", "pull_request", "review", "release", "discussion", "changes",
                         "repository", "ref", "commits", "head_commit")),
        JSON | st.just(REPOSITORY) | st.just({"id": 1, "number": 1}), max_size=8,
    ),
)  # fmt: skip
def test_any_payload_is_read_or_refused_with_a_reason(event: str, payload: dict[str, Any]) -> None:
    try:
        touch = interpret(event, payload, received_at=RECEIVED)
    except ItemError as error:
        assert str(error)
    else:
        assert bool(touch.ignored) != bool(touch.kind)


@pytest.mark.parametrize(
    "repository", [None, [], {}, {"id": True, "full_name": "a/b"}, {"id": 7}, {"id": 0, "full_name": "a/b"}]
)
def test_a_delivery_that_names_no_repository_is_refused(repository: object) -> None:
    with pytest.raises(ItemError, match="delivery of type issues must name its repository"):
        read("issues", repository=repository, issue={"number": 1})


@pytest.mark.parametrize("event", TOUCHING)
def test_a_delivery_without_what_its_event_is_about_is_refused_or_touches_nothing(event: str) -> None:
    if event in ("push", "repository"):
        assert read(event).ignored
    else:
        with pytest.raises(ItemError):
            read(event)


# What each event says.


@pytest.fixture
def app() -> Repository:
    return Forge().add_repository("acme/app")


def touch_of(delivery: webhooks.Delivery) -> Touch:
    return interpret(delivery.event, delivery.payload, received_at=RECEIVED)


def kinds(touch: Touch) -> list[str]:
    return [resource.kind for resource in touch.resources]


def test_an_issue_a_comment_and_a_pull_request_say_what_they_are(app: Repository) -> None:
    forge, site = Forge(), Site()
    issue, pull = forge.open_issue(app), forge.open_pull_request(app)
    opened = touch_of(webhooks.thread(site, "opened", issue))
    assert (opened.kind, opened.number, kinds(opened)) == ("issue", 1, ["issue"])
    assert opened.repository is not None and opened.repository.full_name == "acme/app"
    said = touch_of(webhooks.issue_comment(site, "created", forge.comment(pull)))
    assert (said.kind, said.number, kinds(said)) == ("pull_request", 2, ["issue", "comment"])
    pushed = touch_of(webhooks.thread(site, "synchronize", pull, before="a"))
    assert (pushed.kind, kinds(pushed)) == ("pull_request", ["issue", "pull"])


def test_a_review_is_dated_by_its_pull_request_and_does_not_show_all_of_that(app: Repository) -> None:
    forge = Forge(now=moment(1))
    pull = forge.open_pull_request(app)
    forge.now = moment(2)
    review = forge.review(pull, "APPROVED")
    touch = touch_of(webhooks.review(Site(), "submitted", review))
    assert kinds(touch) == ["issue", "review"]
    assert touch.resources[0].body["comments"] is None
    assert touch.resources[1].version == instant(moment(2).timestamp()) < RECEIVED
    assert touch.resources[1].body["verdict"] == "approved"
    remark = forge.review_comment(pull, review=review)
    assert kinds(touch_of(webhooks.review_comment(Site(), "created", remark))) == ["issue", "review_comment"]


def test_what_was_deleted_is_gone_and_not_shown(app: Repository) -> None:
    forge, site = Forge(), Site()
    issue, pull = forge.open_issue(app), forge.open_pull_request(app)
    comment, remark = forge.comment(issue), forge.review_comment(pull)
    assert touch_of(webhooks.issue_comment(site, "deleted", comment)).gone == (("comment", comment.id),)
    assert touch_of(webhooks.review_comment(site, "deleted", remark)).gone == (("review_comment", remark.id),)
    deleted = touch_of(webhooks.thread(site, "deleted", issue))
    assert (deleted.thread_gone, deleted.resources) == (True, ())


def test_a_transferred_issue_is_gone_here_and_says_where_it_is(app: Repository) -> None:
    forge = Forge()
    old = forge.open_issue(app)
    new = forge.transfer_issue(old, forge.add_repository("acme/other"))
    leaving, arriving = map(touch_of, webhooks.transferred(Site(), old, new))
    assert leaving.thread_gone and leaving.moved_to is not None
    assert (leaving.moved_to[0].full_name, leaving.moved_to[1]) == ("acme/other", 1)
    assert (arriving.thread_gone, arriving.number) == (False, 1)
    assert read("issues", action="transferred", issue={"number": 1}).moved_to is None


def test_a_push_to_a_branch_says_from_which_day_on(app: Repository) -> None:
    commits = [{"timestamp": "2024-05-02T01:00:00+02:00"}, {"timestamp": "2024-05-03T12:00:00Z"}, {"timestamp": None}]
    touch = read("push", ref="refs/heads/feature/x", commits=commits, head_commit=commits[1])
    assert (touch.kind, touch.branch, touch.first_day) == ("push", "feature/x", date(2024, 5, 1))
    assert read("push", ref="refs/heads/main").first_day == date(2024, 5, 3)
    assert read("push", ref="refs/tags/v1").ignored == "a push of a tag touches no branch"


@pytest.mark.parametrize("action", ["renamed", "transferred", "edited", "publicized", "privatized"])
def test_a_repository_that_changes_is_touched(action: str) -> None:
    assert read("repository", action=action).kind == "repository"


@pytest.mark.parametrize("action", ["archived", "created", None, {}])
def test_other_news_of_a_repository_change_no_knowledge(action: object) -> None:
    assert "holds the same knowledge" in read("repository", action=action).ignored


def test_a_deleted_repository_is_not_emptied_by_a_delivery() -> None:
    assert "take it out of the settings" in read("repository", action="deleted").ignored


def test_a_release_is_touched_by_its_id_and_a_draft_is_not() -> None:
    release = {"id": 5, "tag_name": "v1", "name": "One", "published_at": "2024-05-01T12:00:00Z"}
    touch = read("release", action="published", release=release)
    assert (touch.kind, touch.number, touch.resources[0].version) == ("release", 5, RECEIVED)
    assert read("release", action="created", release={**release, "draft": True}).ignored
    assert read("release", action="deleted", release={**release, "draft": True}).thread_gone


def test_a_discussion_and_what_is_said_in_it() -> None:
    discussion = {"number": 3, "title": "How?", "updated_at": "2024-05-01T12:00:00Z"}
    assert kinds(read("discussion", action="created", discussion=discussion)) == ["discussion"]
    assert read("discussion", action="deleted", discussion=discussion).thread_gone
    comment = {"id": 9, "body": "So.", "updated_at": "2024-05-01T12:00:00Z"}
    said = read("discussion_comment", action="created", discussion=discussion, comment=comment)
    assert (said.number, kinds(said)) == (3, ["discussion", "discussion_comment"])
    gone = read("discussion_comment", action="deleted", discussion=discussion, comment=comment)
    assert (gone.gone, kinds(gone)) == ((("discussion_comment", 9),), ["discussion"])
