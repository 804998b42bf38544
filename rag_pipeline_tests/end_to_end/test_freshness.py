"""Up to when threads on GitHub are indexed: readings that end early, plans, and runs of other days."""

from __future__ import annotations

from datetime import datetime

import pytest

from rag_pipeline.index.bookkeeping import SourceKey
from rag_pipeline.index.database import connected
from rag_pipeline.index.freshness import SourceFreshness, freshness
from rag_pipeline.refresh import serving_space
from rag_pipeline.refresh.freshness import Standing, missing_days
from rag_pipeline.refresh.watching import look
from rag_pipeline_tests.end_to_end.installation import Installation

KEY = SourceKey(tenant="default", repository="rocket", source="github")


@pytest.fixture(autouse=True)
def _story(forge, rocket):
    for number in range(6):
        issue = forge.open_issue(rocket, title=f"Issue {number}", body=f"What is wrong with part {number}.")
        forge.comment(issue, f"More of part {number}.")


def noted(installation: Installation) -> SourceFreshness:
    with connected(installation.database) as connection:
        return {row.key: row for row in freshness(connection)}[KEY]


def looked(installation: Installation) -> Standing:
    """What the sensor sees."""
    pipeline = installation.pipeline()
    with connected(installation.database) as connection:
        space = serving_space(connection, pipeline.models)
        (standing,) = look(
            installation.settings, connection=connection, space=space, lake=pipeline.lake(), access=pipeline.access,
            ask=True,
        )  # fmt: skip
    return standing


def test_a_run_is_complete_up_to_the_plan_that_read_github(threads):
    before = threads.now
    todo = threads.plan()
    planned = noted(threads).asked_at
    assert planned is not None and before < planned <= threads.now
    threads.pass_time(600)
    threads.run(todo.ranges[0].first, todo.ranges[-1].last, planned=todo)
    row = noted(threads)
    assert (row.complete_until, row.asked_at) == (planned, planned)
    assert row.indexed_at is not None and row.indexed_at > planned
    assert looked(threads).state == "fresh"


def test_a_new_comment_is_seen_by_the_sensor_and_its_day_is_missing(threads, forge, rocket):
    threads.refresh()
    threads.pass_time(3600)
    forge.comment(rocket.issues()[0], "Something new.", author="grace")
    said = forge.now
    threads.pass_time(3600)
    standing = looked(threads)
    assert standing.state == "behind"
    assert standing.seen.newest_item_at == said
    (days,) = missing_days([standing])
    assert str(days) == "2024-05-02"
    threads.run(days.first, days.last)
    assert looked(threads).state == "fresh"


def test_a_run_of_another_day_and_one_of_drops_complete_nothing(threads):
    threads.refresh()
    until = noted(threads).complete_until
    threads.pass_time(3 * 86_400)
    threads.run("2024-04-23", "2024-04-25")
    threads.run(
        threads.now.date(), select=["raw_webhook_drops", "documents", "chunks", "embeddings", "knowledge_index"]
    )
    assert noted(threads).complete_until == until
    standing = looked(threads)
    assert (standing.state, [str(days) for days in standing.due]) == ("stale", ["2024-05-02 to 2024-05-05"])


def test_a_reading_that_was_cut_short_completes_nothing_and_says_why(threads, github):
    threads.more = {"github": {"max_wait_s": 0, "max_retries": 0}}
    github.quota.limit, github.quota.remaining, github.quota.resets_at = 6, 4, None
    threads.run("2024-04-22", "2024-05-02")
    row = noted(threads)
    assert row.complete_until is None
    assert "read" in row.problem
    github.quota.limit = github.quota.remaining = 5000
    threads.pass_time(3700)
    threads.run("2024-04-22", "2024-05-02")
    row = noted(threads)
    assert (row.problem, row.complete_until is not None) == ("", True)


def test_a_token_that_was_revoked_leaves_what_was_complete_and_says_why(threads):
    threads.refresh()
    until = noted(threads).complete_until
    threads.environ = {"GITHUB_TOKEN": "revoked"}
    threads.pass_time(86_400)
    standing = looked(threads)
    assert standing.unreadable and "Bad credentials" in standing.why
    assert missing_days([standing]) == []
    row = noted(threads)
    assert row.complete_until == until and isinstance(row.asked_at, datetime)
    assert "Bad credentials" in row.problem
    threads.environ = {}
    assert looked(threads).why == ""
