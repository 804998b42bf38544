"""Whatever happens in whatever order: the index equals that of an installation which reads the end alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from random import Random

import pytest

from rag_pipeline_tests.end_to_end.conftest import FIRST_DAY, indexing
from rag_pipeline_tests.end_to_end.installation import Installation
from rag_pipeline_tests.github_server.changes import KINDS, Change, random_change
from rag_pipeline_tests.github_server.generated import generate
from rag_pipeline_tests.github_server.model import Forge
from rag_pipeline_tests.github_server.server import GitHubServer
from rag_pipeline_tests.long import long

REPOSITORIES = [{"github": "acme/rocket", "name": "rocket"}, {"github": "acme/engine", "name": "engine"}]
# A drop is taken by a run of its own, as the sensor launches it.
DROP_ASSETS = ("raw_webhook_drops", "documents", "chunks", "embeddings", "knowledge_index")
# What a listing of changes does not show: these need a delivery or a reconciliation.
UNSEEN = {
    "delete_issue", "transfer_issue", "convert_to_discussion", "silent_edit_body", "silent_edit_comment",
    "silent_delete_comment", "silent_rename_label",
}  # fmt: skip
UNDELIVERED = {"convert_to_discussion", "silent_rename_label"}


class World:
    """Two repositories that live, and an installation that follows them in a way that chance decides."""

    def __init__(
        self, forge: Forge, github: GitHubServer, home: Path, database: str, *, seed: int,
        kinds: Collection[str] = KINDS, deliveries: Sequence[int] = (0, 0, 1, 1, 2), may_reconcile: bool = True,
    ) -> None:  # fmt: skip
        self.rng = Random(seed)
        self.kinds = kinds
        self.deliveries = deliveries
        self.may_reconcile = may_reconcile
        self.forge = forge
        self.github = github
        generate(forge, seed=seed, full_name="acme/rocket", issues=4, pulls=3, comments=1, reviews=0.7, days=9)
        generate(forge, seed=seed + 1, full_name="acme/engine", issues=2, pulls=1, comments=1, days=6)
        self.installation = indexing(github, home, database, repositories=REPOSITORIES)
        self.knowledge: list[tuple[str, str]] = []
        self.delivered = 0
        self.happened: list[str] = []

    def live(self, steps: int) -> None:
        """So many things happen."""
        actions: list[tuple[int, Callable[[], object]]] = [
            (9, self.change), (3, self.refresh), (2, self.drop_knowledge), (2, self.take_drops), (1, self.reconcile),
            (1, self.run_some_day), (1, self.die), (2, self.wait),
        ]  # fmt: skip
        weights, choices = zip(*actions, strict=True)
        for _ in range(steps):
            (action,) = self.rng.choices(choices, weights)
            self.happened.append(action.__name__)
            action()

    def change(self) -> None:
        """People do something; some of it is delivered, late, twice or never."""
        for _ in range(self.rng.randint(1, 6)):
            change = random_change(self.forge, self.rng, kinds=self.kinds, site=self.github.site)
            self.happened.append(change.description)
            self.deliver(change)

    def deliver(self, change: Change) -> None:
        for delivery in change.deliveries:
            for _ in range(self.rng.choice(self.deliveries)):
                self.delivered += 1
                name = f"{delivery.event}.{self.delivered}.json"
                self.installation.drop(name, json.dumps(delivery.payload), seconds_ago=self.rng.uniform(3, 90))

    def refresh(self) -> None:
        self.installation.refresh()

    def take_drops(self) -> None:
        """Sometimes GitHub cannot be asked, and what the deliveries tell is all there is."""
        self.installation.environ = {"GITHUB_TOKEN": self.rng.choice(("secret", "secret", "revoked"))}
        try:
            self.installation.run(self.installation.now.date(), select=DROP_ASSETS)
        finally:
            self.installation.environ = {}

    def drop_knowledge(self) -> None:
        """Records with times of their own: what is dropped late may be old."""
        about = {"id": f"note-{self.rng.randint(1, 4)}", "title": f"Note {self.rng.randint(1, 3)}"}
        about |= {"scope": self.rng.choice((None, "user:ada", "user:bob"))}
        moment = self.installation.now.timestamp() - self.rng.uniform(0, 3 * 86400)
        said = self.rng.choice(({"deleted": True}, {"content": f"It says {self.rng.random()} now."}))
        name = f"note.{len(self.knowledge)}.json"
        self.knowledge.append((name, json.dumps(about | said | {"updated_at": moment})))
        self.installation.drop(*self.knowledge[-1])

    def reconcile(self) -> None:
        if self.may_reconcile:
            self.installation.reconcile(confirm=self.rng.random() < 0.5)

    def run_some_day(self) -> None:
        last = self.installation.now.date()
        first = FIRST_DAY.fromordinal(self.rng.randint(FIRST_DAY.toordinal(), last.toordinal()))
        self.installation.run(first, self.rng.choice((first, last)))

    def die(self) -> None:
        """Somebody kills a run while it embeds, if it has anything to embed."""
        self.installation.embedder.fail_after = len(self.installation.embedder.embedded)
        try:
            self.rng.choice((self.refresh, self.take_drops, self.reconcile))()
        except (KeyboardInterrupt, AssertionError) as death:
            assert "KeyboardInterrupt" in repr(death)  # Dagster reports some of them as a failed run
            self.happened.append("died")
        finally:
            self.installation.embedder.fail_after = None

    def wait(self) -> None:
        self.installation.pass_time(self.rng.uniform(60, 2 * 86400))

    def settle(self) -> None:
        """In the end all is taken, refreshed and, if that may be, compared."""
        self.installation.refresh()
        if self.may_reconcile:
            self.installation.reconcile(confirm=True)

    def cold(self, home: Path, database: str) -> Installation:
        """An installation that reads it all at once, and the drops in another order."""
        installation = indexing(self.github, home, database, repositories=REPOSITORIES)
        self.rng.shuffle(self.knowledge)
        for name, content in self.knowledge:
            installation.drop(name, content)
        installation.refresh()
        return installation


def follow(world: World, steps: int, tmp_path: Path, other_database: str) -> None:
    """Let it live, and compare what it has become with a cold load."""
    world.live(steps)
    world.settle()
    cold = world.cold(tmp_path / "cold", other_database)
    found, expected = world.installation.shown(), cold.shown()
    assert found.keys() == expected.keys(), world.happened
    different = {key: (found[key], expected[key]) for key in found if found[key] != expected[key]}
    assert different == {}, world.happened
    assert world.installation.failures() == cold.failures() == []
    # What the last drops did to the mirror is nothing new for the index, but for the progress that it remembers.
    embedded = len(world.installation.embedder.embedded)
    world.installation.refresh()
    assert world.installation.shown() == found
    before = world.installation.rows()
    world.installation.refresh()
    assert world.installation.rows() == before
    assert len(world.installation.embedder.embedded) == embedded


@pytest.mark.parametrize("seed", [2, 3])
def test_changes_drops_refreshes_and_reconciliations_end_in_the_cold_index(
    seed, forge, github, tmp_path, database, other_database
):
    follow(World(forge, github, tmp_path / "home", database, seed=seed), 8, tmp_path, other_database)


@pytest.mark.slow
def test_refreshes_alone_end_in_the_cold_index(forge, github, tmp_path, database, other_database):
    kinds = KINDS - UNSEEN
    world = World(
        forge, github, tmp_path / "home", database, seed=5, kinds=kinds, deliveries=(0, 1), may_reconcile=False
    )
    follow(world, 8, tmp_path, other_database)


@long
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 112))
def test_long_histories_end_in_the_cold_index(seed, forge, github, tmp_path, database, other_database):
    follow(World(forge, github, tmp_path / "home", database, seed=seed), 45, tmp_path, other_database)


@long
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(200, 208))
def test_long_histories_without_reconciliation_end_in_the_cold_index(
    seed, forge, github, tmp_path, database, other_database
):
    world = World(
        forge, github, tmp_path / "home", database, seed=seed, kinds=KINDS - UNSEEN, may_reconcile=False
    )  # fmt: skip
    follow(world, 45, tmp_path, other_database)


@long
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(300, 308))
def test_where_everything_is_delivered_no_reconciliation_is_needed(
    seed, forge, github, tmp_path, database, other_database
):
    world = World(
        forge, github, tmp_path / "home", database, seed=seed, kinds=KINDS - UNDELIVERED, deliveries=(1, 1, 2),
        may_reconcile=False,
    )  # fmt: skip
    follow(world, 45, tmp_path, other_database)


@long
@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_each_kind_of_change_ends_in_the_cold_index_by_refresh_drop_or_reconciliation(
    kind, forge, github, tmp_path, database, other_database
):
    world = World(forge, github, tmp_path / "home", database, seed=11)
    world.installation.refresh()
    for number in range(3):
        try:
            change = random_change(forge, world.rng, kinds=[kind], site=github.site)
        except ValueError:
            continue  # Nothing can be changed like that here.
        if number < 2:
            world.deliver(change)
            world.take_drops()
            world.refresh()
    world.settle()
    assert world.installation.shown() == world.cold(tmp_path / "cold", other_database).shown()
