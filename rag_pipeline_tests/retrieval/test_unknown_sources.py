"""A repository or a source type that is not there is an error that names those that are."""

from __future__ import annotations

import re

import pytest

from rag_pipeline.errors import UnknownSource
from rag_pipeline.index.database import Connection, connected
from rag_pipeline.retrieval.query import SearchQuery
from rag_pipeline.retrieval.search import search
from rag_pipeline.settings import Retrieval
from rag_pipeline_tests.knowledge import entry, thread_entry, write


@pytest.fixture
def connection(database: str):
    with connected(database) as connection:
        write(
            connection,
            entry("a.md", "how to deploy", repository="acme/handbook"),
            entry("b.md", "how to deploy", repository="acme/website"),
            entry("c.md", "how to deploy", repository="acme/secret", scope="user:ann"),
            entry("d.md", "how to deploy", repository="globex/plans", tenant="globex", source_type="wiki"),
            thread_entry(1, "how to deploy", repository="acme/app"),
        )
        yield connection


def ask(connection: Connection, *, scopes: tuple[str, ...] = (), **where: object) -> list[str]:
    query = SearchQuery(text="deploy", tenant="acme", scopes=scopes, **where)  # type: ignore[arg-type]
    return [hit.repository for hit in search(connection, query, space=None, vector=None, settings=Retrieval())]


@pytest.mark.parametrize("name", ["acme/websit", "acme/secret", "globex/plans", "", "x" * 5_000, "%", "' OR 1=1"])
def test_an_unknown_repository_is_refused_with_those_that_are_seen(connection, name):
    with pytest.raises(UnknownSource) as raised:
        ask(connection, repository=name)
    said = str(raised.value)
    assert "acme/handbook" in said and "acme/website" in said and "acme/app" in said
    assert "globex/plans" not in said.partition(": choose")[2] and "acme/secret" not in said.partition(": choose")[2]
    assert len(said) < 500


def test_the_closest_name_is_first(connection):
    with pytest.raises(UnknownSource, match="choose from acme/website, "):
        ask(connection, repository="Acme/Web-Site")


def test_who_may_see_more_is_told_more(connection):
    assert ask(connection, repository="acme/secret", scopes=("user:ann",)) == ["acme/secret"]
    with pytest.raises(UnknownSource, match=re.escape("choose from acme/secret")):
        ask(connection, repository="acme/secrets", scopes=("user:ann",))


def test_an_unknown_type_is_refused_with_those_that_are_seen(connection):
    with pytest.raises(UnknownSource, match=r"no source type 'doc' is indexed: choose from docs, github_pull_request$"):
        ask(connection, source_type="doc")


def test_known_ones_that_hold_nothing_together_find_nothing(connection):
    assert ask(connection, repository="acme/website", source_type="github_pull_request") == []
    assert ask(connection, repository="acme/website", path_prefix="nowhere/") == []


def test_of_many_only_some_are_named(connection):
    write(connection, *(entry("a.md", "text", repository=f"acme/service-{n:03}") for n in range(40)))
    with pytest.raises(UnknownSource, match=r"and 23 more$") as raised:
        ask(connection, repository="acme/service-0000")
    assert "choose from acme/service-000, " in str(raised.value) and str(raised.value).count("acme/") == 21


def test_a_tenant_that_sees_nothing_is_told_so(connection):
    query = SearchQuery(text="deploy", tenant="nobody", repository="acme/website")
    with pytest.raises(UnknownSource, match="nothing is indexed yet that you may see"):
        search(connection, query, space=None, vector=None, settings=Retrieval())
