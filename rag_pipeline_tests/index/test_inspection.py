"""Whatever is wrong with the index is found and named; an index that was only used is found sound."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import numpy as np
import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_pipeline.index.catalog import expected_schema, inspect_catalog
from rag_pipeline.index.database import Connection, connected
from rag_pipeline.index.graph import ensure_graph
from rag_pipeline.index.inspection import Offences, inspect_rows, inspecting, sizes, vectors_off_length
from rag_pipeline.index.posted import inspect_postings
from rag_pipeline.index.segments import merge_segments
from rag_pipeline.index.spaces import SpaceVectors, activate
from rag_pipeline.model import EmbeddingSpace, text_hash
from rag_pipeline_tests.databases import empty
from rag_pipeline_tests.knowledge import entry, space_of, store_vectors, thread_entry, write

PAGES = {f"{n}.md": (f"page {n} of the handbook", f"what stands below {n}") for n in range(6)}


@pytest.fixture
def space(connection: Connection) -> EmbeddingSpace:
    """A small index of six pages and a pull request, one page deleted and one edited, with its graph."""
    space = space_of(connection)
    random = np.random.default_rng(1)
    texts = [text for page in PAGES.values() for text in page] + ["edited", "pull_request 7", "ada's own"]
    vectors = random.normal(size=(len(texts), 8))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    store_vectors(connection, space, dict(zip(texts, vectors, strict=True)))
    write(connection, *(entry(name, *page) for name, page in PAGES.items()))
    write(connection, thread_entry(7, closes=["acme/app#1"]), entry("ada.md", "ada's own", scope="user:ada"))
    write(connection, entry("0.md", "edited", at=2), entry("1.md", deleted=True, at=2))
    activate(connection, space)
    ensure_graph(connection, space)
    return space


def found(connection: Connection, space: EmbeddingSpace | None) -> dict[str, Offences]:
    """Every look that finds something."""
    with inspecting(connection):
        looks = inspect_catalog(connection) | inspect_rows(connection, space)
        looks |= inspect_postings(connection, sample=100, seed=1)
        if space is not None:
            looks["vectors_off_length"] = vectors_off_length(connection, space, tolerance=0.02)
    return {name: offences for name, offences in looks.items() if offences.count}


def replica(connection: Connection, *statements: str) -> None:
    """Do what foreign keys forbid, as a restored backup or a careless hand may."""
    with connection.transaction():
        connection.execute("SET LOCAL session_replication_role = 'replica'")
        for statement in statements:
            connection.execute(statement)


def test_an_index_that_was_written_edited_and_deleted_from_is_sound(connection, space):
    # Vectors of texts that are gone stay, for whoever writes them again: no more than that.
    assert {name: one.count for name, one in found(connection, space).items()} == {"vectors_without_chunk": 4}
    with inspecting(connection):
        size = sizes(connection, space)
    assert (size.documents, size.tombstones, size.chunks, size.links, size.vectors) == (7, 1, 11, 2, 15)


def test_an_empty_index_is_sound(connection):
    assert found(connection, None) == {}


BROKEN: list[tuple[str, str, str, str]] = [
    (
        "orphan_chunks",
        "DELETE FROM rag.documents WHERE source_id = 'handbook:2.md'", "source_id", "None"),
    (
        "orphan_chunks",
        "UPDATE rag.documents SET deleted = true WHERE source_id = 'handbook:2.md'", "why", "its document is deleted"),
    (
        "orphan_chunks",
        "UPDATE rag.chunks SET tenant_id = 'other' WHERE text = 'edited'", "why", "its document is of another tenant"),
    (
        "orphan_chunks",
        "UPDATE rag.chunks SET scope = NULL WHERE text = 'ada''s own'", "source_id", "handbook:ada.md"),
    (
        "orphan_links", "DELETE FROM rag.documents WHERE source_id = 'handbook:#7'", "target", "acme/app#"),
    (
        "orphan_postings", "DELETE FROM rag.segments WHERE segment_id = 1", "segment_id", "1"),
    (
        "orphan_bookkeeping",
        "INSERT INTO rag.stored_parts VALUES ('embeddings', 'acme', 'handbook', '2024-05-01', 99, 'f')", "which",
        "embeddings acme handbook 2024-05-01"),
    (
        "orphan_bookkeeping", "CREATE TABLE rag.vectors_77 (LIKE rag.vectors_1)", "which", "vectors_77"),
    (
        "chunks_without_vector",
        "DELETE FROM rag.vectors_1 WHERE text_hash IN (SELECT text_hash FROM rag.chunks WHERE text = 'edited')",
        "source_id", "handbook:0.md"),
    (
        "segment_sums", "UPDATE rag.segments SET chunks = chunks + 1 WHERE segment_id = 1", "tenant_id", "acme"),
    (
        "broken_segments", "UPDATE rag.segments SET added = added || '\\x00' WHERE segment_id = 1", "segment_id", "1"),
    (
        "broken_segments", "DELETE FROM rag.postings WHERE segment_id = 1", "why", "it has no postings"),
    (
        "broken_segments",
        "UPDATE rag.postings SET entries = '\\x0001' WHERE term = 'handbook'", "term", "handbook"),
    (
        "wrong_postings", "DELETE FROM rag.postings WHERE term = 'edit'", "why", "no posting of 'edit'"),
    (
        "wrong_postings",
        "UPDATE rag.postings AS p SET entries = other.entries FROM rag.postings AS other"
        " WHERE p.term = '3' AND other.term = '4' AND p.segment_id = other.segment_id", "why", "'3' occurs 2 times"),
    (
        "chunks_without_postings", "DELETE FROM rag.segments WHERE scope = 'user:ada'", "source_id", "handbook:ada.md"),
    (
        "postings_of_no_chunk", "DELETE FROM rag.chunks WHERE text = 'edited'", "chunk_id", "no such chunk"),
    (
        "chunks_posted_twice",
        "INSERT INTO rag.segments (tenant_id, scope, analyzer, chunks, terms, removed_chunks, removed_terms, added,"
        " removed) SELECT tenant_id, scope, analyzer, chunks, terms, removed_chunks, removed_terms, added, removed"
        " FROM rag.segments WHERE scope = 'user:ada'", "source_id", "handbook:ada.md"),
    (
        "missing_indexes",
        "DROP INDEX rag.chunks_document", "remedy",
        "CREATE INDEX chunks_document ON rag.chunks (document_id, position);"),
    (
        "missing_indexes",
        "ALTER TABLE rag.vectors_1 DROP CONSTRAINT vectors_1_pkey", "remedy",
        "ALTER TABLE rag.vectors_1 ADD PRIMARY KEY (text_hash, tenant_id);"),
    (
        "missing_graphs", "DROP INDEX rag.vectors_1_hnsw", "remedy", "rag-pipeline spaces build 1"),
    (
        "invalid_indexes",
        "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'rag.vectors_1_hnsw'::regclass", "remedy",
        "REINDEX INDEX rag.vectors_1_hnsw;"),
    (
        "tables_without_row_security",
        "ALTER TABLE rag.vectors_1 DISABLE ROW LEVEL SECURITY", "remedy",
        "ALTER TABLE rag.vectors_1 ENABLE ROW LEVEL SECURITY;"),
    (
        "policies", "DROP POLICY tenant ON rag.postings", "why", "it is not there"),
    (
        "policies", "ALTER POLICY tenant ON rag.chunks USING (true)", "why", "it says true"),
    (
        "policies",
        "CREATE POLICY more ON rag.links FOR SELECT TO rag_reader USING (true)", "remedy",
        "DROP POLICY more ON rag.links;"),
    (
        "policies", "ALTER POLICY tenant ON rag.links TO PUBLIC", "why", "it says visible(tenant_id, scope)"),
    (
        "reader_rights", "GRANT INSERT ON rag.chunks TO rag_reader", "right", "rag_reader may write to rag.chunks"),
    (
        "reader_rights", "GRANT UPDATE (title) ON rag.documents TO PUBLIC", "right", "may write to rag.documents"),
    (
        "reader_rights", "REVOKE SELECT ON rag.segments FROM rag_reader", "right", "may not read rag.segments"),
    (
        "reader_rights", "GRANT CREATE ON SCHEMA rag TO rag_reader", "right", "may create things in schema rag"),
    (
        "reader_rights", "ALTER TABLE rag.usage OWNER TO rag_reader", "right", "rag_reader owns usage"),
    (
        "rows_without_tenant",
        "CREATE OR REPLACE FUNCTION rag.visible(tenant_id text, scope text) RETURNS boolean LANGUAGE sql STABLE"
        " PARALLEL SAFE RETURN true", "table", "rag.chunks"),
]  # fmt: skip
"""Each look with what breaks it: the statement, and a column of the row that is shown with what it must say."""


@pytest.mark.parametrize(("look", "statement", "column", "says"), BROKEN)
def test_what_is_broken_is_named_with_a_row_of_it(look, statement, column, says, database, connection, space):
    with psycopg.connect(database) as undone:
        undone.execute("SET LOCAL session_replication_role = 'replica'")
        undone.execute(statement)
        looks = found_within(undone, space)
        assert look in looks
        assert any(says in str(row.get(column)) for row in looks[look].sample), looks[look].sample
        undone.rollback()
    assert found(connection, space).keys() == {"vectors_without_chunk"}


def found_within(connection: Connection, space: EmbeddingSpace) -> dict[str, Offences]:
    """As `found`, inside a transaction that will be undone."""
    connection.execute("SET LOCAL search_path = rag, public")
    looks = inspect_catalog(connection) | inspect_rows(connection, space)
    looks |= inspect_postings(connection, sample=100, seed=1)
    return {name: offences for name, offences in looks.items() if offences.count}


def test_foreign_keys_apart_every_offending_row_is_counted_and_ten_are_shown(connection, space):
    replica(connection, "DELETE FROM rag.documents WHERE NOT deleted")
    looks = found(connection, space)
    assert looks["orphan_chunks"].count == 11
    assert len(looks["orphan_chunks"].sample) == 10


def test_vectors_without_a_direction_or_of_another_length_are_found(connection, space):
    store_vectors(connection, space, {"edited again": np.zeros(8), "longer": np.full(8, 2.0)})
    assert found(connection, space)["vectors_off_length"].count == 2
    with inspecting(connection):
        # Of a model that does not normalise only a vector without any direction is wrong.
        (row,) = vectors_off_length(connection, space, tolerance=None).sample
    assert row["text_hash"] == text_hash("edited again")


def test_pgvector_takes_no_nan_into_a_table(connection, space):
    vectors = SpaceVectors(connection, space, tenant="acme")
    with pytest.raises(psycopg.DataError, match="NaN not allowed"):
        vectors.store([text_hash("x")], np.full((1, 8), np.nan))


def test_a_graph_is_missed_in_the_active_space_alone_and_only_once_it_holds_vectors(connection, space):
    second = space_of(connection, model="second")
    assert "missing_graphs" not in found(connection, space)
    store_vectors(connection, second, {"edited": np.eye(8)[0]})
    assert "missing_graphs" not in found(connection, space)
    activate(connection, second)
    (row,) = found(connection, space)["missing_graphs"].sample
    assert row["index"] == "rag.vectors_2_hnsw"


def test_a_reader_who_is_above_the_rules_is_found(server, connection, space):
    for right, undo, says in (
        ("BYPASSRLS", "NOBYPASSRLS", "bypasses row-level security"),
        ("SUPERUSER", "NOSUPERUSER", "is a superuser"),
    ):
        # Roles belong to the server: other tests of this process share it.
        connection.execute(psycopg.sql.SQL("ALTER ROLE rag_reader {}").format(psycopg.sql.SQL(right)))
        try:
            looks = found(connection, space)
        finally:
            connection.execute(psycopg.sql.SQL("ALTER ROLE rag_reader {}").format(psycopg.sql.SQL(undo)))
        assert any(says in str(row["right"]) for row in looks["reader_rights"].sample)
        assert looks["rows_without_tenant"].count > 0


def test_a_missing_table_is_found(connection, space):
    connection.execute("ALTER TABLE rag.usage RENAME TO usage_before")
    try:
        looks = found(connection, space)
    finally:
        connection.execute("ALTER TABLE rag.usage_before RENAME TO usage")
    assert [row["table"] for row in looks["missing_tables"].sample] == ["rag.usage"]
    # Its indexes went with it: they are no finding of their own.
    assert "missing_indexes" not in looks


def test_what_schema_sql_says_is_what_the_migrations_build(connection, space):
    expected = expected_schema([space.space_id])
    tables = {row[0] for row in connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'rag'")}
    indexes = {row[0] for row in connection.execute("SELECT indexname FROM pg_indexes WHERE schemaname = 'rag'")}
    policies = {tuple(row) for row in connection.execute("SELECT tablename, policyname FROM pg_policies")}
    assert expected.tables == tables
    assert {index.name for index in expected.indexes} == indexes - {"vectors_1_hnsw"}
    assert set(expected.policies) == policies
    for index in expected.indexes:
        assert psycopg.sql.SQL(index.statement).as_string(connection).endswith(";")


def test_only_a_sample_of_chunks_is_analyzed_again_and_another_with_every_seed(connection, space):
    connection.execute("DELETE FROM rag.postings WHERE term = 'edit'")
    with inspecting(connection):
        seen = [inspect_postings(connection, sample=1, seed=seed)["wrong_postings"].count for seed in range(40)]
    assert 0 < sum(seen) < 40


def test_postings_of_another_analyzer_are_left_to_the_run_that_writes_them_again(connection, space):
    connection.execute("UPDATE rag.segments SET analyzer = analyzer - 1")
    connection.execute("DELETE FROM rag.postings WHERE term = 'edit'")
    assert "wrong_postings" not in found(connection, space)


@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_no_history_of_writes_makes_a_sound_index_look_broken(reused_database, seed):
    """Edits, deletions, other titles and scopes, late and early, with merges in between."""
    empty(reused_database)
    random = Random(seed)
    texts = [f"text {n} of {'several ' * (n % 5)}words" for n in range(12)]
    with connected(reused_database) as connection:
        space = space_of(connection)
        store_vectors(connection, space, {text: np.eye(8)[n % 8] for n, text in enumerate(texts)})
        activate(connection, space)
        steps: list[Callable[[], object]] = [
            lambda: write(
                connection,
                *(
                    entry(
                        f"{name}.md", *random.sample(texts, random.randint(0, 4)), at=random.randint(1, 20),
                        deleted=random.random() < 0.2, title=random.choice((None, "One", "Two")),
                        scope=random.choice((None, "user:ada")), metadata={"files": [random.choice(texts)]},
                    )
                    for name in random.sample(range(5), random.randint(1, 3))
                ),
            ),
            lambda: merge_segments(connection, everything=random.random() < 0.5),
            lambda: ensure_graph(connection, space),
        ]  # fmt: skip
        for step in random.choices(steps, (8, 2, 1), k=12):
            step()
        ensure_graph(connection, space)
        assert found(connection, space).keys() <= {"vectors_without_chunk"}
