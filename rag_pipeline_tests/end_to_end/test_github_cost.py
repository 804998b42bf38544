"""What reading GitHub will take and cost, said before it is read."""

from __future__ import annotations

from pathlib import Path

from rag_pipeline.sources.github.outlook import outlook
from rag_pipeline_tests.end_to_end.conftest import FIRST_DAY
from rag_pipeline_tests.end_to_end.installation import Installation
from rag_pipeline_tests.end_to_end.test_cost import everything, planned, words
from rag_pipeline_tests.github_server.model import Forge
from rag_pipeline_tests.github_server.nouns import Repository
from rag_pipeline_tests.github_server.server import GitHubServer

BODY = "The login page shows an error for long passwords, whatever the browser is."


def test_an_unread_repository_is_estimated_from_counts_and_a_read_one_costs_no_request(
    threads: Installation, forge: Forge, rocket: Repository, github: GitHubServer
):
    for number in range(7):
        forge.open_issue(rocket, title=f"Problem {number}", body=f"{BODY} Number {number}.")
    forge.open_pull_request(rocket, title="Allow long passwords", body="By hashing twice.")
    asked = len(github.requests)
    found = planned(threads)
    # One small request for each of the four listings, and nothing is kept of them.
    assert len(github.requests) - asked == 4
    assert not (threads.home / "github").exists()
    (repository,) = threads.settings.github_repositories
    ahead = outlook(threads.settings, repository, threads.pipeline().access)
    assert ahead.unread_threads == 8
    assert found.github_requests == ahead.requests == 1 + 4 + 2
    assert (found.tokens, found.guessed_tokens) == (0, 8 * 700)
    assert any("8 issues and pull requests were never read" in note for note in found.notes)

    threads.refresh()
    asked, before = len(github.requests), everything(threads)
    assert planned(threads).tokens == planned(threads).guessed_tokens == 0
    assert len(github.requests) == asked
    assert everything(threads) == before

    # What the mirror holds is counted exactly.
    threads.more = {"chunking": {"max_tokens": 30, "min_tokens": 4}}
    found, embedded = planned(threads), len(threads.embedder.embedded)
    threads.refresh()
    assert found.tokens == words(threads.embedder.embedded[embedded:])


def test_a_github_that_cannot_be_reached_is_a_note(tmp_path: Path, database: str):
    lost = Installation(
        tmp_path / "home", database, [{"github": "acme/rocket", "name": "rocket"}], start_date=FIRST_DAY,
        more={"github": {"base_url": "http://127.0.0.1:9", "max_retries": 0}},
    )  # fmt: skip
    assert any("rocket: GitHub could not be asked" in note for note in planned(lost).notes)
