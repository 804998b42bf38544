"""A forge with one repository, its server, and a client of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rag_pipeline_tests.github_server.client import Client
from rag_pipeline_tests.github_server.model import Forge
from rag_pipeline_tests.github_server.nouns import Repository
from rag_pipeline_tests.github_server.server import GitHubServer


@pytest.fixture
def forge() -> Forge:
    """An empty forge."""
    return Forge()


@pytest.fixture
def rocket(forge: Forge) -> Repository:
    """Its repository."""
    return forge.add_repository("acme/rocket")


@pytest.fixture
def github(forge: Forge) -> Iterator[GitHubServer]:
    """The forge, served."""
    with GitHubServer(forge, tokens=["secret"]) as server:
        yield server


@pytest.fixture
def client(github: GitHubServer) -> Iterator[Client]:
    """An anonymous client."""
    client = Client(github)
    yield client
    client.close()


@pytest.fixture
def member(github: GitHubServer) -> Iterator[Client]:
    """A client with a token."""
    client = Client(github, token="secret")
    yield client
    client.close()
