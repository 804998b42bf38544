"""What the fault tests share: a server that may be hurt, a site on it, and putting on record what a fault came to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

import pytest

from rag_pipeline.embedded import EmbeddedPostgres
from rag_pipeline_tests.embedded.servers import temporary_home, temporary_postgres
from rag_pipeline_tests.embedding.fake_service import FakeService, Reply, embeddings, fake_service
from rag_pipeline_tests.embedding.fake_service import Request as Asked
from rag_pipeline_tests.faults.plant import Plant
from rag_pipeline_tests.faults.site import Site, copy_of, databases_of, drop_databases, index_of
from rag_pipeline_tests.faults.table import FAULT
from rag_pipeline_tests.git_repository import GitRepository

TODAY = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


class Record(Protocol):
    """Puts a row into the table."""

    def __call__(self, fault: str, where: str, happened: str, *, rows: int = 0) -> None: ...


@pytest.fixture
def outcome(record_property: Callable[[str, object], None]) -> Record:
    """What the test says that the fault came to."""

    def record(fault: str, where: str, happened: str, *, rows: int = 0) -> None:
        record_property(FAULT, (fault, where, happened, rows))

    return record


@dataclass
class Script:
    """What the embedding service does; as it should unless a test says otherwise."""

    reply: Callable[[Asked], Reply] = embeddings

    def __call__(self, request: Asked) -> Reply:
        return self.reply(request)


@pytest.fixture(scope="session")
def victim() -> Iterator[EmbeddedPostgres]:
    """A PostgreSQL that tests stop, kill and starve; each leaves it running and sound."""
    with temporary_postgres() as server:
        yield server


@pytest.fixture(scope="session")
def _script() -> Script:
    return Script()


@pytest.fixture
def script(_script: Script) -> Iterator[Script]:
    """What the service of all sites does during this test."""
    yield _script
    _script.reply = embeddings


@pytest.fixture(scope="session")
def service(_script: Script) -> Iterator[FakeService]:
    with fake_service(_script) as service:
        yield service


@pytest.fixture(scope="session")
def project() -> Iterator[GitRepository]:
    """A repository of four days, of this week: every day between costs Dagster its bookkeeping."""
    with temporary_home() as folder:  # which other users can enter, too
        yield _written(GitRepository(folder / "project"))


def _written(repository: GitRepository) -> GitRepository:
    for day in range(1, 4):
        repository.commit(TODAY - timedelta(days=6 - day), _pages(day))
    repository.commit(
        TODAY - timedelta(days=2), {"docs/page_1_0.md": None, "docs/page_1_1.md": "# Page\n\nWritten anew.\n"}
    )
    return repository


def _pages(day: int, count: int = 6) -> dict[str, str]:
    """Files of a day, each of several chunks."""
    said = "Page {n} of day {day} says in section {s} what matters about topic {topic}. "
    return {
        f"docs/page_{day}_{n}.md": "\n\n".join(
            f"## Section {s}\n\n" + said.format(n=n, day=day, s=s, topic=day * n + s) * 3 for s in range(4)
        )
        for n in range(count)
    }


@pytest.fixture
def plant(project: GitRepository) -> Iterator[Plant]:
    """An installation with daemons, run workers and a PostgreSQL of its own, all of which may be killed."""
    with temporary_home() as home:
        found = Plant(home, project)
        try:
            yield found
        finally:
            found.end()


@pytest.fixture(scope="session")
def fresh(victim: EmbeddedPostgres, project: GitRepository, service: FakeService) -> Iterator[Site]:
    """A site with its schema and Dagster's, that has indexed nothing."""
    with temporary_home() as home:
        site = Site(
            home=home / "site", server=victim, project=project, service=service, name="fresh",
            first_day=(TODAY - timedelta(days=6)).date(),
        )  # fmt: skip
        databases_of(victim, site.name)
        done = site.run("materialize", "--select", "nothing")
        assert "there is no asset 'nothing'" in done.said, done.said
        yield site
        drop_databases(victim, site.name)


@pytest.fixture
def site(fresh: Site) -> Iterator[Site]:
    """A site that has indexed nothing."""
    with temporary_home() as home, copy_of(fresh, home / "site") as site:
        yield site


@pytest.fixture(scope="session")
def undisturbed(fresh: Site) -> Mapping[str, list[tuple[Any, ...]]]:
    """The index after a refresh that nothing happened to."""
    with temporary_home() as home, copy_of(fresh, home / "site") as site:
        site.refresh()
        index = index_of(site.database)
    assert len(index["chunks"]) > 40
    assert len(index["vectors"]) > 40
    return index
