"""Whatever happens on GitHub, and whatever way it is told: in the end the mirror is what a first load would read."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest

from rag_pipeline.errors import RagPipelineError
from rag_pipeline.sources.github.deliveries import Touch
from rag_pipeline_tests.github_server.changes import KINDS, random_change
from rag_pipeline_tests.github_server.faults import Fault, Kind
from rag_pipeline_tests.github_server.generated import generate
from rag_pipeline_tests.github_server.model import Forge
from rag_pipeline_tests.github_server.nouns import Repository
from rag_pipeline_tests.long import long
from rag_pipeline_tests.sources.github.mirrors import Mirrored, cold_load, served, touch_of

# A remark that is deleted leaves a trace only where nothing else in its thread changed.
TRACELESS = ("delete_issue", "transfer_issue", "convert_to_discussion", "delete_review_comment")
DATED = sorted(kind for kind in KINDS if not kind.startswith("silent") and kind not in TRACELESS)
"""Changes that leave a trace in what GitHub lists as changed lately."""
ADDRESSES = (
    r"/issues\?", r"/issues/comments\?", r"/pulls/comments\?", r"/pulls\?", r"/issues/\d+$", r"/issues/\d+/comments",
    r"/pulls/\d+$", r"/pulls/\d+/comments", "/reviews", "/repos/acme/[^/]*$", "comments/", "/files", "^",
)  # fmt: skip
BREAKS: tuple[Kind, ...] = ("status", "truncated", "cut", "close", "html", "primary", "secondary", "body")


@dataclass
class Story:
    """What happens to a repository and its mirror, drawn from a seed."""

    mirrored: Mirrored
    repository: Repository
    rng: Random
    kinds: Collection[str] = ()
    sent: list[tuple[Touch, datetime]] = field(default_factory=list)
    told: list[str] = field(default_factory=list)

    @property
    def forge(self) -> Forge:
        return self.mirrored.server.forge

    def change(self) -> None:
        for _ in range(self.rng.randint(1, 4)):
            made = random_change(self.forge, self.rng, repository=self.repository, kinds=self.kinds)
            self.told.append(made.description)
            for delivery in made.deliveries:
                touch, at = touch_of(delivery, self.forge.now + timedelta(milliseconds=len(self.sent)))
                if touch.repository is not None and touch.repository.id == self.repository.id:
                    self.sent.append((touch, at))

    def deliver(self) -> None:
        """Some of what was ever sent, in any order, some of it twice, some received only now."""
        some = self.rng.sample(self.sent, min(len(self.sent), self.rng.randint(1, 5)))
        some += some[: self.rng.randint(0, 2)]
        late = [(touch, self.forge.now if self.rng.random() < 0.2 else at) for touch, at in some]
        if late:
            self.mirrored.apply(*late, api=self.rng.random() < 0.5)

    def fetch(self) -> None:
        self.mirrored.fetch()

    def reconcile(self) -> None:
        self.mirrored.reconcile(confirmed=self.rng.random() < 0.5)

    def change_meanwhile(self) -> None:
        """Something changes while the mirror reads."""
        self.mirrored.server.faults.add(
            Fault(match=self.rng.choice(ADDRESSES), kind="act", after=self.rng.randint(0, 4), action=self.change)
        )

    def break_something(self) -> None:
        match, kind = self.rng.choice(ADDRESSES), self.rng.choice(BREAKS)
        if kind == "body":
            # An empty list instead of the true one; of files and reviews nothing would tell that it is wrong.
            match = f"^(?!.*/(files|reviews)).*{match}"
        self.mirrored.server.faults.add(
            Fault(
                match=match, kind=kind, after=self.rng.randint(0, 6), times=self.rng.randint(1, 3), seconds=3000,
                retry_after=self.rng.choice((1, 3000)),
            )
        )  # fmt: skip

    def happen(self, *actions: Callable[[], None], steps: int) -> None:
        """So many of these, at random; what ends one early is no harm."""
        for _ in range(steps):
            action = self.rng.choice(actions)
            self.told.append(action.__name__)
            try:
                action()
            except RagPipelineError as error:
                assert self.mirrored.server.faults.pending, error
            self.check_that_nothing_is_buried_alive()

    def check_that_nothing_is_buried_alive(self) -> None:
        buried = {found.number for found in self.mirrored.settled().values() if found.deleted}
        assert not buried & set(self.repository.threads), self.told

    def mend(self) -> None:
        self.mirrored.server.faults.clear()
        self.forge.tick(4000)

    def check(self, folder: Path) -> None:
        """The mirror is what a first load reads now."""
        found, wanted = self.mirrored.threads(), cold_load(self.mirrored, folder / "cold")
        for key in sorted({*found, *wanted}):
            assert found.get(key) == wanted.get(key), (key, self.told)
        assert self.mirrored.fetch().waiting == 0
        before = self.mirrored.last_seq()
        self.mirrored.fetch()
        assert self.mirrored.last_seq() == before


@contextmanager
def story(seed: int, *, kinds: Collection[str] = (), folder: Path) -> Iterator[Story]:
    """A repository with some history and another one, read once."""
    forge = Forge()
    repository = generate(forge, seed=seed, full_name="acme/app", issues=12, pulls=8)
    forge.add_repository("acme/other")
    with served(forge) as server:
        mirrored = Mirrored(home=folder / "home", server=server)
        mirrored.fetch()
        yield Story(mirrored, repository, Random(seed), kinds)


def changes_reach_a_mirror_that_also_reconciles(seed: int, folder: Path) -> None:
    with story(seed, folder=folder) as each:
        each.happen(
            each.change, each.change, each.fetch, each.deliver, each.deliver, each.reconcile, each.change_meanwhile,
            steps=16,
        )  # fmt: skip
        each.mend()
        each.mirrored.reconcile(confirmed=True)
        each.check(folder)


def dated_changes_reach_a_mirror_that_only_fetches(seed: int, folder: Path) -> None:
    with story(seed, kinds=DATED, folder=folder) as each:
        each.happen(each.change, each.change, each.fetch, each.change_meanwhile, steps=16)
        each.mend()
        each.mirrored.fetch()
        each.check(folder)


def changes_reach_a_mirror_whose_readings_break(seed: int, folder: Path) -> None:
    with story(seed, folder=folder) as each:
        each.happen(
            each.change, each.fetch, each.fetch, each.deliver, each.reconcile, each.break_something,
            each.break_something, each.change_meanwhile, steps=22,
        )  # fmt: skip
        each.mend()
        each.mirrored.fetch()
        each.mirrored.reconcile(confirmed=True)
        each.check(folder)


def a_first_load_that_breaks_again_and_again_is_whole_in_the_end(seed: int, folder: Path) -> None:
    with story(seed, kinds=DATED, folder=folder) as each:
        each.mirrored = each.mirrored.elsewhere(folder / "broken")
        for _ in range(8):
            each.break_something()
            each.change_meanwhile()
            each.change()
            try:
                each.fetch()
            except RagPipelineError as error:
                assert each.mirrored.server.faults.pending, error
        each.mend()
        each.mirrored.fetch()
        each.mirrored.fetch()
        each.check(folder)


PROPERTIES = (
    changes_reach_a_mirror_that_also_reconciles,
    dated_changes_reach_a_mirror_that_only_fetches,
    changes_reach_a_mirror_whose_readings_break,
    a_first_load_that_breaks_again_and_again_is_whole_in_the_end,
)
every_property = pytest.mark.parametrize("holds", PROPERTIES, ids=[each.__name__ for each in PROPERTIES])


@every_property
@pytest.mark.parametrize("seed", range(3))
def test_quickly(holds: Callable[[int, Path], Any], seed: int, tmp_path: Path) -> None:
    holds(seed, tmp_path)


@long
@pytest.mark.slow
@every_property
def test_at_length(holds: Callable[[int, Path], Any]) -> None:
    for seed in range(100, 160):
        with tempfile.TemporaryDirectory() as folder:
            holds(seed, Path(folder))
