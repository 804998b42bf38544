"""An emulated GitHub with one repository that people talk in, and an installation that indexes it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from rag_pipeline.defs import plots
from rag_pipeline_tests.end_to_end.installation import Installation
from rag_pipeline_tests.github_server.model import Forge
from rag_pipeline_tests.github_server.nouns import Repository
from rag_pipeline_tests.github_server.server import GitHubServer

FIRST_DAY = date(2024, 4, 22)


@pytest.fixture
def drawn() -> None:
    """Asked for by tests whose runs draw their pictures."""


@pytest.fixture(autouse=True)
def _not_drawn(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other tests' runs draw none: it takes a good part of the time of a run so small."""
    if "drawn" not in request.fixturenames:
        monkeypatch.setattr(plots, "_image", lambda title, draw: f"![{title}]()")


@pytest.fixture
def forge() -> Forge:
    """A forge on the second of May, noon."""
    return Forge(now=datetime(2024, 5, 2, 12, tzinfo=UTC))


@pytest.fixture
def rocket(forge: Forge) -> Repository:
    """An empty repository of it."""
    return forge.add_repository("acme/rocket")


@pytest.fixture
def github(forge: Forge) -> Iterator[GitHubServer]:
    """The forge, served; its clock is the forge's."""
    with GitHubServer(forge, tokens=["secret"]) as server:
        server.clock = lambda: forge.now
        yield server


@pytest.fixture
def threads(tmp_path: Path, database: str, github: GitHubServer, rocket: Repository) -> Installation:
    """An installation that indexes the repository's pull requests and issues."""
    return indexing(github, tmp_path / "home", database)


def indexing(github: GitHubServer, home: Path, database: str, **settings: object) -> Installation:
    """An installation of `acme/rocket`'s pull requests and issues, from ten days ago on."""
    repositories = settings.pop("repositories", [{"github": "acme/rocket", "name": "rocket"}])
    return Installation(
        home, database, repositories, start_date=FIRST_DAY, now=github.forge.now, github=github, **settings
    )
