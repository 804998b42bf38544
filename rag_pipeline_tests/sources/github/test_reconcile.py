"""Reconciliation: what left no trace is found, and nothing is removed because a listing says too little."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from rag_pipeline.sources.github.resources import instant
from rag_pipeline_tests.github_server import shapes
from rag_pipeline_tests.github_server.faults import Fault
from rag_pipeline_tests.github_server.generated import generate
from rag_pipeline_tests.github_server.model import Forge
from rag_pipeline_tests.github_server.nouns import Repository
from rag_pipeline_tests.github_server.server import GitHubServer
from rag_pipeline_tests.sources.github.mirrors import Mirrored, cold_load


@pytest.fixture
def loaded(forge: Forge, app: Repository, mirrored: Mirrored) -> Mirrored:
    """30 issues with a comment each, 5 pull requests with a review and a remark each; all read two hours ago."""
    for number in range(30):
        forge.comment(forge.open_issue(app, title=f"issue {number}", labels=["bug"]), f"comment {number}")
    for number in range(5):
        pull = forge.open_pull_request(app, title=f"pull {number}")
        forge.review_comment(pull, "remark", review=forge.review(pull, body="review"))
    mirrored.fetch()
    forge.tick(7200)
    return mirrored


def delete_issue(forge: Forge, app: Repository, number: int) -> None:
    forge.delete_issue(app.threads[number])


def transfer(forge: Forge, app: Repository, number: int) -> None:
    forge.transfer_issue(app.threads[number], forge.add_repository("acme/elsewhere"))


def transfer_to_a_hidden_place(forge: Forge, app: Repository, number: int) -> None:
    forge.transfer_issue(app.threads[number], forge.add_repository("acme/hidden", private=True))


def convert(forge: Forge, app: Repository, number: int) -> None:
    forge.convert_to_discussion(app.threads[number])


# What is found.


@pytest.mark.parametrize("remove", [delete_issue, transfer, transfer_to_a_hidden_place, convert])
def test_an_issue_that_is_gone_becomes_a_tombstone(
    remove: Callable[[Forge, Repository, int], None], forge: Forge, app: Repository, loaded: Mirrored
) -> None:
    # The newest are missed by a fetch, too.
    forge.comment(app.threads[9], "newer")
    loaded.fetch()
    forge.tick(7200)
    loaded.fetch()
    remove(forge, app, 3)
    assert not loaded.fetch().settled
    report = loaded.reconcile()
    assert (report.removed_threads, report.removed_comments, report.withheld) == ([3], 0, [])
    found = loaded.settled()["issue 3"]
    assert found.deleted and instant(found.changed_at.timestamp()) == instant(forge.now.timestamp())
    assert len(loaded.threads()) == 34
    assert loaded.reconcile().removed_threads == []


def test_what_no_time_tells_is_found(forge: Forge, app: Repository, loaded: Mirrored, tmp_path: Path) -> None:
    pull = app.pulls()[0].the_pull()
    forge.delete_comment(app.threads[1].comments[0], silently=True)
    forge.delete_review_comment(pull.review_comments[0], silently=True)
    forge.edit_thread(app.threads[2], body="edited silently", silently=True)
    forge.push(app.pulls()[1], files=[], silently=True)
    forge.dismiss_review(app.pulls()[2].the_pull().reviews[0], silently=True)
    forge.rename_label(app, "bug", "defect")
    report = loaded.reconcile()
    assert report.removed_comments == 2
    assert loaded.issue(1)["entries"] == [] and loaded.issue(2)["body"] == "edited silently"
    assert loaded.issue(9)["labels"] == ["defect"]
    assert loaded.threads() == cold_load(loaded, tmp_path / "cold")


def test_what_a_mirror_was_told_wrongly_is_put_right(forge: Forge, app: Repository, loaded: Mirrored) -> None:
    before = loaded.threads()
    with loaded.mirror.open() as store:
        store.delete("issue", 1, number=1, at="2024")
        store.delete("review", app.pulls()[0].the_pull().reviews[0].id, number=31, at="2024")
        store.delete("comment", app.threads[2].comments[0].id, number=2, at="2024")
        for number in (1, 2, 31):
            store.touch(number)
    loaded.reconcile()
    assert loaded.threads() == before


def test_threads_that_only_the_index_knows_are_removed_or_kept_as_github_says(
    forge: Forge, app: Repository, loaded: Mirrored
) -> None:
    report = loaded.reconcile(indexed=[("issue", 1), ("issue", 99), ("pull_request", 98), ("pull_request", 31)])
    assert report.removed_threads == [98, 99]
    settled = loaded.settled()
    assert settled["issue 99"].deleted and settled["pull_request 98"].deleted and len(loaded.threads()) == 35


def test_the_index_is_told_again_of_what_it_still_shows(forge: Forge, app: Repository, loaded: Mirrored) -> None:
    for number in range(1, 16):
        forge.delete_issue(app.threads[number])
    assert len(loaded.reconcile(confirmed=True).removed_threads) == 15
    before = loaded.last_seq()
    loaded.server.clear_requests()
    report = loaded.reconcile(indexed=[("issue", number) for number in range(1, 31)])
    assert (report.withheld, report.removed_threads) == ([], [])
    assert loaded.server.count(r"/issues/\d+$") == 0
    with loaded.mirror.open() as store:
        assert [found.number for found in store.threads(after=before)] == list(range(1, 16))


def test_a_first_reconciliation_without_a_fetch_reads_everything(
    forge: Forge, app: Repository, loaded: Mirrored, tmp_path: Path
) -> None:
    fresh = loaded.elsewhere(tmp_path / "fresh")
    assert fresh.reconcile().listed == {"issue": 35, "comment": 30, "review_comment": 5}
    assert fresh.threads() == loaded.threads()


# What is kept.


def test_what_is_made_while_it_lists_is_kept(forge: Forge, app: Repository, loaded: Mirrored, tmp_path: Path) -> None:
    for address in (r"/issues\?", r"/issues/comments\?", r"/pulls/comments\?", r"/pulls\?", "/pulls/31/reviews"):
        loaded.server.faults.add(
            Fault(match=address, kind="act", action=lambda: forge.comment(forge.open_issue(app, title="just now")))
        )
    report = loaded.reconcile()
    assert (report.removed_threads, report.removed_comments) == ([], 0)
    loaded.fetch()
    assert len(loaded.threads()) == 40
    assert loaded.threads() == cold_load(loaded, tmp_path / "cold")


def test_an_issue_deleted_while_it_lists_does_not_make_another_look_missing(
    forge: Forge, app: Repository, mirrored: Mirrored
) -> None:
    for number in range(230):
        forge.comment(forge.open_issue(app, title=str(number)))
    mirrored.fetch()
    deletion = Fault(match=r"/issues\?.*page=2", kind="act", action=lambda: forge.delete_issue(app.threads[1]))
    mirrored.server.faults.add(deletion)
    report = mirrored.reconcile()
    # The first of the second page had slipped onto the first, which was read already.
    assert deletion.hits == 1 and report.listed["issue"] == 229
    # It was noticed by its comment, which was missing too.
    assert report.removed_threads == [1]
    assert mirrored.settled()["issue 1"].deleted and len(mirrored.threads()) == 229


@pytest.mark.parametrize(
    "address", [r"/issues\?", r"/issues/comments\?", r"/pulls/comments\?", r"/pulls\?", "/reviews"]
)
@pytest.mark.parametrize("what", ["empty", "first page only", "broken"])
def test_a_listing_that_breaks_removes_nothing(address: str, what: str, loaded: Mirrored) -> None:
    before = loaded.threads()
    if what == "broken":
        loaded.server.faults.add(Fault(match=address, kind="truncated", times=None))
    elif what == "empty":
        loaded.server.faults.add(Fault(match=address, kind="body", body=b"[]", times=None))
    else:
        some = [
            shapes.issue(loaded.server.site, thread)
            for thread in loaded.server.forge.repository("acme/app").issues()[:9]
        ]
        body = json.dumps(some if address == r"/issues\?" else []).encode()
        loaded.server.faults.add(Fault(match=address, kind="body", body=body, times=None))
    report = loaded.reconcile()
    assert (report.removed_threads, report.removed_comments) == ([], 0)
    assert loaded.threads() == before
    loaded.server.faults.clear()
    loaded.reconcile()
    assert loaded.threads() == before


def test_what_is_missing_is_asked_for_by_itself_before_it_is_removed(
    forge: Forge, app: Repository, loaded: Mirrored
) -> None:
    forge.delete_issue(app.threads[7])
    few = [shapes.issue(loaded.server.site, thread) for thread in app.everything() if thread.number not in (5, 6)]
    loaded.server.faults.add(Fault(match=r"/issues\?", kind="body", body=json.dumps(few).encode()))
    loaded.server.clear_requests()
    assert loaded.reconcile().removed_threads == [7]
    assert loaded.server.count(r"/issues/\d+$") == 3


# Removals that are too large to be believed.


def test_a_large_removal_is_withheld_and_done_when_it_is_confirmed(
    forge: Forge, app: Repository, loaded: Mirrored
) -> None:
    for number in range(1, 13):
        forge.delete_issue(app.threads[number])
    before = loaded.threads()
    report = loaded.reconcile()
    assert list(map(str, report.withheld)) == ["12 of 35 issues and pull requests are missing from GitHub's listing"]
    assert (report.removed_threads, loaded.threads()) == ([], before)
    loaded.server.clear_requests()
    report = loaded.reconcile(confirmed=True)
    assert (report.removed_threads, report.withheld) == (list(range(1, 13)), [])
    assert loaded.server.count(r"/issues/\d+$") == 12
    # Their comments went with them: nobody asks for each.
    assert report.removed_comments == 0 and loaded.server.count(r"/comments/\d+$") == 0
    assert len(loaded.threads()) == 23


def test_a_confirmed_removal_keeps_what_is_there_after_all(forge: Forge, app: Repository, loaded: Mirrored) -> None:
    forge.delete_issue(app.threads[1])
    loaded.server.faults.add(Fault(match=r"/issues\?", kind="body", body=b"[]"))
    assert loaded.reconcile(confirmed=True).removed_threads == [1]
    assert len(loaded.threads()) == 34


@pytest.mark.parametrize(
    ("items", "share", "removed"), [(10, 0.1, 8), (4, 0.5, 8), (4, 0.1, 0), (0, 0, 0), (8, 0, 8), (0, 1, 8)]
)
def test_a_removal_is_withheld_when_it_is_over_both_limits(
    items: int, share: float, removed: int, forge: Forge, app: Repository, loaded: Mirrored
) -> None:
    for number in range(1, 9):
        forge.delete_issue(app.threads[number])
    report = loaded.reconcile(max_removed_items=items, max_removed_share=share)
    assert (len(report.removed_threads), bool(report.withheld)) == (removed, removed == 0)


def test_comments_that_are_missing_with_their_issue_are_not_a_removal_of_their_own(
    forge: Forge, app: Repository, loaded: Mirrored
) -> None:
    for number in range(25):
        forge.comment(app.threads[30], f"more {number}")
    loaded.fetch()
    forge.delete_issue(app.threads[30])
    report = loaded.reconcile()
    assert (report.removed_threads, report.withheld) == ([30], [])
    loaded.server.clear_requests()
    assert loaded.reconcile().withheld == []
    assert loaded.server.count(r"/comments/\d+$") == 0


def test_remarks_have_a_limit_of_their_own(forge: Forge, app: Repository, loaded: Mirrored) -> None:
    pull = app.pulls()[0]
    for number in range(12):
        forge.review_comment(pull, f"more {number}")
    loaded.fetch()
    forge.tick(7200)
    loaded.fetch()
    for remark in list(pull.the_pull().review_comments[1:]):
        forge.delete_review_comment(remark, silently=True)
    before = loaded.threads()
    report = loaded.reconcile()
    assert list(map(str, report.withheld)) == ["12 of 17 review comments are missing from GitHub's listing"]
    assert loaded.threads() == before
    assert loaded.reconcile(confirmed=True).removed_comments == 12
    assert [entry["type"] for entry in loaded.pull(31)["entries"]].count("review_comment") == 1


def test_comments_that_github_itself_counts_as_gone_are_under_the_guard(
    forge: Forge, app: Repository, loaded: Mirrored
) -> None:
    before = loaded.threads()
    for number in range(1, 13):
        forge.delete_comment(app.threads[number].comments[0], silently=True)
    assert list(map(str, loaded.reconcile().withheld)) == ["12 of 30 comments are missing from GitHub's listing"]
    assert {n: t["entries"] for n, t in loaded.threads().items()} == {n: t["entries"] for n, t in before.items()}
    assert loaded.reconcile(confirmed=True).removed_comments == 12
    assert [loaded.bodies(number) for number in range(1, 13)] == [[]] * 12


# What it costs, and what interrupts it.


def test_a_second_reconciliation_with_nothing_new_is_mostly_not_modified(
    forge: Forge, tmp_path: Path, server: GitHubServer
) -> None:
    generate(forge, seed=3, full_name="acme/app", issues=220, pulls=20, comments=1)
    mirrored = Mirrored(home=tmp_path, server=server)
    mirrored.fetch()
    mirrored.reconcile()
    server.clear_requests()
    before = mirrored.last_seq()
    mirrored.reconcile()
    repository = forge.repository("acme/app")
    pages = sum(
        -(-len(found) // 100)
        for found in (repository.everything(), repository.comments(), repository.review_comments(), repository.pulls())
    )
    assert server.count() == 1 + pages + 20
    assert server.count(status=304) == pages + 20
    assert mirrored.last_seq() == before


def test_a_reconciliation_that_the_quota_ends_goes_on_the_next_time(
    forge: Forge, app: Repository, loaded: Mirrored, tmp_path: Path
) -> None:
    forge.delete_issue(app.threads[3])
    forge.edit_review(app.pulls()[4].the_pull().reviews[0], "edited silently", silently=True)
    loaded.github = {"quota_share_left": 0}
    loaded.server.quota.limit = loaded.server.quota.remaining = 4
    stopped = 0
    while loaded.reconcile().fetched.stopped:
        stopped += 1
        assert stopped < 10
        loaded.server.forge.tick(3700)
    assert stopped >= 1
    assert loaded.threads() == cold_load_with_quota(loaded, tmp_path)


def cold_load_with_quota(mirrored: Mirrored, tmp_path: Path) -> dict[str, object]:
    mirrored.server.quota.limit = mirrored.server.quota.remaining = 1000
    return cold_load(mirrored, tmp_path / "cold")


def test_reviews_are_swept_on_from_where_the_last_sweep_ended(forge: Forge, app: Repository, loaded: Mirrored) -> None:
    loaded.server.faults.add(Fault(match="/pulls/33/reviews", kind="primary", seconds=3600))
    assert loaded.reconcile().fetched.stopped
    loaded.server.clear_requests()
    assert not loaded.reconcile().fetched.stopped
    assert [request.path[-10:] for request in loaded.server.requests if "reviews" in request.path] == [
        "33/reviews", "34/reviews", "35/reviews",
    ]  # fmt: skip
