"""From inbox to index, through Dagster: what is dropped can be found, by whom it may, and nothing that died is lost."""

from __future__ import annotations

import json
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from rag_pipeline.retrieval.query import SearchQuery
from rag_pipeline_tests.end_to_end.installation import Installation
from rag_pipeline_tests.github_server import webhooks

TODAY = date(2024, 1, 31)
ASSETS = ("raw_webhook_drops", "documents", "chunks", "embeddings", "knowledge_index")
RUNBOOK = "Drain the queue before you restart the broker."


@pytest.fixture
def inbox(tmp_path: Path, database: str) -> Installation:
    """An installation that has nothing but its inbox."""
    return Installation(tmp_path / "home", database, [], start_date=date(2024, 1, 20))


def drop(installation: Installation, id_: str, content: str | None, **more: Any) -> None:
    """A record of knowledge; without content it is deleted."""
    record = {"id": id_, "updated_at": installation.now.isoformat(), **more}
    said = {"deleted": True} if content is None else {"content": content}
    installation.pass_time(1)
    installation.drop(f"{id_}-{installation.now:%H%M%S}.json", json.dumps(record | said))


def found(installation: Installation, question: str, *scopes: str, tenant: str = "default") -> list[str]:
    """What a query finds."""
    query = SearchQuery(text=question, tenant=tenant, scopes=scopes, k=20)
    return [hit.source_id for hit in installation.pipeline().search(query)]


def test_a_drop_becomes_searchable_and_leaves_the_inbox(inbox):
    inbox.drop("runbook.md", f"---\ntitle: Restarting\nurl: https://wiki.example.org/7\n---\n{RUNBOOK}\n")
    (run,) = inbox.refresh()
    assert run.reports["raw_drops"].taken == 1
    (hit,) = inbox.pipeline().search(SearchQuery(text="restart the broker", tenant="default"))
    assert (hit.title, hit.text, hit.url) == ("Restarting", RUNBOOK, "https://wiki.example.org/7")
    assert (hit.source_type, hit.source_id, hit.repository) == ("knowledge", "runbook.md", "inbox")
    assert inbox.inbox() == ["accepted/2024-01-31/runbook.md"]


def test_a_scope_is_found_only_by_queries_that_name_it(inbox):
    drop(inbox, "memory", "Prefers short answers about the broker.", scope="visitor:7", source_type="visitor_memory")
    drop(inbox, "runbook", RUNBOOK)
    drop(inbox, "theirs", "The broker of somebody else.", tenant="other")
    inbox.refresh()
    assert found(inbox, "broker") == ["runbook"]
    assert found(inbox, "broker", "visitor:8") == ["runbook"]
    assert sorted(found(inbox, "broker", "visitor:7")) == ["memory", "runbook"]
    assert found(inbox, "broker", "visitor:7", tenant="other") == ["theirs"]
    embedded = len(inbox.embedder.embedded)
    drop(inbox, "memory", "Prefers short answers about the broker.", scope="visitor:8", source_type="visitor_memory")
    inbox.refresh()
    assert found(inbox, "broker", "visitor:7") == ["runbook"]
    assert sorted(found(inbox, "broker", "visitor:8")) == ["memory", "runbook"]
    assert len(inbox.embedder.embedded) == embedded


def test_a_deleted_drop_disappears_and_an_older_one_does_not_bring_it_back(inbox):
    drop(inbox, "runbook", RUNBOOK)
    before = inbox.now
    inbox.refresh()
    inbox.pass_time(86400)
    drop(inbox, "runbook", None)
    inbox.refresh()
    assert inbox.documents() == {}
    drop(inbox, "runbook", "What it said once.", updated_at=before.isoformat())
    inbox.refresh()
    assert inbox.documents() == {}
    drop(inbox, "runbook", "It is needed again.")
    inbox.refresh()
    assert inbox.documents() == {"runbook": ["It is needed again."]}


def test_the_same_drop_again_writes_no_row(inbox):
    for number in range(3):
        drop(inbox, f"note-{number}", f"Note number {number} is about topic{number}.")
    inbox.refresh()
    inbox.refresh()
    before, embedded = inbox.rows(), len(inbox.embedder.embedded)
    for names in (inbox.inbox()[:1], inbox.inbox()):
        for name in names:
            file = Path(inbox.settings.inbox_url, name)
            inbox.drop(f"again-{file.name}", file.read_bytes())
        (run,) = inbox.refresh()
        assert run.reports["raw_drops"].taken == len(names)
        assert inbox.rows() == before
    assert len(inbox.embedder.embedded) == embedded


def test_a_drop_whose_run_died_is_indexed_by_the_next_refresh(inbox):
    drop(inbox, "first", "This one was indexed long ago.")
    inbox.refresh()
    inbox.pass_time(2 * 86400)
    drop(inbox, "second", RUNBOOK)
    inbox.run(inbox.now.date(), select=["raw_webhook_drops"])
    assert [name for name in inbox.inbox() if "/" not in name] == []
    inbox.pass_time(86400)
    assert [str(days) for days in inbox.planned()] == ["2024-02-02 to 2024-02-03"]
    inbox.refresh()
    assert set(inbox.documents()) == {"first", "second"}
    assert [str(days) for days in inbox.planned()] == ["2024-02-03"]


def test_a_run_killed_while_it_embeds_drops_is_made_good(inbox):
    for number in range(20):
        drop(inbox, f"note-{number}", f"Note number {number} is about topic{number}.")
    inbox.embedder.fail_after = 8
    with pytest.raises(BaseException):  # noqa: B017 - whatever kills the process
        inbox.refresh()
    assert inbox.documents() == {}
    inbox.embedder.fail_after = None
    inbox.refresh()
    assert len(inbox.documents()) == 20
    assert len(inbox.embedder.embedded) == 20


def test_other_chunk_sizes_rechunk_drops_of_earlier_days_too(inbox):
    words = " ".join(f"Sentence {number} tells about subject{number}." for number in range(20))
    drop(inbox, "long", words)
    inbox.refresh()
    inbox.pass_time(40 * 86400)
    drop(inbox, "short", RUNBOOK)
    inbox.refresh()
    before = inbox.documents()
    assert len(before["long"]) > 1
    inbox.more = {"chunking": {"max_tokens": 24, "min_tokens": 8}}
    assert [str(days) for days in inbox.planned()] == ["2024-01-31", "2024-03-11"]
    inbox.refresh()
    assert len(inbox.documents()["long"]) > len(before["long"])
    assert [str(days) for days in inbox.planned()] == ["2024-03-11"]


def test_drops_from_before_the_first_partition_are_no_reason_to_run_again_and_again(inbox):
    drop(inbox, "old", RUNBOOK)
    inbox.refresh()
    inbox.pass_time(9 * 86400)
    inbox.start_date = date(2024, 2, 5)
    inbox.more = {"chunking": {"max_tokens": 24, "min_tokens": 8}}
    drop(inbox, "new", "Something else.")
    inbox.refresh()
    inbox.pass_time(86400)
    assert [str(days) for days in inbox.planned()] == ["2024-02-10"]


def test_a_lost_database_is_filled_with_the_drops_that_the_lake_holds(inbox, other_database):
    drop(inbox, "runbook", RUNBOOK, scope="user:ada")
    inbox.refresh()
    inbox.pass_time(3 * 86400)
    drop(inbox, "second", "Something else.")
    inbox.refresh()
    expected, embedded = inbox.shown(), len(inbox.embedder.embedded)
    inbox.database = other_database
    inbox.refresh()
    assert inbox.shown() == expected
    assert len(inbox.embedder.embedded) == embedded


def test_a_run_that_takes_drops_does_not_count_commits_as_indexed_that_it_never_read(tmp_path, database, repository):
    installation = Installation(tmp_path / "home", database, [{"source": str(repository.path), "name": "project"}])
    repository.commit("2024-01-30T10:00", {"old.md": "# Old\n\nThis was there before.\n"})
    installation.refresh()
    repository.commit("2024-01-31T10:00", {"new.md": "# New\n\nSomething about deployment.\n"})
    # Whoever planned this fetched the commit, and died before he ran anything.
    assert [str(days) for days in installation.planned()] == ["2024-01-31"]
    installation.drop("runbook.md", RUNBOOK)
    installation.run(TODAY, select=ASSETS)
    assert set(installation.documents()) == {"project:old.md", "runbook.md"}
    installation.now += timedelta(days=1)
    assert [str(days) for days in installation.planned()] == ["2024-01-31 to 2024-02-01"]
    installation.refresh()
    assert set(installation.documents()) == {"project:old.md", "project:new.md", "runbook.md"}


def test_a_delivery_makes_the_thread_it_touches_fresh(threads, forge, rocket, github):
    issue = forge.open_issue(rocket, title="Login fails", body="The login page shows an error.")
    threads.refresh()
    comment = forge.comment(issue, "It was the cookie.", author="grace")
    threads.pass_time(300)
    github.clear_requests()
    threads.drop("issue_comment.1.json", json.dumps(webhooks.issue_comment(github.site, "created", comment).payload))
    run = threads.run(forge.now.date(), select=ASSETS)
    assert (run.reports["raw_drops"].threads_from_payload, github.count()) == (1, 0)
    (texts,) = threads.documents().values()
    assert texts[-1].endswith("It was the cookie.")
    before = threads.shown()
    threads.refresh()
    assert threads.shown() == before
    assert [str(days) for days in threads.planned()] == ["2024-05-02"]


def test_a_delivery_counts_as_far_as_it_tells_until_github_can_be_reached(threads, forge, rocket, github):
    issue = forge.open_issue(rocket, title="Login fails", body="The login page shows an error.")
    threads.refresh()
    forge.comment(issue, "This one was sent by nobody.")
    told = forge.comment(issue, "It was the cookie.", author="grace")
    delivered = webhooks.issue_comment(github.site, "created", told)
    url, threads.more = github.url, {"github": {"base_url": github.url, "max_retries": 0, "timeout_s": 0.5}}
    github.access.tokens.clear()
    threads.environ = {"GITHUB_TOKEN": "revoked"}
    threads.drop("issue_comment.1.json", json.dumps(delivered.payload))
    run = threads.run(forge.now.date(), select=ASSETS)
    assert run.reports["raw_drops"].threads_from_payload == 1
    assert "401" in run.reports["raw_drops"].unreachable[0]
    (texts,) = threads.documents().values()
    assert [text.splitlines()[-1] for text in texts[1:]] == ["It was the cookie."]
    threads.environ = {}
    assert threads.settings.github.base_url == url
    threads.refresh()
    (texts,) = threads.documents().values()
    assert [text.splitlines()[-1] for text in texts[1:]] == ["This one was sent by nobody.", "It was the cookie."]
