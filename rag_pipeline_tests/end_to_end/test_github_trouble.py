"""What goes wrong between GitHub and the index: it is said, stops nobody else, and the next refresh makes it good."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from rag_pipeline_tests.end_to_end.conftest import indexing
from rag_pipeline_tests.github_server import webhooks
from rag_pipeline_tests.github_server.faults import Fault
from rag_pipeline_tests.github_server.generated import generate
from rag_pipeline_tests.github_server.model import Forge
from rag_pipeline_tests.github_server.nouns import Repository
from rag_pipeline_tests.github_server.server import GitHubServer

pytestmark = pytest.mark.faults
DROP_ASSETS = ("raw_webhook_drops", "documents", "chunks", "embeddings", "knowledge_index")
HASTY = {"github": {"max_retries": 1, "max_wait_s": 10}}


@pytest.fixture
def rocket(forge: Forge) -> Repository:
    """A repository with a history of a week."""
    return generate(forge, seed=3, issues=6, pulls=4, comments=1, reviews=1, review_comments=1, days=8)


def cold(github: GitHubServer, tmp_path: Path, database: str) -> Mapping[tuple[str, str], object]:
    """What an installation shows that reads everything at once."""
    installation = indexing(github, tmp_path / "cold", database)
    installation.refresh()
    assert installation.failures() == []
    return installation.shown()


def test_a_run_killed_while_embedding_is_made_good_by_the_next(threads, github, tmp_path, other_database):
    threads.embedder.fail_after = 20
    with pytest.raises(BaseException):  # noqa: B017 - whatever kills the process
        threads.refresh()
    assert threads.documents() == {}
    threads.embedder.fail_after = None
    github.clear_requests()
    threads.refresh()
    assert github.count() <= 5
    assert len(threads.embedder.embedded) == len(set(threads.embedder.embedded))
    assert threads.shown() == cold(github, tmp_path, other_database)


def test_a_reconciliation_killed_while_embedding_is_made_good_by_the_next_refresh(
    threads, forge, rocket, github, tmp_path, other_database
):
    threads.refresh()
    edited, gone, *_ = rocket.issues()
    forge.edit_thread(edited, body="These words have never been read before.", silently=True)
    forge.delete_issue(gone)
    threads.embedder.fail_after = len(threads.embedder.embedded)
    with pytest.raises(BaseException):  # noqa: B017 - whatever kills the process
        threads.reconcile()
    threads.embedder.fail_after = None
    threads.refresh()
    assert threads.shown() == cold(github, tmp_path, other_database)


def test_an_exhausted_quota_indexes_what_is_whole_and_goes_on_later(threads, rocket, github, tmp_path, other_database):
    expected = cold(github, tmp_path, other_database)
    threads.more = HASTY
    github.quota.limit, github.quota.remaining, github.quota.resets_at = 10, 8, None
    todo = threads.plan()
    assert any("not read to the end" in reason for reason in todo.reasons)
    for days in todo.ranges:
        threads.run(days.first, days.last, planned=todo)
    ((stage, name, reason),) = threads.failures()
    assert (stage, name) == ("raw_github", "rocket")
    assert "the next run goes on from there" in reason
    partly = threads.shown()
    assert 0 < len(partly) < len(expected)
    assert {key: expected[key] for key in partly} == partly
    github.quota.limit = github.quota.remaining = 5000
    github.clear_requests()
    threads.pass_time(3700)
    threads.refresh()
    assert threads.shown() == expected
    assert threads.failures() == []
    # What was read before is not read again.
    assert github.count("/pulls/[0-9]+/reviews") < len(rocket.pulls())


def test_an_error_in_the_middle_of_a_listing_loses_nothing(threads, rocket, github, tmp_path, other_database):
    expected = cold(github, tmp_path, other_database)
    threads.more = HASTY
    github.faults.add(Fault(match="/pulls/comments", kind="status", status=500, times=2))
    threads.refresh()
    assert "500" in threads.failures()[0][2]
    github.faults.add(Fault(match="/issues/comments", kind="truncated", times=1))
    threads.refresh()
    assert threads.shown() == expected
    assert threads.failures() == []


@pytest.mark.parametrize("trouble", ["missing", "bad token"])
def test_a_repository_that_cannot_be_read_stops_no_other_and_is_on_record_until_it_can(
    tmp_path, database, github, forge, rocket, trouble
):
    wrong = {"github": "acme/engine", "name": "engine"} | ({} if trouble == "missing" else {"token_env": "TOKEN"})
    if trouble == "bad token":
        forge.open_issue(forge.add_repository("acme/engine"), title="Inside", body="What the engine does.")
    installation = indexing(
        github, tmp_path / "home", database, environ={"TOKEN": "revoked"},
        repositories=[wrong, {"github": "acme/rocket", "name": "rocket"}],
    )  # fmt: skip
    installation.refresh()
    assert {name for _, name, *_ in installation.shown().values()} == {"rocket"}
    ((stage, name, reason),) = installation.failures()
    assert (stage, name) == ("raw_github", "engine")
    assert ("acme/engine" in reason) and ("token" in reason)
    installation.pass_time(86400)
    installation.refresh()
    assert len(installation.failures()) == 1
    if trouble == "missing":
        forge.open_issue(forge.add_repository("acme/engine"), title="Inside", body="What the engine does.")
    installation.environ = {"TOKEN": "secret"}
    installation.refresh()
    assert {name for _, name, *_ in installation.shown().values()} == {"rocket", "engine"}
    assert installation.failures() == []
    assert [str(days) for days in installation.planned()] == ["2024-05-03"]


def test_the_only_repository_that_cannot_be_read_fails_the_run_at_its_end(threads, github):
    threads.environ = {"GITHUB_TOKEN": "revoked"}
    with pytest.raises(AssertionError, match="Bad credentials"):
        threads.refresh()


def test_a_lost_mirror_is_read_again_and_no_change_since_is_missed(threads, forge, rocket, github, other_database):
    threads.refresh()
    before, embedded = threads.documents(), len(threads.embedder.embedded)
    shutil.rmtree(threads.home / "mirrors" / "github")
    issue = rocket.issues()[2]
    comment = forge.comment(issue, "Nobody had read this when the mirror was lost.", author="grace")
    threads.refresh()
    after = threads.documents()
    assert len(after) == len(before)
    assert threads.embedder.embedded[embedded:] == [text for texts in after.values() for text in texts
                                                    if "when the mirror was lost" in text]  # fmt: skip
    assert any(f"#issuecomment-{comment.id}" in chunk for *_, chunks in threads.shown().values() for chunk in chunks)


@pytest.mark.parametrize("how", ["gone", "damaged"])
def test_delivered_threads_are_restored_from_the_mirror(threads, forge, rocket, github, how):
    """The accepted delivery names the thread, the mirror holds it: GitHub is not asked again."""
    threads.refresh()
    issue, pull = rocket.issues()[0], rocket.pulls()[0]
    for number, thread in enumerate((issue, pull)):
        comment = forge.comment(thread, f"Comment {number} came by a delivery.")
        delivered = webhooks.issue_comment(github.site, "created", comment)
        threads.drop(f"issue_comment.{number}.json", json.dumps(delivered.payload))
    today = threads.now.date()
    threads.run(today, select=DROP_ASSETS)
    before = threads.shown()
    (part,) = (threads.home / "lake" / "raw_webhook_drops").rglob("*.parquet")
    items = pq.read_table(part).sort_by("source_id")
    if how == "gone":
        part.unlink()
    else:
        part.write_bytes(part.read_bytes()[:-30])
    github.clear_requests()
    run = threads.run(today, select=DROP_ASSETS)
    assert github.count() == 0
    assert list(run.reports["raw_drops"].restored.values()) == [2]
    restored = pq.read_table(part).sort_by("source_id")
    for column in ("source_id", "content", "source_updated_at", "as_of", "deleted", "title"):
        assert restored[column] == items[column], column
    assert threads.shown() == before


def test_a_run_of_another_day_does_not_count_threads_as_indexed_that_it_left_out(threads, forge, rocket, github):
    threads.refresh()
    threads.pass_time(3 * 86400)
    dropped, read = rocket.issues()[:2]
    comment = forge.comment(dropped, "Today's part holds a drop of this repository.")
    threads.drop("issue_comment.1.json", json.dumps(webhooks.issue_comment(github.site, "created", comment).payload))
    threads.run("2024-05-05", select=DROP_ASSETS)
    forge.comment(read, "The first words of today.", author="grace")
    # Whoever planned this has read the comment, and died before he ran anything.
    todo = threads.plan()
    assert [str(days) for days in todo.ranges] == ["2024-05-05"]
    threads.run("2024-04-25", planned=todo)
    threads.pass_time(86400)
    assert [str(days) for days in threads.planned()] == ["2024-05-05 to 2024-05-06"]
    threads.refresh()
    assert "The first words of today." in "\n".join(text for texts in threads.documents().values() for text in texts)


def test_files_are_indexed_although_github_refuses(tmp_path, database, github, rocket, repository):
    repository.commit("2024-04-30T10:00", {"guide.md": "# Guide\n\nHow it is done.\n"})
    repositories = [
        {"source": str(repository.path), "name": "project"}, {"github": "acme/rocket", "name": "rocket"},
    ]  # fmt: skip
    installation = indexing(
        github, tmp_path / "home", database, repositories=repositories, environ={"GITHUB_TOKEN": "revoked"}
    )
    todo = installation.plan()
    (days,) = todo.ranges
    result, run = installation.try_run(days.first, days.last, planned=todo)
    assert not result.success and "Bad credentials" in str(run.left_out)
    assert {source_id for _, source_id in installation.shown()} == {"project:guide.md"}
    assert ["Bad credentials" in reason for _, _, reason in installation.failures()] == [True]
    assert [failure.source_id for failure in run.reports["raw_github"].failures] == ["rocket"]


def test_files_and_threads_of_a_repository_are_indexed_side_by_side(tmp_path, database, github, rocket, repository):
    repository.commit("2024-04-30T10:00", {"guide.md": "# Guide\n\nHow it is done.\n"})
    both = {"source": str(repository.path), "github": "acme/rocket", "name": "rocket"}
    installation = indexing(github, tmp_path / "home", database, repositories=[both])
    installation.refresh()
    kinds = {kind for kind, *_ in installation.shown().values()}
    assert kinds == {"docs", "github_issue", "github_pull_request"}
    before = installation.rows()
    installation.refresh()
    assert installation.rows() == before
