"""Who sees what: by row-level security alone, and through a search."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import psycopg
import pytest

from rag_pipeline.index.database import Connection
from rag_pipeline.index.spaces import SpaceVectors
from rag_pipeline.model import EmbeddingSpace, text_hash
from rag_pipeline.retrieval import search as search_module
from rag_pipeline.retrieval.query import SearchQuery
from rag_pipeline.retrieval.search import search
from rag_pipeline.settings import Retrieval
from rag_pipeline_tests.knowledge import entry, space_of, store_vectors, write

ALIKE = ["the password policy", "how to deploy", "who is on call"]
AXIS = np.eye(8, dtype=np.float32)


@pytest.fixture
def space(connection: Connection) -> EmbeddingSpace:
    """Two tenants with the same texts; acme's first document belongs to two people as well."""
    space = space_of(connection)
    for tenant in ("acme", "globex"):
        write(connection, *(entry(f"{n}.md", *ALIKE, tenant=tenant) for n in range(4)))
    store_vectors(connection, space, dict(zip(ALIKE, AXIS, strict=False)))
    SpaceVectors(connection, space, tenant="globex").known([text_hash(text) for text in ALIKE])
    return space


@contextmanager
def reader(connection: Connection, *, tenant: str | None = None, scopes: str = "") -> Iterator[Connection]:
    """The connection as the role of queries."""
    with connection.transaction(force_rollback=True):
        connection.execute("SET LOCAL ROLE rag_reader")
        if tenant is not None:
            connection.execute("SELECT set_config('rag.tenant_id', %s, true)", (tenant,))
        connection.execute("SELECT set_config('rag.scopes', %s, true)", (scopes,))
        yield connection


def tenants_seen(connection: Connection, table: str) -> set[str]:
    return {row[0] for row in connection.execute(f"SELECT DISTINCT tenant_id FROM rag.{table}")}


def scope_documents(connection: Connection, **scopes: str) -> None:
    """Give documents 0 and 1 of acme, with their chunks, to someone."""
    for name, scope in scopes.items():
        for table in ("documents", "chunks"):
            connection.execute(
                f"UPDATE rag.{table} SET scope = %s WHERE document_id = "
                "(SELECT document_id FROM rag.documents WHERE tenant_id = 'acme' AND source_id = %s)",
                (scope, f"handbook:{name.removeprefix('n')}.md"),
            )


@pytest.mark.parametrize("tenant", [None, "", "nobody", "acme ", "ACME"])
def test_without_a_tenant_of_its_own_the_reader_sees_no_row(connection, space, tenant):
    with reader(connection, tenant=tenant):
        for table in ("documents", "chunks", f"vectors_{space.space_id}"):
            assert connection.execute(f"SELECT count(*) FROM rag.{table}").fetchone() == (0,)


def test_a_row_without_a_tenant_is_seen_by_nobody(connection):
    write(connection, entry("a.md", "orphan", tenant=""))
    with reader(connection, tenant=""):
        assert connection.execute("SELECT count(*) FROM rag.documents").fetchone() == (0,)


@pytest.mark.parametrize("tenant", ["acme", "globex"])
def test_the_reader_sees_its_own_tenant_only(connection, space, tenant):
    with reader(connection, tenant=tenant):
        for table in ("documents", "chunks", f"vectors_{space.space_id}"):
            assert tenants_seen(connection, table) == {tenant}


def test_every_table_has_row_level_security_and_the_reader_few_rights(connection, space):
    views = connection.execute(
        "SELECT reloptions FROM pg_class WHERE relnamespace = 'rag'::regnamespace AND relkind = 'v'"
    ).fetchall()
    # Or a view would show its reader what the one who made it may see.
    assert all("security_invoker=true" in options for (options,) in views)
    rows = connection.execute(
        "SELECT relname, relrowsecurity OR relkind = 'v', has_table_privilege('rag_reader', oid, 'SELECT'), "
        "has_table_privilege('rag_reader', oid, 'INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER') "
        "FROM pg_class WHERE relnamespace = 'rag'::regnamespace AND relkind IN ('r', 'p', 'v', 'm')"
    ).fetchall()
    assert all(row[1] for row in rows)
    readable = {"documents", "chunks", "segments", "postings", "links", "embedding_spaces", f"vectors_{space.space_id}"}
    assert {row[0] for row in rows if row[2]} == readable
    assert not any(row[3] for row in rows)
    with reader(connection, tenant="acme"), pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute("SELECT rag.create_vector_table(99, 8)")


@pytest.mark.parametrize("exact_up_to", [10_000, 0])
def test_a_search_never_returns_another_tenants_chunk(connection, space, exact_up_to, monkeypatch):
    monkeypatch.setattr(search_module, "EXACT_UP_TO", exact_up_to)
    own = {row[0] for row in connection.execute("SELECT chunk_id FROM rag.chunks WHERE tenant_id = 'globex'")}
    for axis in range(3):
        query = SearchQuery(text="q", legs="vector", tenant="globex", k=200)
        hits = search(connection, query, space=space, vector=AXIS[axis], settings=Retrieval())
        assert {hit.chunk_id for hit in hits} == own
        assert hits[0].text == ALIKE[axis]


def test_scoped_rows_are_seen_only_by_who_names_their_scope(connection, space):
    scope_documents(connection, n0="user:ada", n1="visitor:7")

    def found(*scopes: str) -> list[str]:
        query = SearchQuery(text="q", legs="vector", tenant="acme", k=200, scopes=scopes)
        hits = search(connection, query, space=space, vector=AXIS[0], settings=Retrieval())
        return sorted({hit.source_id[-4] for hit in hits})

    assert found() == ["2", "3"]
    assert found("user:ada") == ["0", "2", "3"]
    assert found("visitor:7", "user:ada") == ["0", "1", "2", "3"]
    # A name is one name, whatever is in it.
    for crafted in ("user:ada,visitor:7", "{user:ada}", '"user:ada"', "user:%", "USER:ADA", "user:ad", ""):
        assert found(crafted) == ["2", "3"]


def test_a_scope_with_every_metacharacter_is_still_one_name(connection, space):
    odd = "user:{a,\"b\\c}' NULL 🎉"
    scope_documents(connection, n0=odd)
    query = SearchQuery(text="q", legs="vector", tenant="acme", k=200, scopes=(odd,))
    assert len(search(connection, query, space=space, vector=AXIS[0], settings=Retrieval())) == 12


def test_a_scope_of_another_tenant_opens_nothing(connection, space):
    scope_documents(connection, n0="user:ada")
    query = SearchQuery(text="q", legs="vector", tenant="globex", k=200, scopes=("user:ada",))
    assert len(search(connection, query, space=space, vector=AXIS[0], settings=Retrieval())) == 12
