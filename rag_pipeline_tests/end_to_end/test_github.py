"""From GitHub to index, through Dagster: whole threads, cost follows change, what vanishes there leaves the index."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

import pytest

from rag_pipeline.retrieval.query import SearchQuery
from rag_pipeline_tests.end_to_end.conftest import FIRST_DAY, indexing
from rag_pipeline_tests.end_to_end.installation import Installation
from rag_pipeline_tests.github_server import webhooks
from rag_pipeline_tests.github_server.model import Forge
from rag_pipeline_tests.github_server.nouns import ChangedFile, Comment, Repository, Review, ReviewComment, Thread

DROP_ASSETS = ("raw_webhook_drops", "documents", "chunks", "embeddings", "knowledge_index")


@dataclass(frozen=True)
class Story:
    """An issue with two comments, and the pull request that fixes it."""

    issue: Thread
    first: Comment
    second: Comment
    pull: Thread
    review: Review
    remark: ReviewComment


@pytest.fixture
def story(forge: Forge, rocket: Repository) -> Story:
    now, forge.now = forge.now, forge.now - timedelta(days=2)
    issue = forge.open_issue(rocket, title="Login fails", body="The login page shows an error for long passwords.")
    forge.tick(3600)
    first = forge.comment(issue, "I see the same with ninety characters.", author="grace")
    second = forge.comment(issue, "Could it be the hashing that cuts them?", author="linus")
    forge.tick(3600)
    files = [ChangedFile(filename="src/login.py", additions=12, deletions=3)]
    pull = forge.open_pull_request(rocket, title="Allow long passwords", body="Fixes #1 by hashing twice.", files=files)
    review = forge.review(pull, "CHANGES_REQUESTED", body="Please add a test with the longest one.")
    remark = forge.review_comment(pull, "This line truncates it.", review=review, path="src/login.py", line=12)
    forge.now = now
    return Story(issue, first, second, pull, review, remark)


def only_texts(installation: Installation) -> dict[str, list[str]]:
    """Chunk texts by the thread's number."""
    return {f"#{source_id.partition('#')[2]}": texts for source_id, texts in installation.documents().items()}


def test_whole_threads_reach_the_index(threads, story):
    threads.refresh()
    texts = only_texts(threads)
    assert set(texts) == {"#1", "#2"}
    assert [text.splitlines()[-1] for text in texts["#1"]] == [
        "The login page shows an error for long passwords.",
        "I see the same with ninety characters.",
        "Could it be the hashing that cuts them?",
    ]
    pull = "\n".join(texts["#2"])
    for said in ("Fixes #1 by hashing twice.", "Please add a test", "This line truncates it.", "src/login.py (+12 −3)"):
        assert said in pull
    shown = threads.shown()
    assert {(kind, title, url) for kind, _, _, title, url, *_ in shown.values()} == {
        ("github_issue", "Login fails", "https://github.com/acme/rocket/issues/1"),
        ("github_pull_request", "Allow long passwords", "https://github.com/acme/rocket/pull/2"),
    }


def test_hits_link_to_the_comment_they_come_from(threads, story):
    threads.refresh()

    def first_hit(question):
        return threads.pipeline().search(SearchQuery(text=question, tenant="default", k=1))[0]

    pages = "https://github.com/acme/rocket"
    assert first_hit("see the same with ninety characters").url == f"{pages}/issues/1#issuecomment-{story.first.id}"
    assert first_hit("this line truncates it").url == f"{pages}/pull/2#discussion_r{story.remark.id}"
    assert first_hit("add a test longest one").url == f"{pages}/pull/2#pullrequestreview-{story.review.id}"
    hit = first_hit("login page shows an error for long passwords")
    assert (hit.url, hit.location, hit.title) == (f"{pages}/issues/1", "acme/rocket#1", "Login fails")
    assert first_hit("files changed src login py").url == f"{pages}/pull/2/files"


def test_a_refresh_with_nothing_new_writes_no_row_and_embeds_nothing(threads, story, github):
    threads.refresh()
    before, embedded = threads.rows(), list(threads.embedder.embedded)
    github.clear_requests()
    assert [str(days) for days in threads.planned()] == ["2024-05-02"]
    (run,) = threads.refresh()
    assert threads.rows() == before
    assert threads.embedder.embedded == embedded
    assert run.reports["knowledge_index"].written.rows == 0
    # The plan asks, and what it asks for the run need not ask again.
    assert github.count() == 2 * 5
    assert not run.reports["raw_github"].repositories[0].asked


def test_a_run_that_nobody_planned_asks_github_itself(threads, story, github):
    threads.run("2024-05-02")
    assert github.count() <= 8
    assert threads.failures() == []
    github.clear_requests()
    (found,) = threads.run("2024-04-22", "2024-05-02").reports["raw_github"].repositories
    assert (found.asked, found.usage.requests, github.count()) == (True, 5, 5)
    assert set(only_texts(threads)) == {"#1", "#2"}


def test_a_new_comment_embeds_only_its_own_section(threads, story, forge):
    threads.refresh()
    embedded = len(threads.embedder.embedded)
    comment = forge.comment(story.issue, "It was fixed in the last release.", author="barbara")
    (run,) = [run for run in threads.refresh() if run.reports["knowledge_index"].written.rows]
    (text,) = threads.embedder.embedded[embedded:]
    assert text.endswith("It was fixed in the last release.")
    written = run.reports["knowledge_index"].written
    assert (written.documents, written.chunks, written.chunks_removed) == (1, 1, 0)
    anchors = [chunk for _, *_, chunks in threads.shown().values() for chunk in chunks]
    assert any(f"#issuecomment-{comment.id}" in chunk for chunk in anchors)


def test_edits_change_their_chunks_and_labels_none_of_them(threads, story, forge):
    threads.refresh()
    before, embedded = only_texts(threads), len(threads.embedder.embedded)
    forge.edit_comment(story.first, "I see the same with ninety-one characters.")
    forge.edit_review(story.review, "Please add a test with the very longest one.")
    forge.merge(story.pull)
    forge.label(story.issue, "bug")
    threads.refresh()
    after = only_texts(threads)
    assert after["#1"][0] == before["#1"][0]
    assert after["#1"][1].endswith("ninety-one characters.")
    assert after["#1"][2] == before["#1"][2]
    assert "Labels: bug" in after["#1"][3]
    new = [text for number, texts in after.items() for text in texts if text not in before[number]]
    assert sorted(threads.embedder.embedded[embedded:]) == sorted(new)
    assert len(new) == 4
    metadata = {value[5]["number"]: value[5] for value in threads.shown().values()}
    assert metadata[2]["state"] == "merged"
    assert metadata[1]["labels"] == ["bug"]


def test_a_deleted_comment_is_noticed_by_the_count(threads, story, forge):
    threads.refresh()
    forge.delete_comment(story.second)
    embedded = len(threads.embedder.embedded)
    threads.refresh()
    assert [text.splitlines()[-1] for text in only_texts(threads)["#1"]] == [
        "The login page shows an error for long passwords.",
        "I see the same with ninety characters.",
    ]
    assert len(threads.embedder.embedded) == embedded


def test_an_old_thread_that_a_delivery_told_of_costs_only_its_own(tmp_path, database, github, forge, rocket):
    now, forge.now = forge.now, datetime(2021, 3, 1, tzinfo=UTC)
    old = forge.open_issue(rocket, title="From the beginning", body="Nobody has spoken here for years.")
    forge.now = now
    forge.open_issue(rocket, title="New", body="Just opened.")
    installation = indexing(github, tmp_path / "home", database)
    installation.start_date = date(2021, 2, 1)
    assert [str(days) for days in installation.planned()] == ["2021-02-01 to 2024-05-02"]
    installation.refresh()
    forge.edit_thread(old, body="It was edited, and its time stayed.", silently=True)
    delivered = webhooks.thread(github.site, "edited", old)
    installation.drop("issues.1.json", json.dumps(delivered.payload))
    run = installation.run(forge.now.date(), select=DROP_ASSETS)
    assert run.reports["knowledge_index"].written.documents == 1
    assert only_texts(installation)["#1"][0].endswith("and its time stayed.")
    # What a delivery has brought into the index need not be brought there again, with all else of its day.
    assert [str(days) for days in installation.planned()] == ["2024-05-02"]
    (run,) = installation.refresh()
    assert (run.reports["knowledge_index"].written.rows, run.reports["documents"].rows) == (0, 0)
    forge.edit_thread(old, body="Once more, and its time stayed.", silently=True)
    installation.pass_time(600)
    assert installation.reconcile()[0]["threads_changed"] == 1
    assert only_texts(installation)["#1"][0].endswith("Once more, and its time stayed.")
    assert [str(days) for days in installation.planned()] == ["2024-05-02"]


def test_days_in_any_order_and_one_range_give_the_same_index(
    tmp_path, threads, other_database, github, forge, rocket, story
):
    for ago in (40, 9, 3):
        forge.now -= timedelta(days=ago)
        forge.open_issue(rocket, title=f"{ago} days ago", body=f"It has been like this for {ago} days.")
        forge.now += timedelta(days=ago)
    today = forge.now.date()
    days = [FIRST_DAY, *(today - timedelta(days=ago) for ago in (9, 3, 2, 0))]
    for day in [*random.Random(5).sample(days, len(days)), FIRST_DAY]:
        threads.run(day)
    other = indexing(github, tmp_path / "other", other_database)
    other.run(FIRST_DAY, today)
    assert len(other.shown()) == 5
    assert threads.shown() == other.shown()


def test_tenants_with_the_same_repository_share_nothing(tmp_path, database, github, forge, rocket, story):
    repositories = [
        {"github": "acme/rocket", "name": "rocket", "tenant": "red"},
        {"github": "acme/rocket", "name": "rocket", "tenant": "blue", "token_env": "BLUE"},
    ]
    rocket.private = True
    installation = indexing(github, tmp_path / "home", database, repositories=repositories, environ={"BLUE": "secret"})
    installation.refresh()
    # Only one of them may read it: what it may read is not shown to the other.
    assert installation.documents(tenant="red") == {}
    assert len(installation.documents(tenant="blue")) == 2
    assert [(stage, name) for stage, name, _ in installation.failures()] == [("raw_github", "rocket")]
    search = SearchQuery(text="login page", tenant="red")
    assert installation.pipeline().search(search) == []
    rocket.private = False
    installation.refresh()
    assert installation.documents(tenant="red") == installation.documents(tenant="blue")
    assert len(installation.embedder.embedded) == len(set(installation.embedder.embedded))


def test_a_renamed_repository_keeps_its_documents_and_embeds_nothing(threads, story, forge, rocket):
    threads.refresh()
    before, embedded = threads.documents(), len(threads.embedder.embedded)
    forge.rename_repository(rocket, "acme/booster")
    forge.open_issue(forge.add_repository("acme/rocket"), title="Another", body="It only has the name.")
    threads.refresh()
    assert threads.documents() == before
    assert len(threads.embedder.embedded) == embedded
    assert {url for *_, url, _, _, _ in threads.shown().values()} == {
        "https://github.com/acme/booster/issues/1", "https://github.com/acme/booster/pull/2",
    }  # fmt: skip
