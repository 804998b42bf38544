"""What vanished from GitHub leaves the index by the reconciliation, at once, and never because a listing was broken."""

from __future__ import annotations

import shutil

import dagster as dg
import pytest

from rag_pipeline_tests.end_to_end.conftest import indexing
from rag_pipeline_tests.end_to_end.installation import Installation
from rag_pipeline_tests.github_server.faults import Fault
from rag_pipeline_tests.github_server.model import Forge
from rag_pipeline_tests.github_server.nouns import Repository, Thread

MANY = 24


@pytest.fixture
def issues(forge: Forge, rocket: Repository) -> list[Thread]:
    """Some issues, each with two comments of its own."""
    found = []
    for number in range(1, 5):
        issue = forge.open_issue(rocket, title=f"Problem {number}", body=f"Part {number} does not work.")
        forge.comment(issue, f"First words on part {number}.")
        forge.comment(issue, f"Last words on part {number}.")
        forge.tick(3600)
        found.append(issue)
    return found


def titles(installation: Installation) -> set[str]:
    """What the index shows."""
    return {title for _, _, _, title, *_ in installation.shown().values()}


def said(installation: Installation) -> str:
    """All text of the index."""
    return "\n".join(text for texts in installation.documents().values() for text in texts)


def metadata_of(result: dg.ExecuteInProcessResult) -> dict[str, object]:
    """What the run shows in the UI."""
    (event,) = result.asset_materializations_for_node("github_reconciliation")
    return {name: value.value for name, value in event.metadata.items()}


def test_deleted_transferred_and_converted_issues_leave_the_index_at_once(threads, forge, issues):
    threads.refresh()
    forge.delete_issue(issues[0])
    forge.transfer_issue(issues[1], forge.add_repository("acme/engine"))
    forge.convert_to_discussion(issues[2])
    threads.refresh()
    assert titles(threads) == {f"Problem {number}" for number in range(1, 5)}
    (row,) = threads.reconcile()
    assert titles(threads) == {"Problem 4"}
    assert (row["threads_removed"], row["embedded"], row["outcome"]) == (3, 0, "complete")
    before = threads.rows()
    threads.refresh()
    assert titles(threads) == {"Problem 4"}
    # The refresh finds nothing left to write, neither of the threads nor of its own progress.
    assert threads.rows() == before


def test_silent_deletions_and_edits_of_comments_reach_the_index_at_once(threads, forge, issues):
    threads.refresh()
    forge.delete_comment(issues[0].comments[0], silently=True)
    forge.edit_thread(issues[1], body="Part 2 works again.", silently=True)
    threads.refresh()
    assert "First words on part 1." in said(threads)
    (row,) = threads.reconcile()
    assert "First words on part 1." not in said(threads)
    assert "Last words on part 1." in said(threads)
    assert "Part 2 works again." in said(threads)
    assert (row["threads_removed"], row["comments_removed"], row["threads_changed"]) == (0, 1, 2)


def test_a_reconciliation_with_nothing_to_find_writes_no_row(threads, issues):
    threads.refresh()
    before = threads.rows()
    (row,) = threads.reconcile()
    assert (row["threads_removed"], row["comments_removed"], row["rows_written"], row["withheld"]) == (0, 0, 0, "")
    assert (row["issues_and_pull_requests"], row["comments"]) == (4, 8)
    assert threads.rows() == before


def test_what_nobody_refreshed_yet_is_indexed_by_a_reconciliation(threads, issues):
    threads.reconcile()
    assert len(titles(threads)) == 4
    threads.refresh()
    assert threads.failures() == []


def test_too_many_removals_are_withheld_shown_and_on_record_until_they_are_confirmed(threads, forge, rocket):
    issues = [forge.open_issue(rocket, title=f"Problem {n}", body=f"Part {n} is broken.") for n in range(MANY)]
    threads.refresh()
    for issue in issues[: MANY // 2]:
        forge.delete_issue(issue)
    result, _ = threads.try_reconcile()
    assert result.success
    assert len(titles(threads)) == MANY
    shown = metadata_of(result)
    assert shown["withheld"] == "12 of 24 issues and pull requests are missing from GitHub's listing"
    assert shown["quarantined"] == 1
    ((stage, name, reason),) = threads.failures()
    assert (stage, name) == ("reconciliation", "rocket issue")
    assert "12 of 24" in reason and "confirm_removals: true" in reason
    # It waits for a person: no refresh looks at its day again because of it.
    threads.pass_time(3 * 86400)
    assert [str(days) for days in threads.planned()] == ["2024-05-05"]
    (row,) = threads.reconcile(confirm=True)
    assert row["threads_removed"] == 12
    assert titles(threads) == {f"Problem {n}" for n in range(MANY // 2, MANY)}
    assert threads.failures() == []


def test_an_empty_listing_removes_nothing_even_when_it_is_confirmed(threads, forge, github, rocket):
    for number in range(MANY):
        forge.open_issue(rocket, title=f"Problem {number}", body=f"Part {number} is broken.")
    threads.refresh()
    github.faults.add(Fault(match=r"/repos/acme/rocket/issues\?", kind="body", body=b"[]", times=None))
    (row,) = threads.reconcile()
    assert (row["threads_removed"], bool(row["withheld"])) == (0, True)
    (row,) = threads.reconcile(confirm=True)
    assert (row["threads_removed"], row["withheld"]) == (0, "")
    assert len(titles(threads)) == MANY


def test_a_thread_that_the_mirror_never_saw_is_removed_when_github_does_not_have_it(threads, forge, issues):
    threads.refresh()
    shutil.rmtree(threads.home / "mirrors" / "github")
    forge.delete_issue(issues[3])
    embedded = len(threads.embedder.embedded)
    (row,) = threads.reconcile()
    assert row["threads_removed"] == 1
    assert titles(threads) == {"Problem 1", "Problem 2", "Problem 3"}
    assert len(threads.embedder.embedded) == embedded


def test_one_of_several_repositories_can_be_chosen(tmp_path, database, github, forge, rocket, issues):
    engine = forge.add_repository("acme/engine")
    other = forge.open_issue(engine, title="Elsewhere", body="Another repository's.")
    repositories = [{"github": f"acme/{name}", "name": name} for name in ("rocket", "engine")]
    installation = indexing(github, tmp_path / "home", database, repositories=repositories)
    installation.refresh()
    forge.delete_issue(issues[0])
    forge.delete_issue(other)
    (row,) = installation.reconcile(repositories=["engine"])
    assert row["repository"] == "engine"
    assert titles(installation) == {f"Problem {number}" for number in range(1, 5)}
    result, _ = installation.try_reconcile(repositories=["rockets"])
    assert not result.success
    (failed,) = result.get_step_failure_events()
    assert "no repository 'rockets'" in failed.step_failure_data.user_failure_data.description


def test_a_repository_that_cannot_be_compared_does_not_stop_the_others(
    tmp_path, database, github, forge, rocket, issues
):
    repositories = [{"github": f"acme/{name}", "name": name} for name in ("gone", "rocket")]
    installation = indexing(github, tmp_path / "home", database, repositories=repositories)
    installation.refresh()
    forge.delete_issue(issues[0])
    rows = installation.reconcile()
    assert [row["repository"] for row in rows if row["outcome"] == "complete"] == ["rocket"]
    assert "Problem 1" not in titles(installation)
    assert ("reconciliation", "gone") in {(stage, name) for stage, name, _ in installation.failures()}
    forge.add_repository("acme/gone")
    installation.reconcile()
    assert [stage for stage, _, _ in installation.failures()] == ["raw_github"]
    installation.refresh()
    assert installation.failures() == []
