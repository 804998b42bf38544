"""Forgetting what came from GitHub and by drops: threads, people, deliveries, and what an inbox keeps."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest

from rag_pipeline_tests.end_to_end.conftest import indexing
from rag_pipeline_tests.end_to_end.forgetting import everything, forget_in, places_of, scores, undo_in, verify_in
from rag_pipeline_tests.end_to_end.installation import Installation
from rag_pipeline_tests.github_server import webhooks
from rag_pipeline_tests.github_server.model import Forge
from rag_pipeline_tests.github_server.nouns import ChangedFile, Repository, Thread

pytestmark = pytest.mark.slow


class Conversation:
    """An issue and a pull request in which grace says something, and an issue that she opened."""

    def __init__(self, forge: Forge, rocket: Repository) -> None:
        now, forge.now = forge.now, forge.now - timedelta(days=3)
        self.issue = forge.open_issue(rocket, title="Login fails", body="The login page shows an error.")
        self.first = forge.comment(self.issue, "Sproutwords of hers about the error.", author="grace")
        forge.comment(self.issue, "Could it be the hashing that cuts them?", author="linus")
        forge.tick(86400)
        files = [ChangedFile(filename="src/login.py", additions=12, deletions=3)]
        self.pull = forge.open_pull_request(rocket, title="Allow more", body="Fixes #1 by hashing twice.", files=files)
        review = forge.review(self.pull, "CHANGES_REQUESTED", body="Sproutreview says no.", author="grace")
        forge.review_comment(
            self.pull, "Sproutremark on this line.", review=review, path="src/login.py", line=12, author="grace"
        )
        forge.review(self.pull, "APPROVED", body="Fine with me.", author="linus")
        self.hers: Thread = forge.open_issue(rocket, title="Sprouttitle", body="Sproutbody error.", author="grace")
        forge.comment(self.hers, "Me too, with this error.", author="linus")
        forge.assign(self.pull, "grace", "linus")
        forge.now = now


@pytest.fixture
def said(forge: Forge, rocket: Repository) -> Conversation:
    return Conversation(forge, rocket)


def test_an_author_is_cut_out_of_threads_and_stays_out(threads, said, forge, rocket, github):
    threads.refresh()
    others = threads.documents()
    assert {place.split()[0] for place in places_of(threads, "sprout")} >= {"chunks", "documents", "lake"}
    report = forget_in(threads, "author", "Grace")
    assert report.is_gone
    assert report.cut == 2
    assert report.found["github mirror"] >= 5
    for word in ("sprout", '"grace"'):
        assert places_of(threads, word) == []
    threads.refresh()
    texts = "\n".join(text for found in threads.documents().values() for text in found)
    assert {name.partition("#")[2] for name in threads.documents()} == {"1", "2"}
    for word in ("hashing that cuts them", "The login page", "Fine with me.", "Fixes #1", "Assigned to: linus."):
        assert word in texts
    assert "grace" not in texts.lower()
    forge.comment(said.issue, "Sproutagain, another word of hers.", author="grace")
    forge.open_issue(rocket, title="Sproutnew", body="Opened later.", author="grace")
    delivered = webhooks.issue_comment(github.site, "created", said.first)
    threads.drop("issue_comment.7.json", json.dumps(delivered.payload))
    threads.refresh()
    threads.reconcile()
    threads.run("2024-04-22", threads.now.date())
    assert places_of(threads, "sprout") == []
    assert threads.failures() == []
    assert verify_in(threads).is_gone
    undo_in(threads, "author", "grace")
    threads.refresh()
    assert any("Sproutagain" in text for found in threads.documents().values() for text in found)
    assert set(others) < set(threads.documents())


@pytest.mark.slow
def test_others_are_as_if_the_author_had_never_spoken(tmp_path, other_database, threads, said, github, forge):
    threads.refresh()
    forget_in(threads, "author", "grace")
    threads.refresh()
    forge.delete_comment(said.first)
    found = scores(threads, "error login hashing")
    cold = indexing(github, tmp_path / "cold", other_database)
    Path(cold.home).mkdir()
    (cold.home / "forgotten.json").write_text((threads.home / "forgotten.json").read_text())
    forget_in(cold, "author", "grace")
    cold.refresh()
    threads.refresh()
    assert threads.shown() == cold.shown()
    assert scores(threads, "error login hashing") == scores(cold, "error login hashing") == found


def test_a_forgotten_thread_is_nowhere_and_no_listing_or_delivery_brings_it_back(threads, said, forge, github):
    delivered = webhooks.thread(github.site, "edited", said.hers)
    threads.drop("issues.1.json", json.dumps(delivered.payload))
    threads.refresh()
    assert any(place.startswith("inbox accepted") for place in places_of(threads, "sprouttitle"))
    report = forget_in(threads, "document", "https://github.com/acme/rocket/issues/3")
    assert report.is_gone
    assert report.found["inbox accepted"] == 1
    assert places_of(threads, "sprouttitle") == []
    before = threads.documents()
    forge.edit_thread(said.hers, body="Sprouttitle was edited.")
    threads.drop("issues.2.json", json.dumps(webhooks.thread(github.site, "edited", said.hers).payload))
    threads.refresh()
    threads.reconcile()
    threads.run("2024-04-22", threads.now.date())
    assert threads.documents() == before
    assert places_of(threads, "sprouttitle") == []
    assert "accepted" not in " ".join(threads.inbox())
    assert verify_in(threads).is_gone


@pytest.mark.slow
def test_a_forgotten_repository_of_threads_takes_its_mirror_with_it(threads, said, github):
    threads.refresh()
    assert forget_in(threads, "repository", "rocket").is_gone
    assert places_of(threads, "login") == []
    assert not list((threads.home / "mirrors" / "github").rglob("*.sqlite*"))
    github.clear_requests()
    assert "rocket is forgotten" in " ".join(threads.plan().reasons)
    assert github.count() == 0
    undo_in(threads, "repository", "rocket")
    threads.refresh()
    assert len(threads.documents()) == 3


def test_drops_leave_the_inbox_its_archive_and_what_it_refused(tmp_path, database):
    inbox = Installation(tmp_path / "home", database, [])
    records = [{"id": "hers", "content": "Sproutwords in a record."}, {"id": "theirs", "content": "Words of others."}]
    inbox.drop("records.ndjson", "\n".join(json.dumps(record) for record in records))
    inbox.drop("note.json", json.dumps({"id": "hers", "content": "Sproutwords said again."}), seconds_ago=50)
    inbox.drop("broken.json", '{"id": "hers", "content": 7, "more": "sproutwords"}')
    inbox.refresh()
    inbox.drop("later.ndjson", "\n".join(json.dumps(record) for record in records))
    assert sorted(name.partition("/")[0] for name in inbox.inbox()) == [
        "accepted", "accepted", "later.ndjson", "rejected", "rejected",
    ]  # fmt: skip
    report = forget_in(inbox, "document", "hers")
    assert report.is_gone
    assert {place: count for place, count in report.found.items() if place.startswith("inbox")} == {
        "inbox accepted": 2, "inbox rejected": 1, "inbox waiting": 1, "inbox notes": 0,
    }  # fmt: skip
    assert places_of(inbox, "sproutwords") == []
    inbox.drop("again.ndjson", "\n".join(json.dumps(record) for record in records))
    inbox.refresh()
    assert list(inbox.documents()) == ["theirs"]
    assert places_of(inbox, "sproutwords") == []
    assert everything(database)["failures"] == []
