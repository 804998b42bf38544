"""What deliveries do to a mirror: exactly the touched thread is fresh, and older news never overwrite newer ones."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from rag_pipeline.sources.github.deliveries import Touch
from rag_pipeline_tests.github_server import webhooks
from rag_pipeline_tests.github_server.faults import Fault
from rag_pipeline_tests.github_server.model import Forge
from rag_pipeline_tests.github_server.nouns import Repository, Thread
from rag_pipeline_tests.github_server.shapes import Site
from rag_pipeline_tests.sources.github.mirrors import Mirrored, cold_load, touch_of

SITE = Site()


@pytest.fixture
def pull(forge: Forge, app: Repository, issue: Thread) -> Thread:
    """After the issue, a pull request with a comment, a review and a remark."""
    pull = forge.open_pull_request(app)
    forge.comment(pull, "An old comment.")
    forge.review_comment(pull, "An old remark.", review=forge.review(pull, body="An old review."))
    return pull


@pytest.fixture
def loaded(mirrored: Mirrored, issue: Thread, pull: Thread) -> Mirrored:
    """The mirror with both in it, two hours ago."""
    mirrored.fetch()
    mirrored.server.forge.tick(7200)
    mirrored.server.clear_requests()
    return mirrored


# With the API.


def test_an_issue_is_as_its_delivery_says_and_nothing_is_asked_for(
    forge: Forge, app: Repository, issue: Thread, loaded: Mirrored, tmp_path: Path
) -> None:
    report = loaded.deliver(
        webhooks.thread(SITE, "opened", forge.open_issue(app, title="a new one")),
        webhooks.issue_comment(SITE, "created", forge.comment(issue, "new")),
    )
    assert (report.from_api, report.from_payload, report.unreachable) == (0, 2, "")
    assert loaded.server.count() == 0
    assert loaded.threads() == cold_load(loaded, tmp_path / "cold")


def test_comments_whose_deliveries_were_missed_are_asked_for(
    forge: Forge, app: Repository, issue: Thread, loaded: Mirrored, tmp_path: Path
) -> None:
    forge.comment(issue, "missed")
    report = loaded.deliver(webhooks.issue_comment(SITE, "created", forge.comment(issue, "new")))
    assert (report.from_api, report.from_payload) == (1, 0)
    assert [request.path for request in loaded.server.requests] == ["/repos/acme/app/issues/1/comments"]
    assert loaded.threads() == cold_load(loaded, tmp_path / "cold")


def test_of_a_pull_request_its_reviews_are_asked_for_and_its_files_when_its_head_moved(
    forge: Forge, pull: Thread, loaded: Mirrored, tmp_path: Path
) -> None:
    loaded.deliver(webhooks.review(SITE, "submitted", forge.review(pull, "APPROVED", body="new")))
    assert [request.path[-9:] for request in loaded.server.requests] == ["2/reviews"]
    loaded.server.clear_requests()
    forge.push(pull, files=[])
    loaded.deliver(webhooks.thread(SITE, "synchronize", pull, before="a"))
    assert [request.path[-9:] for request in loaded.server.requests] == ["2/reviews", "s/2/files"]
    assert loaded.threads() == cold_load(loaded, tmp_path / "cold")


def test_remarks_that_github_counts_otherwise_are_asked_for(
    forge: Forge, pull: Thread, loaded: Mirrored, tmp_path: Path
) -> None:
    forge.delete_review_comment(pull.the_pull().review_comments[0])
    forge.label(pull, "bug")
    loaded.deliver(webhooks.thread(SITE, "labeled", pull))
    assert loaded.server.count("/pulls/2/comments") == 1
    assert loaded.threads() == cold_load(loaded, tmp_path / "cold")


def test_a_new_pull_request_takes_two_requests(forge: Forge, app: Repository, loaded: Mirrored, tmp_path: Path) -> None:
    loaded.deliver(webhooks.thread(SITE, "opened", forge.open_pull_request(app)))
    assert loaded.server.count() == 2
    assert loaded.threads() == cold_load(loaded, tmp_path / "cold")


def test_the_same_delivery_twice_changes_nothing(forge: Forge, issue: Thread, pull: Thread, loaded: Mirrored) -> None:
    sent = [
        webhooks.issue_comment(SITE, "created", forge.comment(issue, "new")),
        webhooks.review(SITE, "submitted", forge.review(pull, body="new")),
        webhooks.issue_comment(SITE, "edited", forge.comment(issue, "newer")),
    ]
    for api in (True, False):
        loaded.deliver(*sent, api=api)
        before = loaded.last_seq()
        loaded.deliver(*sent, *sent, api=api)
        loaded.deliver(*sent, api=not api)
        assert loaded.last_seq() == before


def test_what_the_delivery_says_is_deleted_is_not_asked_for(forge: Forge, issue: Thread, loaded: Mirrored) -> None:
    forge.delete_issue(issue)
    report = loaded.deliver(webhooks.thread(SITE, "deleted", issue))
    assert loaded.server.count() == 0 and report.threads == {("issue", 1)}
    assert loaded.settled()["issue 1"].deleted


def test_a_touch_that_shows_nothing_of_its_thread_makes_it_fresh_all_the_same(
    forge: Forge, app: Repository, issue: Thread, loaded: Mirrored
) -> None:
    """As the place does to which an issue was transferred, when only the place it left has said so."""
    forge.edit_thread(issue, title="new")
    touch = Touch(kind="issue", number=1)
    loaded.apply((touch, forge.now), api=False)
    assert loaded.issue(1)["title"] == "An issue"
    loaded.apply((touch, forge.now), (Touch(kind="issue", number=99), forge.now))
    assert loaded.issue(1)["title"] == "new"
    assert "issue 99" not in loaded.threads()


def test_a_transferred_issue_leaves_a_tombstone_and_arrives_where_it_went(
    forge: Forge, app: Repository, issue: Thread, loaded: Mirrored
) -> None:
    other = forge.add_repository("acme/other")
    there = loaded.elsewhere(loaded.home / "other")
    there.name = "acme/other"
    leaving, arriving = webhooks.transferred(SITE, issue, forge.transfer_issue(issue, other))
    loaded.deliver(leaving)
    there.deliver(arriving)
    assert loaded.settled()["issue 1"].deleted
    assert there.bodies(1) == ["An old comment."]


def test_a_thread_that_is_gone_from_the_api_is_buried_whatever_the_delivery_says(
    forge: Forge, issue: Thread, loaded: Mirrored
) -> None:
    forge.comment(issue, "missed")
    late = webhooks.issue_comment(SITE, "created", forge.comment(issue, "new"))
    forge.convert_to_discussion(issue)
    loaded.deliver(late)
    assert loaded.settled()["issue 1"].deleted


def test_many_threads_that_lack_something_are_read_with_the_listings(
    forge: Forge, app: Repository, loaded: Mirrored, tmp_path: Path
) -> None:
    sent = []
    for _ in range(40):
        issue = forge.open_issue(app)
        forge.comment(issue, "missed")
        sent.append(webhooks.issue_comment(SITE, "created", forge.comment(issue, "new")))
    report = loaded.deliver(*sent)
    assert (report.from_api, loaded.server.count()) == (40, 5)
    assert loaded.threads() == cold_load(loaded, tmp_path / "cold")


def test_before_the_first_load_threads_are_read_by_themselves(
    forge: Forge, issue: Thread, pull: Thread, mirrored: Mirrored, tmp_path: Path
) -> None:
    mirrored.deliver(webhooks.issue_comment(SITE, "created", forge.comment(pull, "new")))
    assert set(mirrored.threads()) == {"pull_request 2"}
    mirrored.fetch()
    assert mirrored.threads() == cold_load(mirrored, tmp_path / "cold")


@pytest.mark.parametrize("match", ["/pulls/2/reviews", "/pulls/2/files", "/issues/2/comments"])
def test_when_the_api_cannot_be_asked_the_payload_counts_until_the_next_fetch(
    match: str, forge: Forge, pull: Thread, loaded: Mirrored, tmp_path: Path
) -> None:
    loaded.server.faults.add(Fault(match=match, kind="status", status=503, times=2))
    forge.comment(pull, "missed")
    forge.push(pull, files=[])
    forge.edit_thread(pull, title="new")
    report = loaded.deliver(webhooks.thread(SITE, "synchronize", pull))
    assert "503" in report.unreachable and report.from_api == 0
    assert loaded.pull(2)["title"] == "new"
    loaded.fetch()
    assert loaded.threads() == cold_load(loaded, tmp_path / "cold")


def test_of_many_threads_one_that_cannot_be_read_is_as_its_payload_says(
    forge: Forge, app: Repository, loaded: Mirrored
) -> None:
    sent = [webhooks.thread(SITE, "opened", forge.open_issue(app)) for _ in range(30)]
    pull = forge.open_pull_request(app, title="as the payload says")
    loaded.server.faults.add(Fault(match=f"/pulls/{pull.number}/reviews", kind="status", times=2))
    report = loaded.deliver(*sent, webhooks.thread(SITE, "opened", pull))
    assert (report.from_api, report.from_payload) == (0, 31)
    assert loaded.pull(pull.number)["title"] == "as the payload says"
    assert loaded.fetch().waiting == 0


# Without it.


def test_the_payload_alone_brings_a_thread_up_to_date(
    forge: Forge, issue: Thread, pull: Thread, loaded: Mirrored
) -> None:
    comment = forge.comment(issue, "new")
    sent = [webhooks.issue_comment(SITE, "created", comment)]
    forge.delete_comment(issue.comments[0])
    sent.append(webhooks.issue_comment(SITE, "deleted", comment.thread.comments[0]))
    forge.merge(pull)
    sent.append(webhooks.thread(SITE, "closed", pull))
    report = loaded.deliver(*sent[::2], api=False)
    assert (report.from_api, report.from_payload, loaded.server.count()) == (0, 2, 0)
    assert loaded.bodies(1)[-1] == "new" and loaded.pull(2)["state"] == "merged"
    assert loaded.bodies(2, kind="pull_request") == ["An old comment.", "An old review.", "An old remark."]


def test_a_review_does_not_undo_what_it_does_not_show(forge: Forge, pull: Thread, loaded: Mirrored) -> None:
    forge.merge(pull, sha="f" * 40)
    loaded.deliver(webhooks.thread(SITE, "closed", pull), api=False)
    forge.tick(60)
    loaded.deliver(webhooks.review(SITE, "submitted", forge.review(pull, body="late praise")), api=False)
    assert (loaded.pull(2)["state"], loaded.pull(2)["merge_commit"]) == ("merged", "f" * 40)
    assert loaded.bodies(2, kind="pull_request")[-1] == "late praise"


@pytest.mark.parametrize("received", ["when it was sent", "only now"])
def test_an_older_delivery_that_arrives_late_overwrites_nothing(
    received: str, forge: Forge, issue: Thread, pull: Thread, loaded: Mirrored
) -> None:
    review, comment = pull.the_pull().reviews[0], issue.comments[0]
    forge.edit_review(review, "old")
    forge.edit_comment(comment, "old")
    sent_at = forge.now
    late = [
        webhooks.thread(SITE, "edited", issue), webhooks.issue_comment(SITE, "edited", comment),
        webhooks.review(SITE, "edited", review), webhooks.thread(SITE, "edited", pull),
    ]  # fmt: skip
    forge.tick(60)
    forge.edit_review(review, "new")
    forge.edit_comment(comment, "new")
    forge.merge(pull)
    loaded.fetch()
    before, seq = loaded.threads(), loaded.last_seq()
    loaded.deliver(*late, api=False, at=sent_at if received == "when it was sent" else None)
    assert loaded.threads() == before and loaded.last_seq() == seq


def test_what_a_late_delivery_overwrote_all_the_same_is_put_right_by_the_next_look(
    forge: Forge, issue: Thread, loaded: Mirrored, tmp_path: Path
) -> None:
    forge.edit_thread(issue, title="old")
    late = webhooks.thread(SITE, "edited", issue)
    forge.edit_thread(issue, title="new")  # within the same second, which no time can tell
    loaded.fetch()
    loaded.deliver(late, api=False)
    loaded.fetch()
    assert loaded.issue(1)["title"] == "new"
    forge.tick(86_400)
    loaded.deliver(late, api=False)
    loaded.reconcile()
    assert loaded.issue(1)["title"] == "new"


def test_what_was_deleted_stays_deleted_although_late_news_of_it_come(
    forge: Forge, issue: Thread, pull: Thread, loaded: Mirrored
) -> None:
    comment, remark = issue.comments[0], pull.the_pull().review_comments[0]
    late = [webhooks.issue_comment(SITE, "edited", comment), webhooks.review_comment(SITE, "edited", remark)]
    forge.delete_comment(comment)
    forge.delete_review_comment(remark)
    loaded.deliver(
        webhooks.issue_comment(SITE, "deleted", comment), webhooks.review_comment(SITE, "deleted", remark), api=False
    )
    loaded.deliver(*late, api=False)
    assert loaded.bodies(1) == [] and "An old remark." not in loaded.bodies(2, kind="pull_request")
    late.append(webhooks.thread(SITE, "edited", issue))
    forge.delete_issue(issue)
    loaded.deliver(webhooks.thread(SITE, "deleted", issue), api=False)
    for api in (False, True):
        loaded.deliver(*late, api=api)
        assert loaded.settled()["issue 1"].deleted


def test_two_deliveries_of_one_second_are_told_apart_by_when_they_came(
    forge: Forge, app: Repository, mirrored: Mirrored
) -> None:
    issue = forge.open_issue(app)
    opened = webhooks.thread(SITE, "opened", issue)
    forge.label(issue, "bug")
    labeled = webhooks.thread(SITE, "labeled", issue)
    first, second = forge.now + timedelta(milliseconds=300), forge.now + timedelta(milliseconds=700)
    mirrored.apply(touch_of(labeled, second), touch_of(opened, first), api=False)
    assert mirrored.issue(1)["labels"] == ["bug"]
    mirrored.apply(touch_of(opened, first), api=False)
    assert mirrored.issue(1)["labels"] == ["bug"]


def test_one_touch_can_be_applied_to_the_mirrors_of_two_tenants(forge: Forge, pull: Thread, loaded: Mirrored) -> None:
    other = loaded.elsewhere(loaded.home)
    other.repository = {"tenant": "initech"}
    touch = touch_of(webhooks.review(SITE, "submitted", forge.review(pull, body="new")), forge.now)
    loaded.apply(touch, api=False)
    assert touch[0].resources[0].body["comments"] is None
    other.apply(touch, api=False)
    assert other.bodies(2, kind="pull_request") == ["new"]
    other.fetch()
    assert other.threads() == {**loaded.threads(), "pull_request 2": other.pull(2)}
