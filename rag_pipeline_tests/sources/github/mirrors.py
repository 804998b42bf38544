"""A mirror of an emulated repository, and what it holds: what tests of reading, reconciling and deliveries share."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rag_pipeline.settings import Repository, Settings
from rag_pipeline.sources.github.apply import ApplyReport, apply_touches
from rag_pipeline.sources.github.client import GitHubClient
from rag_pipeline.sources.github.deliveries import Touch, interpret
from rag_pipeline.sources.github.fetch import fetch
from rag_pipeline.sources.github.listings import FetchReport
from rag_pipeline.sources.github.mirror import GitHubMirror
from rag_pipeline.sources.github.reconcile import ReconcileReport, reconcile
from rag_pipeline.sources.github.resources import instant
from rag_pipeline.sources.github.stage import Access, client_of
from rag_pipeline.sources.github.store import Settled
from rag_pipeline_tests.github_server.model import Forge
from rag_pipeline_tests.github_server.server import GitHubServer, Recorded
from rag_pipeline_tests.github_server.webhooks import Delivery


@contextmanager
def served(forge: Forge, *, prefix: str = "", tokens: Collection[str] = ()) -> Iterator[GitHubServer]:
    """A server that lives by the forge's clock, with a quota that no test uses up by accident."""
    with GitHubServer(forge, prefix=prefix, tokens=tokens) as server:
        server.clock = lambda: forge.now
        server.quota.limit = server.quota.remaining = 1_000_000
        yield server


@dataclass
class Mirrored:
    """The mirror of `acme/app` on a server, in a folder of its own."""

    home: Path
    server: GitHubServer
    name: str = "acme/app"
    repository: Mapping[str, Any] = field(default_factory=dict)
    github: Mapping[str, Any] = field(default_factory=dict)
    environ: Mapping[str, str] = field(default_factory=dict)
    slept: list[float] = field(default_factory=list)

    @property
    def settings(self) -> Settings:
        """One repository, and GitHub where the server is."""
        repository = {"github": self.name, "name": "app", "tenant": "acme", **self.repository}
        github = {"base_url": self.server.url, "max_retries": 1, **self.github}
        return Settings.model_validate({"home": self.home, "repositories": [repository], "github": github})

    @property
    def configured(self) -> Repository:
        """The repository as the settings have it."""
        return self.settings.repositories[0]

    @property
    def mirror(self) -> GitHubMirror:
        """The mirror under test."""
        return GitHubMirror(self.settings, self.configured)

    @property
    def access(self) -> Access:
        """Time is the forge's, and waiting lets it pass."""
        return Access(environ=self.environ, clock=lambda: self.server.forge.now, sleep=self._sleep)

    def client(self) -> GitHubClient:
        """As a run would have it."""
        return client_of(self.settings, self.configured, self.access)

    def elsewhere(self, home: Path) -> Mirrored:
        """The same repository, with a mirror that is empty yet."""
        return replace(self, home=home, slept=[])

    def fetch(self) -> FetchReport:
        """A second later: what changed."""
        with self.client() as client:
            return fetch(self.mirror, client, now=self.server.forge.tick(1))

    def asked_by_fetch(self) -> list[Recorded]:
        """Fetch; the requests which that took."""
        self.server.clear_requests()
        report = self.fetch()
        assert not report.stopped
        return list(self.server.requests)

    def reconcile(
        self, *, confirmed: bool = False, indexed: Collection[tuple[str, int]] = (), **limits: float
    ) -> ReconcileReport:
        """A second later: everything."""
        with self.client() as client:
            return reconcile(
                self.mirror, client, limits=self.settings.github.model_copy(update=limits), indexed=indexed,
                confirmed=confirmed, now=self.server.forge.tick(1),
            )  # fmt: skip

    def deliver(self, *deliveries: Delivery, api: bool = True, at: datetime | None = None) -> ApplyReport:
        """A second later, or at that time, deliveries arrive together."""
        at = at or self.server.forge.tick(1)
        return self.apply(*(touch_of(delivery, at) for delivery in deliveries), api=api)

    def apply(self, *touches: tuple[Touch, datetime], api: bool = True) -> ApplyReport:
        """What deliveries touch, with the times at which they came."""
        wanted = [(touch, at) for touch, at in touches if not touch.ignored and touch.kind != "push"]
        now = self.server.forge.now
        if not api:
            return apply_touches(self.mirror, None, wanted, now=now)
        with self.client() as client:
            return apply_touches(self.mirror, client, wanted, now=now)

    def settled(self) -> dict[str, Settled]:
        """All settled threads, tombstones too, by kind and number."""
        with self.mirror.open() as store:
            return {f"{thread.kind} {thread.number}": thread for thread in store.threads()}

    def threads(self) -> dict[str, Any]:
        """Every living thread as it is settled, by kind and number."""
        with self.mirror.open() as store:
            return {
                f"{thread.kind} {thread.number}": json.loads(store.content(thread.kind, thread.number))
                for thread in store.threads()
                if not thread.deleted
            }

    def issue(self, number: int) -> Any:
        """One settled issue."""
        return self.threads()[f"issue {number}"]

    def pull(self, number: int) -> Any:
        """One settled pull request."""
        return self.threads()[f"pull_request {number}"]

    def bodies(self, number: int, *, kind: str = "issue") -> list[str]:
        """What was said in a thread, in order."""
        return [entry["body"] for entry in self.threads()[f"{kind} {number}"]["entries"]]

    def last_seq(self) -> int:
        """Grows with every change of any thread."""
        with self.mirror.open() as store:
            return store.last_seq()

    def problems(self) -> dict[str, str]:
        """What could not be used, and why."""
        with self.mirror.open() as store:
            return dict(store.problems())

    def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.server.forge.tick(seconds)


def touch_of(delivery: Delivery, at: datetime) -> tuple[Touch, datetime]:
    """What a delivery that came at some time touches."""
    return interpret(delivery.event, delivery.payload, received_at=instant(at.timestamp())), at


def cold_load(mirrored: Mirrored, home: Path) -> dict[str, Any]:
    """The threads as somebody sees them who reads the repository for the first time now."""
    fresh = mirrored.elsewhere(home)
    report = fresh.fetch()
    assert not report.stopped and not report.malformed
    return fresh.threads()


def moment(day: int, hour: int = 12) -> datetime:
    """A time in May 2024."""
    return datetime(2024, 5, day, hour, tzinfo=UTC)
