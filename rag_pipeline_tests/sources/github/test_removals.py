"""One guard over all removals: whatever tells that things are gone, too many wait until somebody confirms them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from rag_pipeline.errors import SourceNotFound
from rag_pipeline_tests.github_server import webhooks
from rag_pipeline_tests.github_server.faults import Fault
from rag_pipeline_tests.github_server.model import Forge
from rag_pipeline_tests.github_server.nouns import Repository, Thread
from rag_pipeline_tests.github_server.shapes import Site
from rag_pipeline_tests.sources.github.mirrors import Mirrored, cold_load
from rag_pipeline_tests.sources.github.test_apply_order import discussion

SITE = Site()
THREADS = 60
LIMIT = 10
Told = Callable[[Mirrored, list[int]], object]


@pytest.fixture
def loaded(forge: Forge, app: Repository, mirrored: Mirrored) -> Mirrored:
    """60 threads, every second a pull request with a review and a remark, every one with a comment; a day old."""
    for number in range(THREADS // 2):
        forge.comment(forge.open_issue(app, title=f"issue {number}"), f"comment {number}")
        pull = forge.open_pull_request(app, title=f"pull {number}")
        forge.comment(pull, f"comment on {number}")
        forge.review_comment(pull, "remark", review=forge.review(pull, body="review"))
        forge.tick(1)
    mirrored.fetch()
    forge.tick(90_000)
    return mirrored


def by_the_listing(mirrored: Mirrored, numbers: list[int]) -> object:
    """The issues' listing lacks them, and each answers 404."""
    return mirrored.reconcile()


def by_reviews(mirrored: Mirrored, numbers: list[int]) -> object:
    """The listing breaks; of pull requests, the sweep of reviews finds that they are gone."""
    mirrored.server.faults.add(Fault(match=r"/issues\?.*sort=created", kind="status", status=500, times=None))
    report = mirrored.reconcile()
    mirrored.server.faults.clear()
    return report


def by_a_refresh(mirrored: Mirrored, numbers: list[int]) -> object:
    """They were touched, and what they lack is asked for."""
    with mirrored.mirror.open() as store:
        store.touch(*numbers)
    return mirrored.fetch()


def by_deliveries(mirrored: Mirrored, numbers: list[int]) -> object:
    """Each is told of, some at a time."""
    forge = mirrored.server.forge
    for start in range(0, len(numbers), 5):
        gone = [webhooks.thread(SITE, "deleted", GONE[number]) for number in numbers[start : start + 5]]
        mirrored.deliver(*gone, at=forge.tick(1))
    return None


GONE: dict[int, Thread] = {}


def delete(forge: Forge, app: Repository, numbers: list[int]) -> None:
    for number in numbers:
        GONE[number] = app.threads[number]
        forge.delete_issue(app.threads[number])


WAYS: dict[str, Told] = {
    "the listing": by_the_listing, "the sweep": by_reviews, "a refresh": by_a_refresh, "deliveries": by_deliveries,
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("share", [3, 1], ids=["a third", "all"])
def test_too_many_wait_whatever_tells_of_them_and_go_when_confirmed(
    share: int, way: str, forge: Forge, app: Repository, loaded: Mirrored, tmp_path: Path
) -> None:
    numbers = [number for number in app.threads if number % share == 0]
    delete(forge, app, numbers)
    WAYS[way](loaded, numbers)
    assert removed(loaded) <= LIMIT
    for other in WAYS.values():
        other(loaded, numbers)
        forge.tick(60)
    assert removed(loaded) <= LIMIT
    report = loaded.reconcile(confirmed=True)
    assert (report.withheld, report.fetched.stopped) == ([], "")
    assert loaded.threads() == cold_load(loaded, tmp_path / "cold")


@pytest.mark.parametrize("way", WAYS)
def test_a_tenth_goes_at_once(way: str, forge: Forge, app: Repository, loaded: Mirrored, tmp_path: Path) -> None:
    numbers = [number for number in app.threads if number % 10 == 0]
    delete(forge, app, numbers)
    WAYS[way](loaded, numbers)
    loaded.reconcile()
    assert removed(loaded) == 6
    assert loaded.threads() == cold_load(loaded, tmp_path / "cold")


def removed(mirrored: Mirrored) -> int:
    return sum(thread.deleted for thread in mirrored.settled().values())


def test_what_waits_and_is_seen_again_stays(forge: Forge, app: Repository, loaded: Mirrored) -> None:
    before = loaded.threads()
    hidden = Fault(match=r"/(issues|pulls)/\d+", kind="status", status=404, times=None)
    loaded.server.faults.add(hidden)
    loaded.server.faults.add(Fault(match=r"/issues\?", kind="body", body=b"[]", times=None))
    assert loaded.reconcile().withheld
    assert by_a_refresh(loaded, list(app.threads)).withheld  # type: ignore[attr-defined]
    loaded.server.faults.clear()
    assert loaded.reconcile().withheld == []
    assert loaded.threads() == before
    delete(forge, app, [7])
    by_deliveries(loaded, [7])
    assert removed(loaded) == 1


def test_a_repository_that_is_hidden_while_it_is_read_loses_nothing(
    forge: Forge, app: Repository, loaded: Mirrored
) -> None:
    before = loaded.threads()
    loaded.server.faults.add(Fault(match=r"/(issues|pulls)/\d+", kind="status", status=404, times=None))
    loaded.server.faults.add(Fault(match="app$|/repositories/", kind="status", status=404, after=1, times=None))
    with loaded.mirror.open() as store:
        store.touch(2)
    with pytest.raises(SourceNotFound):
        loaded.fetch()
    assert loaded.threads() == before
    loaded.server.faults.clear()
    loaded.fetch()
    assert loaded.threads() == before


def test_comments_that_deliveries_and_counts_tell_of_are_under_the_guard(
    forge: Forge, app: Repository, loaded: Mirrored, tmp_path: Path
) -> None:
    comments = [thread.comments[0] for thread in app.issues()]
    for comment in comments[:4]:
        forge.delete_comment(comment)
    loaded.fetch()
    assert living(loaded) == THREADS - 4
    for comment in comments[4:30:2]:
        forge.delete_comment(comment)
        loaded.deliver(webhooks.issue_comment(SITE, "deleted", comment), at=forge.tick(1))
    for comment in comments[5:30:2]:
        forge.delete_comment(comment)
        loaded.fetch()
    assert loaded.fetch().withheld and loaded.reconcile().withheld
    assert living(loaded) == THREADS - LIMIT
    loaded.reconcile(confirmed=True)
    assert loaded.threads() == cold_load(loaded, tmp_path / "cold")


def living(mirrored: Mirrored) -> int:
    return sum(entry["type"] == "comment" for thread in mirrored.threads().values() for entry in thread["entries"])


def test_many_small_removals_over_days_are_no_large_one(forge: Forge, app: Repository, loaded: Mirrored) -> None:
    for day in range(3):
        numbers = [thread.number for thread in app.issues()][:9]
        delete(forge, app, numbers)
        by_deliveries(loaded, numbers)
        assert removed(loaded) == 9 * (day + 1)
        forge.tick(timedelta(days=1).total_seconds() + 60)


def test_discussions_and_releases_wait_too(forge: Forge, app: Repository, loaded: Mirrored) -> None:
    loaded.deliver(*(discussion("created", 1000 + number) for number in range(30)), api=False)
    loaded.deliver(*(discussion("deleted", 1000 + number) for number in range(30)))
    assert sum(key.startswith("discussion") for key in loaded.threads()) == 30
    loaded.reconcile()
    assert sum(key.startswith("discussion") for key in loaded.threads()) == 30
    loaded.reconcile(confirmed=True)
    assert sum(key.startswith("discussion") for key in loaded.threads()) == 0


# States that go back.


def test_a_state_whose_time_moves_back_is_taken(
    forge: Forge, app: Repository, loaded: Mirrored, tmp_path: Path
) -> None:
    """A restored Enterprise Server: what changed last has an earlier change again, and other words."""
    issue, pull = app.threads[1], app.threads[2]
    late = []
    forge.edit_thread(issue, body="after the backup")
    forge.edit_comment(issue.comments[0], "after the backup")
    late += [webhooks.thread(SITE, "edited", issue), webhooks.issue_comment(SITE, "edited", issue.comments[0])]
    forge.edit_review(pull.the_pull().reviews[0], "after the backup")
    forge.merge(pull)
    late.append(webhooks.thread(SITE, "closed", pull))
    sent_at = forge.tick(1)
    loaded.fetch()
    back = timedelta(hours=3)
    issue.body, issue.updated_at = "from the backup", issue.updated_at - back
    issue.comments[0].body, issue.comments[0].updated_at = "from the backup", issue.comments[0].updated_at - back
    pull.closed_at, pull.the_pull().merged_at, pull.updated_at = None, None, pull.updated_at - back
    pull.the_pull().reviews[0].body = "from the backup"
    forge.tick(600)
    loaded.fetch()
    assert loaded.threads() == cold_load(loaded, tmp_path / "cold")
    before = loaded.threads()
    loaded.deliver(*late, at=sent_at)
    loaded.deliver(*late, at=sent_at, api=False)
    assert loaded.threads() == before


def test_an_older_thread_whose_time_moves_back_is_taken_by_reconciliation(
    forge: Forge, app: Repository, loaded: Mirrored, tmp_path: Path
) -> None:
    for number in (3, 4, 50):
        thread = app.threads[number]
        thread.body, thread.updated_at = "from the backup", thread.updated_at - timedelta(days=2)
        thread.comments[0].body = "from the backup"
        thread.comments[0].updated_at -= timedelta(days=2)
    assert loaded.reconcile().withheld == []
    assert loaded.threads() == cold_load(loaded, tmp_path / "cold")


def test_a_deletion_that_was_sent_before_github_listed_the_thread_is_late(
    forge: Forge, app: Repository, loaded: Mirrored
) -> None:
    loaded.deliver(webhooks.thread(SITE, "deleted", app.threads[1]), at=forge.now - timedelta(days=3))
    late = webhooks.issue_comment(SITE, "deleted", app.threads[3].comments[0])
    loaded.deliver(late, at=forge.now - timedelta(days=3))
    assert removed(loaded) == 0 and living(loaded) == THREADS
