"""The raw stage: threads as source items, each in the file of the day of its last change."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest

from rag_pipeline.lake.schemas import items_of
from rag_pipeline.lake.store import Lake, Part
from rag_pipeline.model import DayRange, SourceItem
from rag_pipeline.settings import Settings
from rag_pipeline.sources.github.stage import Access, GitHubReport, last_reading, read_github
from rag_pipeline_tests.github_server.faults import Fault
from rag_pipeline_tests.github_server.model import Forge
from rag_pipeline_tests.github_server.nouns import Repository
from rag_pipeline_tests.github_server.server import GitHubServer
from rag_pipeline_tests.sources.github.mirrors import Mirrored, moment

ISSUES, PULLS = "raw_github_issues", "raw_github_pull_requests"


class Raw:
    """A lake, and runs that fill it with what a server has; the first partition is the 2nd of May."""

    def __init__(self, home: Path, server: GitHubServer, repositories: Iterable[str] = ("acme/app",)) -> None:
        self.server = server
        self.lake = Lake(str(home / "lake"))
        self.folder = home / "lake"
        self.settings = Settings.model_validate({
            "home": home, "start_date": date(2024, 5, 2), "github": {"base_url": server.url, "max_retries": 0},
            "repositories": [{"github": name, "name": name, "tenant": "acme"} for name in repositories],
        })  # fmt: skip

    def run(self, first: int = 2, last: int = 31, *, ask: bool = True) -> GitHubReport:
        """The days of May from `first` to `last`."""
        days = DayRange(first=date(2024, 5, first), last=date(2024, 5, last))
        clock = self.server.forge.tick
        access = Access(environ={}, clock=clock, sleep=clock)
        return read_github(self.settings, self.lake, days, access=access, progress=lambda *_, **__: None, ask=ask)

    def files(self) -> dict[str, int]:
        """Stage and day of every file, with when it was written."""
        found = (path for path in self.folder.rglob("*") if path.is_file())
        return {f"{path.relative_to(self.folder).parts[0]} {path.stem[8:]}": path.stat().st_mtime_ns for path in found}

    def items(self, stage: str, day: int, *, repository: str = "acme/app") -> dict[str, SourceItem]:
        """The items of a day, by their thread's number."""
        part = Part(tenant="acme", repository=repository, day=date(2024, 5, day))
        found = [item for batch in self.lake.read(stage, part) for item in items_of(batch)]
        return {item.source_id.partition("#")[2]: item for item in found}


@pytest.fixture
def raw(tmp_path: Path, server: GitHubServer) -> Raw:
    return Raw(tmp_path, server)


@pytest.fixture
def history(forge: Forge, app: Repository) -> Repository:
    """Issues of the 1st, 3rd and 5th of May and a pull request of the 3rd; now is the 10th."""
    for day, title in ((1, "before the first partition"), (3, "third"), (5, "fifth")):
        forge.now = moment(day)
        forge.open_issue(app, title=title)
    forge.now = moment(3)
    forge.open_pull_request(app, title="a pull")
    forge.now = moment(10)
    return app


def content(item: SourceItem) -> Any:
    return json.loads(item.content)


# Days.


def test_each_thread_is_in_the_file_of_the_day_of_its_last_change(raw: Raw, history: Repository) -> None:
    report = raw.run()
    assert set(raw.files()) == {f"{ISSUES} 02", f"{ISSUES} 03", f"{ISSUES} 05", f"{PULLS} 03"}
    assert (report.written_parts, report.failures) == (4, [])
    assert report.rows == {"github_issue": 3, "github_pull_request": 1}
    (found,) = report.repositories
    assert (found.full_name, found.threads, found.asked, found.outcome) == ("acme/app", 4, True, "4 threads changed")
    assert found.usage is not None and found.usage.requests == raw.server.count()


def test_an_item_shows_what_its_thread_is(raw: Raw, forge: Forge, history: Repository) -> None:
    forge.label(history.threads[4], "bug")
    forge.merge(history.threads[4])
    raw.run()
    item = raw.items(PULLS, 10)["4"]
    host = raw.server.url.removeprefix("http://")
    assert (item.tenant, item.source_type, item.repository) == ("acme", "github_pull_request", "acme/app")
    assert item.source_id == f"{host}/{history.id}#4"
    assert (item.title, item.url) == ("a pull", "https://github.com/acme/app/pull/4")
    assert (item.day, item.source_updated_at, item.deleted) == (date(2024, 5, 10), moment(10), False)
    assert item.as_of is not None and moment(10) < item.as_of < item.observed_at
    assert item.metadata | {"merge_commit": ""} == {
        "state": "merged", "labels": ["bug"], "merged_at": "2024-05-10T12:00:00Z", "merge_commit": "",
        "created_at": "2024-05-03T12:00:00Z", "closed_at": "2024-05-10T12:00:00Z", "number": 4,
        "reference": "acme/app#4", "author": "ada", "base": "main", "head": "feature",
        "content_type": "application/vnd.github.thread+json", "draft": False,
    }  # fmt: skip
    assert content(item)["title"] == "a pull"


def test_the_first_partition_holds_everything_older(raw: Raw, history: Repository) -> None:
    raw.run()
    item = raw.items(ISSUES, 2)["1"]
    assert (item.title, item.source_updated_at) == ("before the first partition", moment(1))
    raw.run(3, 5)
    assert f"{ISSUES} 02" in raw.files()


def test_a_range_is_one_reading(raw: Raw, history: Repository) -> None:
    raw.run()
    assert raw.server.count() == 5 + 2
    raw.server.clear_requests()
    raw.run(3, 9, ask=False)
    assert raw.server.count() == 0


def test_days_without_changes_have_no_file_and_other_days_are_left_alone(raw: Raw, history: Repository) -> None:
    raw.run(3, 4)
    assert set(raw.files()) == {f"{ISSUES} 03", f"{PULLS} 03"}


def test_unchanged_days_are_not_written_again(raw: Raw, forge: Forge, history: Repository) -> None:
    raw.run()
    before = raw.files()
    report = raw.run()
    assert raw.files() == before
    assert (report.written_parts, report.fresh_parts, report.bytes) == (0, 4, 0)
    assert report.repositories[0].outcome == "0 threads changed"
    forge.comment(history.threads[3], "again on the 5th", silently=True)
    report = raw.run()
    changed = {name for name, written in raw.files().items() if before.get(name) != written}
    assert changed == {f"{ISSUES} 10"} and report.written_parts == 1 and report.removed_parts == 1


def test_a_thread_that_changed_later_leaves_its_former_day_when_that_is_run_again(
    raw: Raw, forge: Forge, history: Repository
) -> None:
    raw.run()
    forge.comment(history.threads[2], "new")
    raw.run(9, 10)
    assert "2" in raw.items(ISSUES, 10) and "2" in raw.items(ISSUES, 3)
    raw.run(2, 5)
    assert f"{ISSUES} 03" not in raw.files() and f"{PULLS} 03" in raw.files()


def test_an_edit_without_a_date_is_written_on_the_day_that_it_had(raw: Raw, forge: Forge, history: Repository) -> None:
    raw.run()
    forge.edit_thread(history.threads[2], title="edited silently", silently=True)
    mirrored = Mirrored(home=raw.settings.home, server=raw.server)
    mirrored.reconcile()
    raw.run()
    item = raw.items(ISSUES, 3)["2"]
    assert (item.title, item.source_updated_at) == ("edited silently", moment(3))
    assert item.as_of is not None and item.as_of > moment(10)


def test_a_clock_at_github_that_is_ahead_puts_nothing_into_a_day_to_come(
    raw: Raw, forge: Forge, history: Repository
) -> None:
    forge.now = moment(12)
    forge.edit_thread(history.threads[2], title="from tomorrow")
    forge.now = moment(10)
    raw.run(9, 10)
    assert raw.items(ISSUES, 10)["2"].title == "from tomorrow"


def test_what_is_gone_is_a_tombstone_on_the_day_when_that_was_noticed(
    raw: Raw, forge: Forge, history: Repository
) -> None:
    raw.run()
    forge.delete_issue(history.threads[2])
    Mirrored(home=raw.settings.home, server=raw.server).reconcile()
    report = raw.run()
    item = raw.items(ISSUES, 10)["2"]
    assert item.deleted and item.content == b"" and item.metadata == {"number": 2}
    assert (item.title, item.url) == (None, None)
    assert report.tombstones == {"github_issue": 1}
    assert "2" not in raw.items(ISSUES, 3)


def test_a_rename_writes_the_days_again_under_the_same_ids(raw: Raw, forge: Forge, history: Repository) -> None:
    raw.run()
    before = raw.items(ISSUES, 3)["2"]
    forge.rename_repository(history, "acme/product")
    report = raw.run()
    after = raw.items(ISSUES, 3)["2"]
    assert (after.source_id, after.repository) == (before.source_id, "acme/app")
    assert after.url == "https://github.com/acme/product/issues/2"
    assert (report.repositories[0].full_name, report.written_parts) == ("acme/product", 4)


# Failures.


def reasons(report: GitHubReport) -> dict[str, str]:
    return {failure.source_id: failure.reason for failure in report.failures}


def test_a_reading_that_is_cut_short_writes_what_it_has_and_says_so(
    raw: Raw, forge: Forge, history: Repository
) -> None:
    raw.server.faults.add(Fault(match="/pulls", kind="primary", seconds=3000, times=None))
    report = raw.run()
    assert raw.files() == {} and "next run goes on from there: GitHub's rate limit" in reasons(report)["acme/app"]
    assert report.repositories[0].outcome.startswith("GitHub's rate limit is reached")
    raw.server.faults.clear()
    forge.tick(3600)
    assert raw.run().failures == []
    assert len(raw.files()) == 4


def test_one_repository_that_cannot_be_read_does_not_stop_the_others(
    tmp_path: Path, server: GitHubServer, history: Repository
) -> None:
    raw = Raw(tmp_path, server, ("acme/missing", "acme/app"))
    report = raw.run()
    assert set(reasons(report)) == {"acme/missing"} and "does not exist" in reasons(report)["acme/missing"]
    assert set(raw.items(ISSUES, 3)) == {"2"}


def test_when_none_can_be_read_each_is_on_record_with_its_reason(tmp_path: Path, server: GitHubServer) -> None:
    report = Raw(tmp_path, server, ("acme/missing", "acme/gone")).run()
    assert set(reasons(report)) == {"acme/missing", "acme/gone"}


def test_what_was_read_before_is_kept_while_a_repository_cannot_be_read(
    tmp_path: Path, server: GitHubServer, forge: Forge, history: Repository
) -> None:
    forge.open_issue(forge.add_repository("acme/other"))
    raw = Raw(tmp_path, server, ("acme/app", "acme/other"))
    raw.run()
    before = raw.files()
    forge.delete_repository(history)
    report = raw.run()
    assert set(reasons(report)) == {"acme/app"} and raw.files() == before


def test_resources_that_cannot_be_used_are_failures_until_they_can(raw: Raw, forge: Forge, history: Repository) -> None:
    forge.comment(history.threads[2], "fine")
    bad = b'[{"id": 77, "body": "of no thread"}]'
    raw.server.faults.add(Fault(match=r"/issues/comments\?", kind="body", body=bad))
    report = raw.run()
    (failed,) = report.failures
    assert failed.source_id.endswith("#0 comment 77") and "does not say which thread" in failed.reason
    assert (failed.stage, failed.repository, failed.tenant) == ("raw_github", "acme/app", "acme")
    assert [entry["body"] for entry in content(raw.items(ISSUES, 10)["2"])["entries"]] == ["fine"]
    Mirrored(home=raw.settings.home, server=raw.server).reconcile()
    assert raw.run().failures == []


def test_a_thread_that_cannot_be_read_is_a_failure_and_the_others_are_written(raw: Raw, history: Repository) -> None:
    raw.server.faults.add(Fault(match="/pulls/4/files", kind="status"))
    report = raw.run()
    assert [failure.source_id.rpartition("#")[2] for failure in report.failures] == ["0 thread 4"]
    assert set(raw.files()) == {f"{ISSUES} 02", f"{ISSUES} 03", f"{ISSUES} 05"}
    assert raw.run().failures == []
    assert f"{PULLS} 03" in raw.files()


def test_a_repository_that_was_never_read_says_nothing_of_a_last_reading(mirrored: Mirrored) -> None:
    mirrored.fetch()
    with mirrored.mirror.open() as store:
        assert last_reading(store) == (None, "")


def test_text_that_no_file_can_hold_is_written_without_it(raw: Raw, forge: Forge, app: Repository) -> None:
    forge.now = datetime(2024, 5, 10, tzinfo=moment(1).tzinfo)
    body = b'[{"number": 1, "title": "a \\ud800 b", "body": "\\u0000", "updated_at": "2024-05-09T00:00:00Z"}]'
    raw.server.faults.add(Fault(match=r"/issues\?", kind="body", body=body))
    assert raw.run().failures == []
    assert raw.items(ISSUES, 9)["1"].title == "a \ufffd b"
