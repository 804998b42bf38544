"""GitHub's deliveries in the inbox: which repository they are about, and what becomes of the thread they touch."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from rag_pipeline.sources.github.mirror import GitHubMirror
from rag_pipeline.sources.github.stage import Access, fetch_repository
from rag_pipeline_tests.github_server import webhooks
from rag_pipeline_tests.github_server.model import Forge
from rag_pipeline_tests.github_server.nouns import Repository, Thread
from rag_pipeline_tests.github_server.server import GitHubServer
from rag_pipeline_tests.github_server.webhooks import Delivery
from rag_pipeline_tests.sources.drops.taking import Taking

EXAMPLES = (
    Path(os.environ.get("RAG_TEST_DATA", ""))
    / "webhooks" / "octokit-webhooks-examples" / "api.github.com" / "index.json"
)  # fmt: skip
needs_examples = pytest.mark.skipif(not EXAMPLES.is_file(), reason="RAG_TEST_DATA names no folder with webhooks/")


@pytest.fixture
def forge() -> Forge:
    return Forge()


@pytest.fixture
def rocket(forge: Forge) -> Repository:
    return forge.add_repository("acme/rocket")


@pytest.fixture
def issue(forge: Forge, rocket: Repository) -> Thread:
    issue = forge.open_issue(rocket, title="Login fails", body="An error is shown.")
    forge.comment(issue, "For me too.")
    return issue


@pytest.fixture
def github(forge: Forge) -> Iterator[GitHubServer]:
    with GitHubServer(forge) as server:
        server.clock = lambda: forge.now
        yield server


@pytest.fixture
def taking(tmp_path: Path, github: GitHubServer) -> Taking:
    return Taking(tmp_path, repositories=[{"github": "acme/rocket", "name": "rocket"}], base_url=github.url)


def deliver(taking: Taking, delivery: Delivery, id_: int = 1, *, seconds_ago: float = 60) -> None:
    """Drop a delivery as the receiver writes it."""
    received = taking.now - timedelta(seconds=seconds_ago)
    wrapped = {"event": delivery.event, "delivery": f"d-{id_}", "received_at": received.isoformat()}
    taking.drop(f"{delivery.event}.d-{id_}.json", wrapped | {"payload": delivery.payload}, seconds_ago=seconds_ago)


def threads(taking: Taking) -> dict[str, Any]:
    """The threads of today's part, by number."""
    return {
        item.source_id.partition("#")[2]: None if item.deleted else json.loads(item.content)
        for item in taking.items(repository="rocket")
    }


def test_what_touches_no_configured_repository_is_ignored_by_name(taking, forge, github, issue):
    other = forge.add_repository("acme/engine")
    deliver(taking, webhooks.thread(github.site, "opened", forge.open_issue(other)), 1)
    deliver(taking, Delivery(event="star", payload={"action": "created"}), 2)
    deliver(taking, Delivery(event="sub_issues", payload={"action": "sub_issue_added"}), 3)
    report = taking.take()
    assert report.ignored == {
        "the threads of acme/engine are not configured": 1,
        "events of type star touch no knowledge": 1,
        "events of type sub_issues touch no knowledge": 1,
    }
    assert (report.taken, report.rejected, taking.parts(), github.count()) == (3, [], {}, 0)
    assert all(name.startswith("accepted/") for name in taking.files())


def test_the_thread_is_read_from_github_where_it_can_be_reached(taking, forge, github, issue):
    delivery = webhooks.thread(github.site, "opened", issue)
    forge.comment(issue, "Said after the delivery.")
    deliver(taking, delivery)
    report = taking.take()
    assert (report.threads_from_api, report.threads_from_payload, report.unreachable) == (1, 0, [])
    assert dict(report.events) == {"issues": 1}
    assert [entry["body"] for entry in threads(taking)["1"]["entries"]] == ["For me too.", "Said after the delivery."]
    (item,) = taking.items(repository="rocket")
    assert (item.source_type, item.title, item.day) == ("github_issue", "Login fails", taking.now.date())
    assert item.url == "https://github.com/acme/rocket/issues/1"


def test_many_deliveries_about_one_thread_cost_one_reading(taking, github, forge, issue):
    for number, comment in enumerate([*issue.comments, *(forge.comment(issue, f"Number {n}.") for n in range(9))]):
        deliver(taking, webhooks.issue_comment(github.site, "created", comment), number)
    report = taking.take()
    assert (report.taken, report.threads_from_api, github.count("/issues/1")) == (10, 1, 2)


def test_the_payload_counts_where_github_cannot_be_reached(taking, github, issue):
    deliver(taking, webhooks.issue_comment(github.site, "created", issue.comments[0]))
    github.access.tokens.clear()
    taking.environ = {"GITHUB_TOKEN": "revoked"}
    report = taking.take()
    assert (report.threads_from_api, report.threads_from_payload) == (0, 1)
    assert "Bad credentials" in report.unreachable[0]
    assert [entry["body"] for entry in threads(taking)["1"]["entries"]] == ["For me too."]


@pytest.mark.parametrize("is_reachable", [True, False])
def test_a_deleted_thread_becomes_a_tombstone(taking, forge, github, issue, is_reachable):
    deliver(taking, webhooks.thread(github.site, "opened", issue), 1)
    taking.take()
    if not is_reachable:
        taking.environ = {"GITHUB_TOKEN": "revoked"}
    forge.delete_issue(issue)
    deliver(taking, webhooks.thread(github.site, "deleted", issue), 2)
    report = taking.take()
    assert (threads(taking), report.tombstones.total()) == ({"1": None}, 1)


def test_a_late_delivery_never_overwrites_what_is_newer(taking, forge, github, issue):
    taking.environ = {"GITHUB_TOKEN": "revoked"}
    old = webhooks.thread(github.site, "edited", issue)
    forge.tick(60)
    forge.edit_thread(issue, body="It is shown twice.")
    deliver(taking, webhooks.thread(github.site, "edited", issue), 2)
    taking.take()
    before = taking.parts()
    deliver(taking, old, 1)
    assert taking.take().taken == 1
    assert threads(taking)["1"]["body"] == "It is shown twice."
    assert taking.parts() == before


def test_a_transfer_between_configured_repositories_moves_the_thread(taking, forge, github, issue):
    engine = forge.add_repository("acme/engine")
    taking.repositories = [*taking.repositories, {"github": "acme/engine", "name": "engine"}]
    moved = forge.transfer_issue(issue, engine)
    leaving, _ = webhooks.transferred(github.site, issue, moved)
    deliver(taking, leaving)
    taking.take()
    assert threads(taking) == {"1": None}
    (arrived,) = taking.items(repository="engine")
    assert json.loads(arrived.content)["entries"][0]["body"] == "For me too."


def test_each_tenant_that_names_the_repository_gets_its_own(taking, github, issue):
    taking.repositories = [{"github": "acme/rocket", "name": "rocket", "tenant": tenant} for tenant in ("red", "blue")]
    deliver(taking, webhooks.thread(github.site, "opened", issue))
    assert taking.take().threads_from_api == 2
    assert len(taking.items(tenant="red", repository="rocket")) == 1
    assert len(taking.items(tenant="blue", repository="rocket")) == 1


def test_a_known_repository_is_told_by_its_number_not_by_its_name(taking, forge, rocket, github, issue):
    (repository,) = taking.settings.github_repositories
    fetch_repository(taking.settings, repository, Access(environ={}, clock=lambda: forge.now))
    forge.rename_repository(rocket, "acme/booster")
    namesake = forge.add_repository("acme/rocket")
    deliver(taking, webhooks.thread(github.site, "opened", forge.open_issue(namesake, title="Not this one")), 1)
    deliver(taking, webhooks.thread(github.site, "edited", issue), 2)
    report = taking.take()
    assert dict(report.ignored) == {"the threads of acme/rocket are not configured": 1}
    assert [thread["title"] for thread in threads(taking).values()] == ["Login fails"]
    with GitHubMirror(taking.settings, repository).open() as store:
        assert store.note("full_name") == "acme/booster"


def test_a_push_is_noted_for_the_indexed_branch_only(taking, rocket):
    taking.repositories = [{"source": "https://github.com/acme/rocket.git", "name": "files", "branch": "stable"}]

    def push(ref: str) -> Delivery:
        about = {"id": rocket.id, "full_name": "acme/rocket", "default_branch": "main"}
        return Delivery(event="push", payload={"ref": ref, "commits": [], "repository": about})

    deliver(taking, push("refs/heads/feature"), 1)
    deliver(taking, push("refs/heads/main"), 2)
    deliver(taking, push("refs/tags/v1"), 3)
    report = taking.take()
    assert (report.pushed, report.events["push"], report.ignored.total()) == (set(), 2, 1)
    deliver(taking, push("refs/heads/stable"), 4)
    assert taking.take().pushed == {"files"}
    taking.repositories = [{"source": "https://github.com/acme/rocket.git", "name": "files"}]
    deliver(taking, push("refs/heads/main"), 5)
    assert taking.take().pushed == {"files"}


def test_a_delivery_that_lacks_what_it_must_have_is_rejected_with_its_reason(taking, github, issue):
    whole = webhooks.thread(github.site, "opened", issue)
    deliver(taking, Delivery(event="issues", payload={k: v for k, v in whole.payload.items() if k != "issue"}), 1)
    deliver(taking, Delivery(event="issues", payload={k: v for k, v in whole.payload.items() if k != "repository"}), 2)
    deliver(taking, whole, 3)
    report = taking.take()
    assert [name for name, _ in report.rejected] == ["issues.d-1.json", "issues.d-2.json"]
    assert "must name its repository" in taking.reason("issues.d-2.json")
    assert set(threads(taking)) == {"1"}


@needs_examples
def test_every_example_is_accepted_ignored_by_name_or_rejected_with_a_reason(tmp_path):
    taking = Taking(tmp_path, repositories=[{"github": "Codertocat/Hello-World", "name": "hello"}])
    dropped = drop_examples(taking)
    report = taking.take()
    assert (report.taken, report.left) == (dropped, 0)
    moved = Counter(name.partition("/")[0] for name in taking.files() if not name.endswith(".reason.txt"))
    assert moved == +Counter(accepted=dropped - len(report.rejected), rejected=len(report.rejected))
    assert report.events.total() + report.ignored.total() + len(report.rejected) == dropped
    assert report.events.total() > 100 and all(report.ignored)
    kinds = {(item.source_type, item.deleted) for item in taking.items(repository="hello")}
    assert {("github_pull_request", False), ("github_issue", True)} <= kinds
    before = taking.parts()
    assert drop_examples(taking) == dropped
    assert taking.take().taken == dropped
    assert taking.parts() == before


def drop_examples(taking: Taking) -> int:
    """Drop every example payload as GitHub would have sent it; how many there are."""
    number = 0
    for event in json.loads(EXAMPLES.read_text(encoding="utf-8")):
        for payload in event["examples"]:
            number += 1
            taking.drop(f"{event['name']}.example-{number}.json", payload)
    return number


def test_names_of_files_tell_the_event_of_a_bare_payload(taking, github, issue):
    taking.drop("issues.72d3162e.json", webhooks.thread(github.site, "opened", issue).payload)
    taking.drop("my-notes.72d3162e.json", webhooks.thread(github.site, "opened", issue).payload)
    report = taking.take()
    assert dict(report.events) == {"issues": 1}
    assert [name for name, _ in report.rejected] == ["my-notes.72d3162e.json"]
