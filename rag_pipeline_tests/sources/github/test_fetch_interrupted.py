"""Whatever ends a fetch early: what is settled is kept, no half thread is shown, the next fetch goes on from there."""

from __future__ import annotations

from pathlib import Path

import pytest

from rag_pipeline.errors import ConfigError
from rag_pipeline.sources.github.client import QUOTA_REACHED
from rag_pipeline_tests.github_server.faults import Fault, Kind
from rag_pipeline_tests.github_server.generated import generate
from rag_pipeline_tests.github_server.model import Forge
from rag_pipeline_tests.github_server.nouns import ChangedFile, Repository
from rag_pipeline_tests.github_server.server import GitHubServer
from rag_pipeline_tests.sources.github.mirrors import Mirrored, cold_load

BREAKS: list[Kind] = ["status", "html", "truncated", "cut", "close"]

pytestmark = pytest.mark.faults


@pytest.fixture
def large(forge: Forge, app: Repository, mirrored: Mirrored) -> Mirrored:
    """Of 640 issues and 12 pull requests with reviews, nothing is read yet."""
    for number in range(640):
        forge.tick(60)
        forge.open_issue(app, title=f"issue {number}")
    for number in range(12):
        forge.tick(60)
        forge.review(forge.open_pull_request(app, title=f"pull {number}"), body=f"review {number}")
    forge.tick(7200)
    return mirrored


def uninterrupted(mirrored: Mirrored, tmp_path: Path) -> tuple[int, dict[str, object]]:
    """Requests and threads of a first load in which nothing goes wrong."""
    mirrored.server.clear_requests()
    threads = cold_load(mirrored, tmp_path / "cold")
    return mirrored.server.count(), threads


def test_a_break_that_passes_costs_one_request_more(large: Mirrored, tmp_path: Path) -> None:
    requests, threads = uninterrupted(large, tmp_path)
    large.server.faults.add(Fault(match=r"/issues\?", kind="status", after=6))
    assert len(large.asked_by_fetch()) == requests + 1
    assert large.threads() == threads


@pytest.mark.parametrize("kind", BREAKS)
def test_after_a_break_in_the_middle_of_page_7_the_next_fetch_goes_on_there(kind: Kind, large: Mirrored) -> None:
    large.server.faults.add(Fault(match=r"/issues\?", kind=kind, after=6, times=None))
    report = large.fetch()
    assert report.stopped and report.pages == 6
    assert large.server.count() == 1 + 6 + 2  # the repository, six pages, and the seventh twice
    assert large.threads() == {}
    large.server.faults.clear()
    again = large.asked_by_fetch()
    assert len(again) == 5 + 2 * 12
    assert len(large.threads()) == 652


@pytest.mark.parametrize(
    "match", [r"/issues/comments", r"/pulls/comments", r"/pulls\?", "/reviews", "/files", "/repos/acme/app$"]
)
def test_wherever_it_breaks_nothing_is_lost(match: str, forge: Forge, server: GitHubServer, tmp_path: Path) -> None:
    generate(forge, seed=2, full_name="acme/app", issues=30, pulls=12)
    mirrored = Mirrored(home=tmp_path / "home", server=server)
    for after in range(3):
        server.faults.add(Fault(match=match, kind="truncated", times=2, after=after))
        try:
            mirrored.fetch()
        except Exception as error:
            assert "repos/acme/app sent an answer that is no JSON" in str(error)
    server.faults.clear()
    assert not mirrored.fetch().stopped
    assert mirrored.threads() == cold_load(mirrored, tmp_path / "cold")


def test_a_thread_that_cannot_be_read_stops_no_other(forge: Forge, app: Repository, mirrored: Mirrored) -> None:
    for number in range(1, 5):
        forge.review(forge.open_pull_request(app), body=f"review of {number}")
    mirrored.server.faults.add(Fault(match="/pulls/2/reviews", kind="status", times=None))
    report = mirrored.fetch()
    assert (report.stopped, report.waiting) == ("", 1)
    assert set(mirrored.threads()) == {"pull_request 1", "pull_request 3", "pull_request 4"}
    assert "/pulls/2/reviews" in mirrored.problems()["thread 2"]
    mirrored.server.faults.clear()
    assert len(mirrored.asked_by_fetch()) == 5 + 2
    assert mirrored.bodies(2, kind="pull_request") == ["review of 2"]
    assert mirrored.problems() == {}


def test_threads_that_fail_one_after_the_other_end_the_reading(
    forge: Forge, app: Repository, mirrored: Mirrored
) -> None:
    for _ in range(9):
        forge.open_pull_request(app)
    mirrored.server.faults.add(Fault(match="/reviews", kind="status", times=None))
    report = mirrored.fetch()
    assert "3 threads in a row could not be read" in report.stopped
    assert mirrored.server.count("/reviews") == 3 * 2
    assert report.waiting == 9


def test_a_pull_request_whose_files_github_will_not_list_is_read_without(
    forge: Forge, app: Repository, mirrored: Mirrored
) -> None:
    forge.open_pull_request(app, files=[ChangedFile(filename="huge.csv")])
    mirrored.server.faults.add(Fault(match="/pulls/1/files", kind="status", status=422, times=None))
    mirrored.fetch()
    assert mirrored.pull(1)["files"] == []
    assert "answered 422" in mirrored.problems()["files 1"]
    mirrored.server.faults.clear()
    forge.comment(app.threads[1])
    mirrored.fetch()
    assert [file["path"] for file in mirrored.pull(1)["files"]] == ["huge.csv"]
    assert mirrored.problems() == {}


def test_what_github_sends_malformed_stops_nothing_and_is_named_until_it_is_mended(
    forge: Forge, app: Repository, mirrored: Mirrored
) -> None:
    issue, pull = forge.open_issue(app), forge.open_pull_request(app, files=[ChangedFile(filename="a.py")])
    comment = forge.comment(issue, "fine")
    bad = b'[3, {"id": %d}, {"id": {"not": "one"}}]' % comment.id
    mirrored.server.faults.add(Fault(match=r"/issues/comments\?", kind="body", body=bad))
    mirrored.server.faults.add(Fault(match="/files", kind="body", body=b'[{"filename": "a.py"}, null]'))
    report = mirrored.fetch()
    assert not report.stopped and len(report.malformed) == 4
    assert [file["path"] for file in mirrored.pull(pull.number)["files"]] == ["a.py"]
    # GitHub counts one comment more than could be used: the issue was asked for it, and that one was sound.
    assert mirrored.bodies(1) == ["fine"]
    assert set(mirrored.problems()) == {"comment ?", "file ?"}
    mirrored.reconcile()
    assert mirrored.problems() == {}


def test_pull_requests_beyond_the_first_page_are_not_forgotten_when_the_second_breaks(
    forge: Forge, app: Repository, mirrored: Mirrored
) -> None:
    pulls = [forge.open_pull_request(app) for _ in range(130)]
    mirrored.fetch()
    forge.tick(7200)
    for pull in pulls:
        forge.push(pull, files=[ChangedFile(filename=f"{pull.number}.py")])
    mirrored.server.faults.add(Fault(match=r"/pulls\?.*page=2", kind="status", times=2))
    assert mirrored.fetch().stopped
    mirrored.fetch()
    threads = mirrored.threads()
    assert [threads[f"pull_request {pull.number}"]["files"][0]["path"] for pull in pulls] == [
        f"{pull.number}.py" for pull in pulls
    ]


# Quota.


def test_an_exhausted_quota_keeps_whole_threads_and_the_next_hour_completes_it(large: Mirrored, tmp_path: Path) -> None:
    requests, threads = uninterrupted(large, tmp_path)
    large.github = {"quota_share_left": 0}
    large.server.quota.limit = large.server.quota.remaining = 20
    hours, asked = 0, 0
    while True:
        large.server.clear_requests()
        report = large.fetch()
        asked += large.server.count()
        assert all(threads[key] == found for key, found in large.threads().items())
        if not report.stopped:
            break
        assert "GitHub's rate limit is reached until" in report.stopped and report.waiting > 0
        hours += 1
        large.server.forge.tick(3700)
    assert hours == requests // 20
    assert asked <= requests + hours * 6
    assert large.threads() == threads


def test_a_share_of_the_quota_is_left_to_others(large: Mirrored) -> None:
    large.github = {"quota_share_left": 0.5}
    large.server.quota.limit = large.server.quota.remaining = 30
    report = large.fetch()
    assert "github.quota_share_left keeps 50% of them for others" in report.stopped
    assert large.server.quota.remaining == 15


def test_a_short_wait_for_the_quota_is_waited_for(large: Mirrored) -> None:
    large.server.quota.limit = large.server.quota.remaining = 20
    large.github = {"max_wait_s": 3600, "quota_share_left": 0}
    assert not large.fetch().stopped
    assert large.slept and max(large.slept) <= 3601
    assert len(large.threads()) == 652


def test_a_secondary_rate_limit_is_waited_for_as_long_as_github_asks(large: Mirrored) -> None:
    large.server.faults.add(Fault(match=r"/issues\?", kind="secondary", after=2, retry_after=42))
    assert not large.fetch().stopped
    assert large.slept == [42]


def test_a_secondary_rate_limit_that_is_too_long_ends_the_reading(large: Mirrored) -> None:
    large.server.faults.add(Fault(match=r"/issues\?", kind="secondary", after=2, retry_after=4000))
    assert "for 4000 s" in large.fetch().stopped
    assert large.slept == []


def test_a_refused_token_is_named_and_not_told(forge: Forge, app: Repository, mirrored: Mirrored) -> None:
    mirrored.environ = {"GITHUB_TOKEN": "ghp_secret"}
    with pytest.raises(ConfigError, match="GITHUB_TOKEN") as caught:
        mirrored.fetch()
    assert "ghp_secret" not in str(caught.value)


def test_a_reading_that_begins_without_quota_ends_well(forge: Forge, app: Repository, mirrored: Mirrored) -> None:
    forge.open_issue(app)
    mirrored.fetch()
    mirrored.server.faults.add(Fault(match="/repos/acme/app$", kind="primary", seconds=3600))
    before = mirrored.threads()
    assert QUOTA_REACHED in mirrored.fetch().stopped
    assert mirrored.threads() == before
    assert not mirrored.fetch().stopped
