"""Whole threads: everything that was said, in the order in which it happened, however long it is."""

from __future__ import annotations

import json

from rag_pipeline_tests.github_server import pull_shapes
from rag_pipeline_tests.github_server.faults import Fault
from rag_pipeline_tests.github_server.model import Forge
from rag_pipeline_tests.github_server.nouns import ChangedFile, Repository
from rag_pipeline_tests.github_server.server import GitHubServer
from rag_pipeline_tests.sources.github.mirrors import Mirrored

GHOST = {"login": "ghost", "bot": False}


def test_an_issue_is_read_with_all_that_belongs_to_it(forge: Forge, app: Repository, mirrored: Mirrored) -> None:
    issue = forge.open_issue(
        app, title="Größe fehlt", body="See other/place#3 and #2.", labels=["bug", "area: index"], milestone="v1.0",
        assignees=["grace"],
    )  # fmt: skip
    forge.tick(60)
    comment = forge.comment(issue, "Same here, as in #9.", author="dependabot[bot]")
    forge.tick(60)
    forge.close(issue, state_reason="not_planned")
    mirrored.fetch()
    assert mirrored.issue(1) == {
        "kind": "issue", "number": 1, "reference": "acme/app#1", "url": "https://github.com/acme/app/issues/1",
        "title": "Größe fehlt", "body": "See other/place#3 and #2.", "state": "closed", "state_reason": "not_planned",
        "author": {"login": "ada", "bot": False}, "labels": ["area: index", "bug"], "milestone": "v1.0",
        "assignees": ["grace"], "created_at": "2024-05-01T12:00:00Z", "updated_at": "2024-05-01T12:02:00Z",
        "closed_at": "2024-05-01T12:02:00Z", "links": ["other/place#3", "acme/app#2", "acme/app#9"],
        "entries": [
            {
                "type": "comment", "id": comment.id, "author": {"login": "dependabot[bot]", "bot": True},
                "body": "Same here, as in #9.", "created_at": "2024-05-01T12:01:00Z",
                "updated_at": "2024-05-01T12:01:00Z", "anchor": f"#issuecomment-{comment.id}",
            }
        ],
    }  # fmt: skip


def test_a_pull_request_is_read_with_all_that_belongs_to_it(forge: Forge, app: Repository, mirrored: Mirrored) -> None:
    renamed = ChangedFile(filename="new.py", status="renamed", previous_filename="old.py", additions=3, deletions=2)
    pull = forge.open_pull_request(
        app, body="Fixes #7 <!-- fixes #8 -->, see #9", head="fix", head_repository="grace/app", files=[renamed]
    )
    review = forge.review(pull, "CHANGES_REQUESTED", body="Please split it.")
    remark = forge.review_comment(pull, "Here?", path="new.py", line=12, start_line=10, review=review)
    reply = forge.review_comment(pull, "Done.", in_reply_to=remark, author=None, review=review)
    forge.tick(60)
    forge.merge(pull, sha="f" * 40)
    mirrored.fetch()
    found = mirrored.pull(1)
    assert (found["state"], found["merged_at"], found["merge_commit"]) == ("merged", "2024-05-01T12:01:00Z", "f" * 40)
    assert (found["base"]["ref"], found["base"]["repository"]) == ("main", "acme/app")
    assert (found["head"]["ref"], found["head"]["repository"]) == ("fix", "grace/app")
    assert (found["closes"], found["links"], found["draft"]) == (["acme/app#7"], ["acme/app#9"], False)
    assert found["files"] == [
        {"path": "new.py", "status": "renamed", "previous_path": "old.py", "additions": 3, "deletions": 2}
    ]
    said, first, second = found["entries"]
    assert (said["type"], said["verdict"], said["body"]) == ("review", "changes_requested", "Please split it.")
    assert (first["path"], first["start_line"], first["line"], first["review"]) == ("new.py", 10, 12, review.id)
    assert first["diff_hunk"].startswith("@@ ") and first["reply_to"] is None
    assert (second["reply_to"], second["author"], second["id"]) == (remark.id, GHOST, reply.id)


def test_nothing_is_cut_off_at_a_page(forge: Forge, app: Repository, mirrored: Mirrored) -> None:
    pull = forge.open_pull_request(app, files=[ChangedFile(filename=f"{number:03}.py") for number in range(250)])
    for number in range(101):
        forge.comment(pull, f"comment {number}")
        forge.review(pull, body=f"review {number}")
    review = forge.review(pull, body="")
    for number in range(230):
        forge.review_comment(pull, f"remark {number}", review=review)
    for number in range(130):
        forge.open_issue(app, title=f"issue {number}")
    mirrored.fetch()
    found = mirrored.pull(1)
    assert len(found["files"]) == 250
    said = [entry["body"] for entry in found["entries"]]
    for kind, count in (("comment", 101), ("review", 101), ("remark", 230)):
        assert [body for body in said if body.startswith(kind)] == [f"{kind} {number}" for number in range(count)]
    assert len(mirrored.threads()) == 131


def test_what_was_said_comes_in_the_order_in_which_it_happened(
    forge: Forge, app: Repository, mirrored: Mirrored
) -> None:
    pull = forge.open_pull_request(app)
    for say in ("comment", "review", "remark", "review", "comment"):
        forge.tick(60)
        if say == "comment":
            forge.comment(pull, say)
        elif say == "review":
            forge.review(pull, "APPROVED", body=say)
        else:
            forge.review_comment(pull, say)
    mirrored.fetch()
    assert mirrored.bodies(1, kind="pull_request") == ["comment", "review", "", "remark", "review", "comment"]


def test_texts_of_a_megabyte_and_threads_of_many_are_whole(forge: Forge, app: Repository, mirrored: Mirrored) -> None:
    issue = forge.open_issue(app, body="B" * 60_000)
    huge = "山`#1 <!-- " * 100_000
    forge.comment(issue, huge)
    for number in range(40):
        forge.comment(issue, f"{number} " + "lorem ipsum " * 5_000)
    mirrored.fetch()
    said = mirrored.bodies(1)
    assert said[0] == huge and len(said) == 41
    assert sum(map(len, said)) > 3_000_000


def test_missing_texts_and_authors_are_empty_ones_and_ghosts(forge: Forge, app: Repository, mirrored: Mirrored) -> None:
    issue, pull = forge.open_issue(app, body=None, author=None), forge.open_pull_request(app, body=None, author=None)
    forge.comment(issue, None, author=None)
    forge.review(pull, body=None, author=None)
    forge.review_comment(pull, None, author=None)
    report = mirrored.fetch()
    assert report.malformed == []
    for thread in mirrored.threads().values():
        assert thread["body"] == "" and thread["author"] == GHOST
        assert thread["entries"] and all(entry["author"] == GHOST for entry in thread["entries"])


def test_a_pull_request_of_a_deleted_fork_is_read(forge: Forge, app: Repository, mirrored: Mirrored) -> None:
    forge.open_pull_request(app, head="gone", head_repository=None)
    mirrored.fetch()
    assert mirrored.pull(1)["head"]["repository"] is None


def test_reviews_that_are_still_drafts_are_not_shown(
    forge: Forge, app: Repository, server: GitHubServer, mirrored: Mirrored
) -> None:
    pull = forge.open_pull_request(app)
    shown, draft = forge.review(pull, body="shown"), forge.review(pull, "PENDING", body="draft")
    mine = [pull_shapes.review(server.site, shown), pull_shapes.review(server.site, draft) | {"submitted_at": None}]
    # GitHub shows its author a draft, and that may be the owner of our token.
    server.faults.add(Fault(match="/pulls/1/reviews", kind="body", body=json.dumps(mine).encode()))
    mirrored.fetch()
    assert mirrored.bodies(1, kind="pull_request") == ["shown"]
    forge.submit_review(draft)
    mirrored.fetch()
    assert mirrored.bodies(1, kind="pull_request") == ["shown", "draft"]


def test_the_same_resources_give_the_same_bytes_whatever_way_they_came(
    forge: Forge, app: Repository, mirrored: Mirrored
) -> None:
    issue, pull = forge.open_issue(app, labels=["b", "a"]), forge.open_pull_request(app)
    mirrored.fetch()
    forge.comment(issue, "one")
    forge.review(pull, body="two")
    mirrored.fetch()
    cold = mirrored.elsewhere(mirrored.home / "cold")
    cold.fetch()
    digests = [{key: found.digest for key, found in each.settled().items()} for each in (mirrored, cold)]
    assert digests[0] == digests[1]


def test_an_issue_that_was_made_a_pull_request_is_no_issue_any_more(
    forge: Forge, app: Repository, mirrored: Mirrored
) -> None:
    issue = forge.open_issue(app, title="Do it")
    mirrored.fetch()
    issue.pull = forge.open_pull_request(forge.add_repository("acme/other")).pull
    forge.edit_thread(issue, body="Done")
    mirrored.fetch()
    assert set(mirrored.threads()) == {"pull_request 1"}
    assert mirrored.settled()["issue 1"].deleted
