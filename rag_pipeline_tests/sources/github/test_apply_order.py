"""In whatever order and however often deliveries arrive, and whatever comes between, the mirror ends up the same."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from rag_pipeline.sources.github.deliveries import Touch
from rag_pipeline_tests.github_server.changes import KINDS, random_change
from rag_pipeline_tests.github_server.generated import generate
from rag_pipeline_tests.github_server.model import Forge
from rag_pipeline_tests.github_server.server import GitHubServer
from rag_pipeline_tests.github_server.webhooks import Delivery
from rag_pipeline_tests.sources.github.mirrors import Mirrored, cold_load, served, touch_of

TOLD = sorted(
    kind for kind in KINDS
    if not kind.startswith("silent") and kind not in ("convert_to_discussion", "rename_repository", "push")
)  # fmt: skip
"""Changes of which the deliveries tell all but the files of a new pull request."""
_MODERATE = settings(
    max_examples=6, deadline=None, derandomize=True, phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)  # fmt: skip


@dataclass(frozen=True)
class Told:
    """What happened in a repository, as its deliveries tell, and what it holds in the end."""

    touches: Sequence[tuple[Touch, datetime]]
    threads: dict[str, Any]


def happen(mirrored: Mirrored, seed: int, folder: Path, *, changes: int = 12) -> Told:
    """Random changes, the deliveries each a fraction of a second after the other."""
    forge, rng, touches = mirrored.server.forge, Random(seed), []
    app = forge.repository("acme/app")
    for _ in range(changes):
        for delivery in random_change(forge, rng, repository=app, kinds=TOLD).deliveries:
            at = forge.now + timedelta(milliseconds=len(touches) + 1)
            touch, _ = touch_of(delivery, at)
            if touch.repository is not None and touch.repository.id == app.id:
                touches.append((touch, at))
    forge.tick(60)
    return Told(touches=touches, threads=without_files(cold_load(mirrored, folder / "cold")))


def without_files(threads: dict[str, Any]) -> dict[str, Any]:
    """No delivery lists them."""
    return {key: thread | {"files": []} if "files" in thread else thread for key, thread in threads.items()}


@contextmanager
def happened(seed: int) -> Iterator[tuple[Mirrored, Told]]:
    """A mirror that has read a made repository, and what was told of it since."""
    forge = Forge()
    generate(forge, seed=seed, full_name="acme/app", issues=4, pulls=3)
    forge.add_repository("acme/other")
    with served(forge) as server, tempfile.TemporaryDirectory() as folder:
        mirrored = Mirrored(home=Path(folder), server=server)
        mirrored.fetch()
        yield mirrored, happen(mirrored, seed, Path(folder))


@_MODERATE
@given(seed=st.integers(0, 1000), data=st.data())
def test_deliveries_in_any_order_and_any_batches_tell_what_happened(seed: int, data: st.DataObject) -> None:
    with happened(seed) as (mirrored, told):
        twice = [*range(len(told.touches)), *range(0, len(told.touches), 3)]
        order = data.draw(st.permutations(twice))
        while order:
            size = data.draw(st.integers(1, 5))
            mirrored.apply(*(told.touches[index] for index in order[:size]), api=False)
            order = order[size:]
        assert without_files(mirrored.threads()) == told.threads
        before = mirrored.last_seq()
        mirrored.apply(*told.touches, api=False)
        assert mirrored.last_seq() == before


@_MODERATE
@given(seed=st.integers(0, 1000), data=st.data())
def test_deliveries_late_between_readings_change_nothing(seed: int, data: st.DataObject) -> None:
    with happened(seed) as (mirrored, told):
        mirrored.fetch()
        # A reading cannot see that a remark is gone where something else changed as well.
        gone = [(touch, at) for touch, at in told.touches if touch.thread_gone or touch.gone]
        mirrored.apply(*gone, api=False)
        for index in data.draw(st.permutations(range(len(told.touches)))):
            mirrored.apply(told.touches[index], api=data.draw(st.booleans()))
            assert without_files(mirrored.threads()) == told.threads


# What only deliveries tell of.


def discussion(action: str, number: int = 3, *, title: str = "How?", at: int = 1, **more: Any) -> Delivery:
    about = {"number": number, "title": title, "body": "Like this?", "updated_at": f"2024-05-01T12:00:{at:02}Z"}
    event = "discussion_comment" if "comment" in more else "discussion"
    return _delivery(event, action, discussion=about | {"user": {"login": "ada"}}, **more)


def comment(id_: int, body: str, *, at: int = 1) -> dict[str, Any]:
    when = f"2024-05-01T12:00:{at:02}Z"
    return {"id": id_, "body": body, "user": {"login": "grace"}, "created_at": when, "updated_at": when}


def release(action: str, *, body: str = "News.", tag: str = "v1") -> Delivery:
    about = {
        "id": 5, "tag_name": tag, "name": None, "body": body, "html_url": "https://github.com/acme/app/releases/5",
        "author": None, "created_at": "2024-05-01T12:00:00Z", "published_at": "2024-05-02T12:00:00Z",
    }  # fmt: skip
    return _delivery("release", action, release=about)


def _delivery(event: str, action: str, **parts: Any) -> Delivery:
    repository = {"id": 1_000_001, "full_name": "acme/app", "html_url": "https://github.com/acme/app"}
    return Delivery(event=event, payload={"action": action, "repository": repository, **parts})


@pytest.fixture
def mirrored(server: GitHubServer, tmp_path: Path) -> Mirrored:
    """Of a repository that was never asked for."""
    return Mirrored(home=tmp_path, server=server)


@pytest.mark.parametrize("api", [True, False])
def test_a_discussion_is_what_was_said_in_it(api: bool, mirrored: Mirrored) -> None:
    mirrored.deliver(discussion("created", at=1), api=api)
    mirrored.deliver(discussion("created", at=5, comment=comment(9, "So.", at=5)), api=api)
    mirrored.deliver(discussion("edited", title="How, then?", at=7), api=api)
    mirrored.deliver(discussion("created", at=4, comment=comment(8, "Earlier.", at=4)), api=api)
    found = mirrored.threads()["discussion 3"]
    assert (found["title"], found["reference"]) == ("How, then?", "acme/app#3")
    assert found["url"] == "https://github.com/acme/app/discussions/3"
    assert [entry["body"] for entry in found["entries"]] == ["Earlier.", "So."]
    assert [entry["anchor"] for entry in found["entries"]] == ["#discussioncomment-8", "#discussioncomment-9"]
    assert mirrored.server.count() == 0


def test_a_deleted_discussion_stays_deleted(mirrored: Mirrored) -> None:
    mirrored.deliver(discussion("created"), discussion("deleted"), api=False)
    mirrored.deliver(discussion("edited", at=9), discussion("created", at=9, comment=comment(9, "Late.")), api=False)
    assert mirrored.threads() == {}
    mirrored.deliver(discussion("created", 4), api=False)
    mirrored.deliver(discussion("deleted", 4, comment=comment(9, "Gone.")), api=False)
    assert mirrored.threads()["discussion 4"]["entries"] == []


def test_a_release_is_its_notes(mirrored: Mirrored) -> None:
    mirrored.deliver(release("published", body="See #7."))
    found = mirrored.threads()["release 5"]
    assert (found["title"], found["reference"], found["links"]) == ("v1", "acme/app@v1", ["acme/app#7"])
    assert (found["url"], found["number"]) == ("https://github.com/acme/app/releases/5", None)
    mirrored.deliver(release("edited", body="Better."))
    assert mirrored.threads()["release 5"]["body"] == "Better."
    mirrored.deliver(release("deleted"))
    mirrored.deliver(release("edited", body="Late."))
    assert mirrored.threads() == {}


def test_what_only_deliveries_tell_of_outlives_fetches_reconciliations_and_a_rename(
    forge: Forge, mirrored: Mirrored
) -> None:
    app = forge.add_repository("acme/app")
    forge.open_issue(app)
    mirrored.deliver(discussion("created", comment=comment(9, "So.")), release("published"))
    assert mirrored.fetch().waiting == 0
    mirrored.reconcile()
    assert set(mirrored.threads()) == {"issue 1", "discussion 3", "release 5"}
    forge.rename_repository(app, "acme/product")
    assert mirrored.fetch().waiting == 0
    assert mirrored.threads()["discussion 3"]["reference"] == "acme/product#3"
    assert mirrored.threads()["release 5"]["reference"] == "acme/product@v1"
