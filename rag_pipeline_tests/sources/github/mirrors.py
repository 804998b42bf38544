"""A mirror of an emulated repository, and what it holds: what tests of reading, reconciling and deliveries share."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rag_pipeline.settings import Settings
from rag_pipeline.sources.github.apply import ApplyReport, apply_touches
from rag_pipeline.sources.github.client import GitHubClient
from rag_pipeline.sources.github.deliveries import interpret
from rag_pipeline.sources.github.fetch import fetch
from rag_pipeline.sources.github.listings import FetchReport
from rag_pipeline.sources.github.mirror import GitHubMirror
from rag_pipeline.sources.github.reconcile import ReconcileReport, reconcile
from rag_pipeline.sources.github.resources import instant
from rag_pipeline.sources.github.stage import Access, client_of
from rag_pipeline_tests.github_server.server import GitHubServer


@dataclass
class Mirrored:
    """The mirror of `acme/app` on a server, in a folder of its own."""

    home: Path
    server: GitHubServer
    name: str = "acme/app"
    github: Mapping[str, Any] = field(default_factory=dict)
    slept: list[float] = field(default_factory=list)

    @property
    def settings(self) -> Settings:
        return Settings.model_validate({
            "home": self.home, "repositories": [{"github": self.name, "name": "app", "tenant": "acme"}],
            "github": {"base_url": self.server.url, **self.github},
        })  # fmt: skip

    @property
    def mirror(self) -> GitHubMirror:
        return GitHubMirror(self.settings, self.settings.repositories[0])

    @property
    def now(self) -> datetime:
        return self.server.forge.now

    def client(self) -> GitHubClient:
        def sleep(seconds: float) -> None:
            self.slept.append(seconds)
            self.server.forge.tick(seconds)

        access = Access(environ={}, clock=lambda: self.server.forge.now, sleep=sleep)
        return client_of(self.settings, self.settings.repositories[0], access)

    def fetch(self) -> FetchReport:
        with self.client() as client:
            return fetch(self.mirror, client, now=self.server.forge.tick(1))

    def reconcile(self, *, confirmed: bool = False, indexed: Any = ()) -> ReconcileReport:
        with self.client() as client:
            return reconcile(
                self.mirror, client, limits=self.settings.github, indexed=indexed, confirmed=confirmed,
                now=self.server.forge.tick(1),
            )  # fmt: skip

    def deliver(self, *deliveries: tuple[str, Any], api: bool = True, at: datetime | None = None) -> ApplyReport:
        at = at or self.server.forge.tick(1)
        received = instant(at.timestamp())
        touches = [(interpret(event, payload, received_at=received), at) for event, payload in deliveries]
        touches = [
            (touch, at) for touch, at in touches if not touch.ignored and touch.kind not in ("push", "repository")
        ]
        if not api:
            return apply_touches(self.mirror, None, touches, now=at)
        with self.client() as client:
            return apply_touches(self.mirror, client, touches, now=at)

    def threads(self) -> dict[str, Any]:
        """Every living thread as it is settled, by kind and number."""
        with self.mirror.open() as store:
            return {
                f"{thread.kind} {thread.number}": json.loads(store.content(thread.kind, thread.number))
                for thread in store.threads()
                if not thread.deleted
            }

    def thread(self, number: int, *, kind: str = "issue") -> Any:
        return self.threads()[f"{kind} {number}"]


def moment(day: int, hour: int = 12) -> datetime:
    """A time in May 2024."""
    return datetime(2024, 5, day, hour, tzinfo=UTC)
