"""What a fetch finds, and what it costs: requests grow with what changed, and nothing that changed is missed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from rag_pipeline_tests.github_server.faults import Fault
from rag_pipeline_tests.github_server.generated import generate
from rag_pipeline_tests.github_server.model import Forge
from rag_pipeline_tests.github_server.nouns import Comment, Repository, Thread
from rag_pipeline_tests.github_server.server import GitHubServer
from rag_pipeline_tests.sources.github.mirrors import Mirrored, cold_load

LISTINGS = 5
"""Requests of every fetch: the repository, its issues, comments, review comments, and pull requests."""


@pytest.fixture
def pull(forge: Forge, app: Repository) -> Thread:
    """A pull request with a review and a remark."""
    pull = forge.open_pull_request(app)
    forge.review_comment(pull, "An old remark.", review=forge.review(pull, body="An old review."))
    return pull


@pytest.fixture
def loaded(mirrored: Mirrored, issue: Thread, pull: Thread) -> Mirrored:
    """The mirror with both in it, two hours ago."""
    mirrored.fetch()
    mirrored.server.forge.tick(7200)
    mirrored.fetch()
    mirrored.server.forge.tick(7200)
    return mirrored


# What it costs.


def test_a_first_load_takes_two_requests_a_pull_request_and_few_for_all_else(
    forge: Forge, tmp_path: Path, server: GitHubServer
) -> None:
    generate(forge, seed=1, full_name="acme/app", issues=150, pulls=60, comments=3, review_comments=4)
    repository = forge.repository("acme/app")
    mirrored = Mirrored(home=tmp_path, server=server)
    asked = mirrored.asked_by_fetch()
    reviews, files = server.count(r"/pulls/\d+/reviews"), server.count(r"/pulls/\d+/files")
    assert (reviews, files) == (60, 60)
    pages = sum(
        -(-len(each) // 99) for each in (repository.everything(), repository.comments(), repository.review_comments())
    )
    assert len(asked) - reviews - files <= 3 + pages
    assert len(mirrored.threads()) == 210


def test_nothing_new_takes_five_requests_and_changes_nothing(loaded: Mirrored, server: GitHubServer) -> None:
    before = loaded.last_seq()
    asked = loaded.asked_by_fetch()
    assert len(asked) == LISTINGS
    assert [request.status for request in asked] == [200, 304, 304, 304, 304]
    assert loaded.last_seq() == before


def test_an_empty_repository_is_read_as_one(app: Repository, mirrored: Mirrored) -> None:
    assert len(mirrored.asked_by_fetch()) == LISTINGS
    assert len(mirrored.asked_by_fetch()) == LISTINGS
    assert mirrored.threads() == {}


CHANGES: dict[str, tuple[Callable[[Forge, Thread, Thread], object], int]] = {
    "a new issue": (lambda forge, issue, _: forge.open_issue(issue.repository), 0),
    "a comment on an issue": (lambda forge, issue, _: forge.comment(issue, "new"), 0),
    "a title": (lambda forge, issue, _: forge.edit_thread(issue, title="new"), 0),
    "a label on an issue": (lambda forge, issue, _: forge.label(issue, "new"), 0),
    "an edited comment": (lambda forge, issue, _: forge.edit_comment(issue.comments[0], "new"), 0),
    "a deleted comment": (lambda forge, issue, _: forge.delete_comment(issue.comments[0]), 1),
    "a new pull request": (lambda forge, issue, _: forge.open_pull_request(issue.repository), 2),
    # Its reviews may have changed; nothing else tells.
    "a comment on a pull request": (lambda forge, _, pull: forge.comment(pull, "new"), 1),
    "a review": (lambda forge, _, pull: forge.review(pull, body="new"), 1),
    "a remark": (lambda forge, _, pull: forge.review_comment(pull, "new"), 1),
    "an edited review": (lambda forge, _, pull: forge.edit_review(pull.the_pull().reviews[0], "new"), 1),
    "a dismissed review": (lambda forge, _, pull: forge.dismiss_review(pull.the_pull().reviews[0]), 1),
    # It was the newest, and the listing lacks it.
    "a deleted remark": (lambda forge, _, pull: forge.delete_review_comment(pull.the_pull().review_comments[0]), 2),
    "a pushed head": (lambda forge, _, pull: forge.push(pull, files=[]), 2),
    "a merge": (lambda forge, _, pull: forge.merge(pull), 1),
}


@pytest.mark.parametrize("name", CHANGES)
def test_each_change_is_found_with_few_requests(
    name: str, forge: Forge, issue: Thread, pull: Thread, loaded: Mirrored, tmp_path: Path
) -> None:
    change, requests = CHANGES[name]
    before = loaded.last_seq()
    change(forge, issue, pull)
    assert len(loaded.asked_by_fetch()) == LISTINGS + requests
    assert loaded.last_seq() == before + 1
    assert loaded.threads() == cold_load(loaded, tmp_path / "cold")


def test_a_deleted_remark_that_is_not_the_newest_is_found_when_nothing_else_changed(
    forge: Forge, pull: Thread, loaded: Mirrored, tmp_path: Path
) -> None:
    forge.review_comment(pull, "newer", review=pull.the_pull().reviews[0])
    forge.tick(600)
    loaded.fetch()
    forge.delete_review_comment(pull.the_pull().review_comments[0])
    # Its reviews, its remarks, and the one that is missing by itself.
    assert len(loaded.asked_by_fetch()) == LISTINGS + 3
    assert loaded.threads() == cold_load(loaded, tmp_path / "cold")


def test_an_edit_that_does_not_move_its_thread_is_found(
    forge: Forge, issue: Thread, pull: Thread, loaded: Mirrored, tmp_path: Path
) -> None:
    forge.edit_comment(issue.comments[0], "edited silently", silently=True)
    forge.edit_review_comment(pull.the_pull().review_comments[0], "so was this", silently=True)
    forge.comment(issue, "a new one", silently=True)
    loaded.fetch()
    assert loaded.bodies(1) == ["edited silently", "a new one"]
    assert loaded.threads() == cold_load(loaded, tmp_path / "cold")


def test_the_state_of_a_thread_has_the_time_of_the_last_thing_said_in_it(
    forge: Forge, issue: Thread, loaded: Mirrored
) -> None:
    forge.edit_comment(issue.comments[0], "edited silently", silently=True)
    loaded.fetch()
    assert loaded.settled()["issue 1"].changed_at == issue.comments[0].updated_at


def test_a_comment_deleted_while_another_was_made_is_found(forge: Forge, issue: Thread, loaded: Mirrored) -> None:
    forge.delete_comment(issue.comments[0])
    forge.comment(issue, "instead")
    loaded.fetch()
    assert loaded.bodies(1) == ["instead"]


def test_a_comment_moved_here_with_its_issue_is_found_though_it_is_old(
    forge: Forge, issue: Thread, app: Repository, loaded: Mirrored
) -> None:
    other = forge.add_repository("acme/other")
    elsewhere = forge.open_issue(other, title="Moved")
    forge.comment(elsewhere, "Said long ago.")
    forge.tick(86_400)
    loaded.fetch()
    moved = forge.transfer_issue(elsewhere, app)
    loaded.fetch()
    assert loaded.bodies(moved.number) == ["Said long ago."]


# What happens while it reads.


def crowd(forge: Forge, app: Repository, count: int, *, seconds: float) -> list[Thread]:
    """So many issues, so many seconds apart."""
    made = []
    for number in range(count):
        made.append(forge.open_issue(app, title=f"issue {number}"))
        forge.tick(seconds)
    return made


@pytest.mark.parametrize("seconds", [0, 1], ids=["all in one second", "one a second"])
@pytest.mark.parametrize("page", [1, 2])
def test_an_item_that_changes_while_its_listing_is_read_hides_no_other(
    seconds: int, page: int, forge: Forge, app: Repository, mirrored: Mirrored, tmp_path: Path
) -> None:
    first = crowd(forge, app, 250, seconds=seconds)[0]
    forge.tick(60)
    edit = Fault(
        match=r"/issues\?", kind="act", after=page, action=lambda: forge.edit_thread(first, title="moved to the end")
    )
    mirrored.server.faults.add(edit)
    mirrored.fetch()
    assert edit.hits == 1
    assert len(mirrored.threads()) == 250
    mirrored.fetch()
    assert mirrored.issue(1)["title"] == "moved to the end"
    assert mirrored.threads() == cold_load(mirrored, tmp_path / "cold")


def test_many_changes_within_one_second_are_all_found(forge: Forge, app: Repository, mirrored: Mirrored) -> None:
    issues = crowd(forge, app, 30, seconds=1)
    mirrored.fetch()
    for number in range(330):
        forge.comment(issues[number % 30], f"comment {number}")
    mirrored.fetch()
    said = [body for number in range(1, 31) for body in mirrored.bodies(number)]
    assert sorted(said) == sorted(f"comment {number}" for number in range(330))


def test_a_pull_request_that_changes_while_all_are_loaded_is_read_again(
    forge: Forge, app: Repository, mirrored: Mirrored, tmp_path: Path
) -> None:
    pulls = [forge.open_pull_request(app, title=f"pull {number}") for number in range(120)]
    forge.tick(60)
    merge = Fault(match=r"/pulls\?.*page=2", kind="act", action=lambda: forge.merge(pulls[0]))
    mirrored.server.faults.add(merge)
    mirrored.fetch()
    forge.tick(7200)
    mirrored.fetch()
    assert merge.hits == 1
    assert mirrored.threads() == cold_load(mirrored, tmp_path / "cold")


def test_a_pull_request_opened_while_it_reads_is_whole(
    forge: Forge, app: Repository, mirrored: Mirrored, tmp_path: Path
) -> None:
    forge.open_issue(app)
    forge.open_pull_request(app)
    mirrored.server.faults.add(
        Fault(match=r"/issues/comments\?", kind="act", action=lambda: forge.review(forge.open_pull_request(app)))
    )
    mirrored.fetch()
    mirrored.fetch()
    assert set(mirrored.threads()) == {"issue 1", "pull_request 2", "pull_request 3"}
    assert mirrored.threads() == cold_load(mirrored, tmp_path / "cold")


def test_an_issue_deleted_while_it_reads_stops_nothing(
    forge: Forge, app: Repository, issue: Thread, pull: Thread, mirrored: Mirrored
) -> None:
    forge.comment(issue, "silently gone", silently=True)
    gone: Comment = issue.comments[1]
    mirrored.fetch()
    forge.tick(600)
    forge.delete_comment(gone)
    forge.comment(pull, "new")
    mirrored.server.faults.add(Fault(match=r"/issues/1/comments", kind="act", action=lambda: forge.delete_issue(issue)))
    report = mirrored.fetch()
    assert not report.stopped
    assert set(mirrored.threads()) == {"pull_request 2"}
    assert mirrored.bodies(2, kind="pull_request")[-1] == "new"


def test_what_was_said_in_an_issue_that_was_never_seen_waits_for_it_and_ends_with_it(
    forge: Forge, app: Repository, issue: Thread, mirrored: Mirrored
) -> None:
    made: list[Thread] = []

    def open_and_say() -> None:
        made.append(forge.open_issue(app))
        forge.comment(made[0], "hello")

    mirrored.server.faults.add(Fault(match=r"/issues/comments\?", kind="act", action=open_and_say))
    assert mirrored.fetch().waiting == 1
    forge.delete_issue(made[0])
    assert mirrored.fetch().waiting == 1
    mirrored.reconcile()
    assert mirrored.fetch().waiting == 0
    assert set(mirrored.threads()) == {"issue 1"}


def test_a_page_that_was_full_hides_no_page_after_it(
    forge: Forge, pull: Thread, mirrored: Mirrored, tmp_path: Path
) -> None:
    # GitHub's listings have 100 entries a page: the first page is the same before and after the 101st.
    for number in range(100 - len(pull.the_pull().reviews)):
        forge.review(pull, body=f"Review {number}.")
    mirrored.fetch()
    forge.tick(7200)
    forge.review(pull, body="One more.")
    mirrored.fetch()
    assert "One more." in str(mirrored.threads())
    assert mirrored.threads() == cold_load(mirrored, tmp_path / "cold")
