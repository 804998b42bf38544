"""The server does what GitHub's REST documentation says, and what recorded traffic shows where that is silent."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

from rag_pipeline_tests.github_server.client import Client
from rag_pipeline_tests.github_server.model import Forge
from rag_pipeline_tests.github_server.nouns import ChangedFile, Repository
from rag_pipeline_tests.github_server.server import GitHubServer

AT = "/repos/acme/rocket"


def open_issues(forge: Forge, repository: Repository, count: int) -> None:
    """As many issues, one a minute."""
    for number in range(1, count + 1):
        forge.open_issue(repository, title=f"Issue {number}")
        forge.tick(60)


# Listings


def test_issues_are_listed_open_only_newest_first_thirty_a_page(
    forge: Forge, rocket: Repository, client: Client
) -> None:
    open_issues(forge, rocket, 33)
    forge.close(rocket.threads[33])
    assert client.get(f"{AT}/issues").numbers == list(range(32, 2, -1))


def test_issues_hold_pull_requests_too_and_say_so(forge: Forge, rocket: Repository, client: Client) -> None:
    issue, pull = forge.open_issue(rocket), forge.open_pull_request(rocket)
    as_pull, as_issue = client.get(f"{AT}/issues").json
    assert as_pull["number"] == pull.number
    assert as_pull["pull_request"]["url"].endswith("/repos/acme/rocket/pulls/2")
    assert as_pull["id"] != client.get(f"{AT}/pulls/2").json["id"]
    assert as_issue["number"] == issue.number
    assert "pull_request" not in as_issue


@pytest.mark.parametrize(("state", "expected"), [("open", [3, 1]), ("closed", [2]), ("all", [3, 2, 1])])
def test_issues_by_state(forge: Forge, rocket: Repository, client: Client, state: str, expected: list[int]) -> None:
    open_issues(forge, rocket, 3)
    forge.close(rocket.threads[2], state_reason="not_planned")
    assert client.get(f"{AT}/issues?state={state}").numbers == expected
    assert client.get(f"{AT}/issues/2").json["state_reason"] == "not_planned"


def test_since_takes_what_was_updated_in_that_second_or_later(forge: Forge, rocket: Repository, client: Client) -> None:
    open_issues(forge, rocket, 3)
    second = rocket.threads[2].updated_at
    assert client.get(f"{AT}/issues?since={second:%Y-%m-%dT%H:%M:%SZ}").numbers == [3, 2]
    assert client.get(f"{AT}/issues?since={second + timedelta(seconds=1):%Y-%m-%dT%H:%M:%SZ}").numbers == [3]
    assert client.get(f"{AT}/issues?since=yesterday").status == 422


def test_issues_are_sorted_by_update_or_comments_on_request(forge: Forge, rocket: Repository, client: Client) -> None:
    open_issues(forge, rocket, 3)
    forge.comment(rocket.threads[1])
    assert client.get(f"{AT}/issues?sort=updated").numbers == [1, 3, 2]
    assert client.get(f"{AT}/issues?sort=updated&direction=asc").numbers == [2, 3, 1]
    assert client.get(f"{AT}/issues?sort=comments").numbers == [1, 3, 2]


def test_pull_requests_fall_when_sorted_by_creation_and_rise_otherwise(
    forge: Forge, rocket: Repository, client: Client
) -> None:
    for _ in range(3):
        forge.open_pull_request(rocket)
        forge.tick(60)
    assert client.get(f"{AT}/pulls").numbers == [3, 2, 1]
    assert client.get(f"{AT}/pulls?sort=updated").numbers == [1, 2, 3]


def test_comments_of_a_repository_rise_by_id_and_ignore_a_direction_without_sort(
    forge: Forge, rocket: Repository, client: Client
) -> None:
    open_issues(forge, rocket, 2)
    first, second = forge.comment(rocket.threads[2]), forge.comment(rocket.threads[1])
    forge.tick(60)
    forge.edit_comment(first, "Edited.")

    def ids(query: str) -> list[int]:
        return [each["id"] for each in client.get(f"{AT}/issues/comments{query}").json]

    assert ids("?direction=desc") == [first.id, second.id]
    assert ids("?sort=updated&direction=asc") == [second.id, first.id]
    assert ids(f"?since={forge.now:%Y-%m-%dT%H:%M:%SZ}") == [first.id]


def test_the_last_two_links_are_missing_on_the_last_page(forge: Forge, rocket: Repository, client: Client) -> None:
    # The header is compared to recorded traffic: @octokit/fixtures, paginate-issues.
    open_issues(forge, rocket, 13)
    root = client.get(f"{AT}").json["url"].removesuffix(AT) + f"/repositories/{rocket.id}/issues?per_page=3"
    middle, last = client.get(f"{AT}/issues?per_page=3&page=2"), client.get(f"{AT}/issues?page=5&per_page=3")
    assert middle.headers["link"] == (
        f'<{root}&page=1>; rel="prev", <{root}&page=3>; rel="next", <{root}&page=5>; rel="last", '
        f'<{root}&page=1>; rel="first"'
    )
    assert last.headers["link"] == f'<{root}&page=4>; rel="prev", <{root}&page=1>; rel="first"'
    assert "link" not in client.get(f"{AT}/issues?per_page=13").headers
    assert [each["number"] for each in client.all(f"{AT}/issues?per_page=4")] == list(range(13, 0, -1))


def test_a_page_holds_no_more_than_a_hundred(forge: Forge, rocket: Repository, client: Client) -> None:
    open_issues(forge, rocket, 101)
    assert len(client.get(f"{AT}/issues?per_page=1000").json) == 100


def test_comments_of_a_large_repository_end_at_the_page_limit(
    forge: Forge, rocket: Repository, github: GitHubServer, client: Client
) -> None:
    thread = forge.open_issue(rocket)
    for _ in range(5):
        forge.comment(thread)
    github.limits.pages = 2
    got = client.get(f"{AT}/issues/comments?per_page=2")
    assert "page=2" in got.links["last"]
    assert "pagination is limited" in client.get(f"{AT}/issues/comments?per_page=2&page=3").json["message"]
    assert len(client.all(f"{AT}/issues/1/comments?per_page=2")) == 5


def test_issues_of_a_large_repository_are_paged_by_cursor(
    forge: Forge, rocket: Repository, github: GitHubServer, client: Client
) -> None:
    open_issues(forge, rocket, 7)
    github.limits.cursors = True
    first = client.get(f"{AT}/issues?per_page=3")
    assert first.links.keys() == {"next"}
    forge.delete_issue(rocket.threads[6])
    # A cursor holds its place when something before it goes; a page number does not.
    assert client.get(first.links["next"]).numbers == [4, 3, 2]
    assert client.get(client.get(first.links["next"]).links["prev"]).numbers == [7, 5]
    assert client.get(f"{AT}/issues?per_page=3&page=2").status == 422


# Things


def test_a_pull_request_alone_says_more_than_in_a_list(forge: Forge, rocket: Repository, client: Client) -> None:
    files = [ChangedFile(filename="a.py", additions=3, deletions=1), ChangedFile(filename="b.png", patch=None)]
    pull = forge.open_pull_request(rocket, files=files, draft=True)
    (listed,), alone = client.get(f"{AT}/pulls").json, client.get(f"{AT}/pulls/1").json
    assert "merged" not in listed
    assert alone["merged"] is False
    assert (alone["additions"], alone["deletions"], alone["changed_files"], alone["draft"]) == (4, 1, 2, True)
    forge.merge(pull, by="grace")
    alone = client.get(f"{AT}/pulls/1").json
    assert (alone["state"], alone["merged"], alone["merged_by"]["login"]) == ("closed", True, "grace")
    assert alone["base"]["repo"]["full_name"] == "acme/rocket"
    with_patch, without = client.get(f"{AT}/pulls/1/files").json
    assert (with_patch["changes"], "patch" in with_patch, "patch" in without) == (4, True, False)


def test_reviews_have_no_update_time_and_review_comments_know_their_place(
    forge: Forge, rocket: Repository, client: Client
) -> None:
    pull = forge.open_pull_request(rocket)
    review = forge.review(pull, "APPROVED", body=None)
    comment = forge.review_comment(pull, "Why?", path="a.py", line=7, review=review)
    reply = forge.review_comment(pull, "Because.", in_reply_to=forge.review_comment(pull, in_reply_to=comment))
    shown = client.get(f"{AT}/pulls/1/reviews").json
    assert [each["state"] for each in shown] == ["APPROVED", "COMMENTED", "COMMENTED"]
    assert "updated_at" not in shown[0]
    assert shown[0]["html_url"].endswith(f"/pull/1#pullrequestreview-{review.id}")
    first, _, last = client.get(f"{AT}/pulls/comments").json
    assert "in_reply_to_id" not in first
    assert (last["id"], last["in_reply_to_id"], last["path"], last["line"]) == (reply.id, comment.id, "a.py", 7)
    assert last["html_url"].endswith(f"/pull/1#discussion_r{reply.id}")
    forge.push(pull, outdates=[comment])
    assert client.get(f"{AT}/pulls/comments/{comment.id}").json["line"] is None
    assert client.get(f"{AT}/pulls/comments/{comment.id}").json["original_line"] == 7


def test_a_pending_review_is_invisible_and_its_comments_appear_with_old_ids(
    forge: Forge, rocket: Repository, client: Client
) -> None:
    pull = forge.open_pull_request(rocket)
    before = forge.now
    draft = forge.review(pull, "PENDING")
    early = forge.review_comment(pull, review=draft)
    forge.tick(600)
    late = forge.review_comment(pull)
    assert [each["id"] for each in client.get(f"{AT}/pulls/comments").json] == [late.id]
    forge.tick(600)
    forge.submit_review(draft, "COMMENTED")
    shown = client.get(f"{AT}/pulls/comments").json
    assert [each["id"] for each in shown] == [early.id, late.id]
    assert shown[0]["created_at"] == f"{before:%Y-%m-%dT%H:%M:%SZ}"
    assert shown[0]["updated_at"] == f"{forge.now:%Y-%m-%dT%H:%M:%SZ}"


def test_what_is_said_in_a_thread_moves_its_update_time_unless_silent(
    forge: Forge, rocket: Repository, client: Client
) -> None:
    issue = forge.open_issue(rocket, body=None, author=None)
    forge.tick(60)
    comment = forge.comment(issue, author="dependabot[bot]")
    opened = client.get(f"{AT}/issues/1").json
    assert (opened["user"], opened["body"], opened["comments"]) == (None, None, 1)
    assert opened["updated_at"] == f"{forge.now:%Y-%m-%dT%H:%M:%SZ}"
    assert client.get(f"{AT}/issues/comments/{comment.id}").json["user"]["type"] == "Bot"
    forge.tick(60)
    forge.edit_comment(comment, "Edited.", silently=True)
    assert client.get(f"{AT}/issues/1").json["updated_at"] == opened["updated_at"]
    assert client.get(f"{AT}/issues/comments/{comment.id}").json["updated_at"] != opened["updated_at"]
    forge.delete_comment(comment)
    assert client.get(f"{AT}/issues/1").json["updated_at"] != opened["updated_at"]
    assert client.get(f"{AT}/issues/comments/{comment.id}").status == 404


# Moved and gone


def test_a_renamed_repository_redirects_to_its_address_by_id(forge: Forge, rocket: Repository, client: Client) -> None:
    open_issues(forge, rocket, 1)
    forge.rename_repository(rocket, "acme/shuttle")
    got = client.get(f"{AT}/issues?state=all&per_page=5")
    assert got.status == 301
    assert got.json["message"] == "Moved Permanently"
    assert got.headers["location"].endswith(f"/repositories/{rocket.id}/issues?state=all&per_page=5")
    assert client.get(got.headers["location"]).numbers == [1]
    assert client.get("/repos/ACME/Shuttle/issues/1").status == 200
    again = forge.add_repository("acme/rocket")
    assert client.get(f"{AT}/issues").json == []
    forge.delete_repository(again)
    assert client.get(f"{AT}/issues").status == 404


def test_a_deleted_issue_is_gone_and_an_unknown_one_not_found(forge: Forge, rocket: Repository, client: Client) -> None:
    open_issues(forge, rocket, 2)
    comment = forge.comment(rocket.threads[1])
    forge.delete_issue(rocket.threads[1])
    forge.convert_to_discussion(rocket.threads[2])
    assert client.get(f"{AT}/issues/1").status == 410
    assert client.get(f"{AT}/issues/1/comments").status == 410
    assert client.get(f"{AT}/issues/2").json["message"] == "This issue was deleted"
    assert client.get(f"{AT}/issues/comments/{comment.id}").status == 404
    missing = client.get(f"{AT}/issues/3")
    assert (missing.status, missing.json["message"]) == (404, "Not Found")
    assert missing.json["documentation_url"].startswith("https://docs.github.com/rest/issues")
    assert forge.open_issue(rocket).number == 3


def test_a_transferred_issue_redirects_and_its_comments_do_not(
    forge: Forge, rocket: Repository, client: Client, member: Client
) -> None:
    open_issues(forge, rocket, 1)
    forge.comment(rocket.threads[1], "Kept.")
    engine = forge.add_repository("acme/engine")
    moved = forge.transfer_issue(rocket.threads[1], engine)
    got = client.get(f"{AT}/issues/1")
    assert (got.status, client.get(f"{AT}/issues/1/comments").status) == (301, 404)
    assert got.headers["location"].endswith(f"/repositories/{engine.id}/issues/{moved.number}")
    assert [each["body"] for each in client.get(f"/repos/acme/engine/issues/{moved.number}/comments").json] == ["Kept."]
    engine.private = True
    assert (client.get(f"{AT}/issues/1").status, member.get(f"{AT}/issues/1").status) == (404, 301)


def test_an_issue_is_no_pull_request(forge: Forge, rocket: Repository, client: Client) -> None:
    open_issues(forge, rocket, 1)
    assert client.get(f"{AT}/pulls/1").status == 404
    assert client.get(f"{AT}/nothing").status == 404
    assert client.request("POST", f"{AT}/issues", body={}).status == 404


def test_addresses_have_the_enterprise_prefix(forge: Forge, rocket: Repository) -> None:
    open_issues(forge, rocket, 2)
    with GitHubServer(forge, prefix="/api/v3") as server:
        client = Client(server)
        got = client.get(f"{AT}/issues?per_page=1")
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/api/v3/repositories/\d+/issues\?.*", got.links["next"])
        assert client.get(got.links["next"]).numbers == [1]
        assert got.json[0]["url"] == f"{server.url}/repos/acme/rocket/issues/2"
        assert client.get(server.url.removesuffix("/api/v3") + AT).status == 404
        assert server.count(f"{AT}/issues") == 1
        client.close()
