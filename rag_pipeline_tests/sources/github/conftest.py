"""A forge with one repository, served, and its mirror."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rag_pipeline_tests.github_server.model import Forge
from rag_pipeline_tests.github_server.nouns import Repository, Thread
from rag_pipeline_tests.github_server.server import GitHubServer
from rag_pipeline_tests.sources.github.mirrors import Mirrored, served


@pytest.fixture
def forge() -> Forge:
    """An empty forge."""
    return Forge()


@pytest.fixture
def app(forge: Forge) -> Repository:
    """Its repository."""
    return forge.add_repository("acme/app")


@pytest.fixture
def issue(forge: Forge, app: Repository) -> Thread:
    """An issue with a comment."""
    issue = forge.open_issue(app)
    forge.comment(issue, "An old comment.")
    return issue


@pytest.fixture
def server(forge: Forge) -> Iterator[GitHubServer]:
    """The forge, served; its clock is the server's."""
    with served(forge) as server:
        yield server


@pytest.fixture
def mirrored(server: GitHubServer, app: Repository, tmp_path: Path) -> Mirrored:
    """The repository's mirror, of which nothing is read yet."""
    return Mirrored(home=tmp_path / "home", server=server)
