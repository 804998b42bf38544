"""A real project's two years, replayed: https://github.com/cfrg/draft-irtf-cfrg-vdaf at thirty dates."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from rag_pipeline_tests.github_server.archive import Snapshot, become, differences, read, snapshots
from rag_pipeline_tests.github_server.model import Forge
from rag_pipeline_tests.sources.github.mirrors import Mirrored, cold_load, served

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not snapshots(), reason="RAG_TEST_DATA names no folder with the archive"),
]


def test_a_fetch_at_each_date_ends_where_a_first_load_does_and_asks_for_what_changed(tmp_path: Path) -> None:
    forge = Forge()
    states = [read(path) for path in snapshots()]
    repository = become(forge, states[0])
    with served(forge) as server:
        mirrored = Mirrored(home=tmp_path / "home", server=server, name=repository.full_name)
        first = len(mirrored.asked_by_fetch())
        pulls = len(repository.pulls())
        print(f"\n{len(repository.threads)} threads, of them {pulls} pull requests: {first} requests")
        for before, after in pairwise(states):
            become(forge, after)
            asked = len(mirrored.asked_by_fetch())
            changed, changed_pulls = numbers(before, after)
            print(f"{after['timestamp']}: {changed} threads changed, {changed_pulls} pull requests: {asked} requests")
            # The listings; of each pull request its reviews, its remarks and its files; of few threads the comments.
            assert asked <= 5 + changed + 2 * changed_pulls
        wanted = cold_load(mirrored, tmp_path / "cold")
        # A label was taken out of the repository, which moves no thread's date.
        assert without_labels(mirrored.threads()) == without_labels(wanted)
        server.clear_requests()
        report = mirrored.reconcile(confirmed=True)
        print(f"reconciliation: {server.count()} requests, {server.count(status=304)} not modified; {report.listed}")
        assert mirrored.threads() == wanted
        assert mirrored.reconcile().fetched.settled == 0


def without_labels(threads: dict[str, Any]) -> dict[str, Any]:
    return {key: thread | {"labels": []} for key, thread in threads.items()}


def numbers(before: Snapshot, after: Snapshot) -> tuple[int, int]:
    """How many threads changed or came, and how many of these are pull requests."""
    found = differences(before, after)
    changed = found["added"] | found["changed"]
    return len(changed), len(changed & {pull["number"] for pull in after["pulls"]})
