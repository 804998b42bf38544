"""Migrations: applied once, in order, whole or not at all, by however many processes at once."""

from __future__ import annotations

import dataclasses
import hashlib
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import psycopg
import pytest

from rag_pipeline.embedded import EmbeddedPostgres
from rag_pipeline.embedded.account import Account
from rag_pipeline.embedded.binaries import programs
from rag_pipeline.errors import DatabaseUnavailable, MigrationError
from rag_pipeline.index.database import connect, connect_with_vectors, connected
from rag_pipeline.index.graph import ensure_graph, has_graph
from rag_pipeline.index.migrations import _EARLIER, Migration, migrate, pending, read_migrations
from rag_pipeline.index.spaces import SpaceVectors, create_space
from rag_pipeline.index.sql_files import sql_folder
from rag_pipeline.model import text_hash
from rag_pipeline.retrieval import search as search_module
from rag_pipeline.retrieval.query import SearchQuery
from rag_pipeline.retrieval.search import search
from rag_pipeline.settings import Retrieval
from rag_pipeline_tests.databases import new_database
from rag_pipeline_tests.knowledge import entry, space_of, store_vectors, write


def next_migration(sql: str, *, name: str = "more") -> list[Migration]:
    """The migrations there are, and one more."""
    present = read_migrations()
    checksum = hashlib.sha256(sql.encode()).hexdigest()
    return [*present, Migration(version=len(present) + 1, name=name, sql=sql, checksum=checksum)]


def dump(server: EmbeddedPostgres, url: str) -> list[str]:
    """The schema of a database as `pg_dump` writes it, without its random lines."""
    pg_dump = programs(Account(uid=server._account.uid, gid=server._account.gid)) / "pg_dump"
    done = subprocess.run([pg_dump, "--schema-only", url], capture_output=True, text=True, check=True)
    return [line for line in done.stdout.splitlines() if not line.startswith(("\\restrict", "\\unrestrict", "--"))]


def tables(url: str) -> set[str]:
    with connect(url) as connection:
        return {row[0] for row in connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'rag'")}


def test_a_second_migration_finds_nothing_to_do(empty_database):
    assert [m.version for m in migrate(empty_database)] == [m.version for m in read_migrations()]
    with connect(empty_database) as connection, connection.transaction():
        before = connection.execute("SELECT xmin, * FROM rag.schema_migrations").fetchall()
    assert migrate(empty_database) == []
    with connect(empty_database) as connection:
        assert connection.execute("SELECT xmin, * FROM rag.schema_migrations").fetchall() == before


def test_a_migration_that_has_landed_is_never_edited():
    """Each is in the list with its checksum: add the line of a new one, and never change another."""
    lines = (Path(__file__).parent / "landed_migrations.txt").read_text(encoding="utf-8").splitlines()
    landed = {line.split()[1]: line.split()[0] for line in lines if not line.startswith("#")}
    there = {f"{m.version:04d}_{m.name}.sql": m.checksum for m in read_migrations()}
    assert there == landed


@pytest.mark.parametrize("earlier", _EARLIER[9])
def test_a_database_of_an_earlier_text_of_0009_is_migrated(empty_database, earlier):
    migrate(empty_database, migrations=[m for m in read_migrations() if m.version <= 9])
    with connect(empty_database) as connection:
        connection.execute("UPDATE rag.schema_migrations SET checksum = %s WHERE version = 9", (earlier,))
    assert [m.version for m in migrate(empty_database)] == [m.version for m in read_migrations() if m.version > 9]
    assert migrate(empty_database) == []


def test_the_migrations_build_schema_sql(server, empty_database):
    migrate(empty_database)
    with new_database(server, "from_schema_sql") as url:
        with connect(url) as connection:
            connection.execute((sql_folder() / "schema.sql").read_bytes())
        assert dump(server, url) == dump(server, empty_database)


def test_schema_sql_shows_the_vector_table_that_is_made(server, database):
    with connected(database) as connection:
        space_of(connection, dimensions=384)
    made = "\n".join(dump(server, database))
    shown = (sql_folder() / "schema.sql").read_text(encoding="utf-8")
    for part in ("text_hash uuid NOT NULL", "tenant_id text NOT NULL", "(text_hash, tenant_id)"):
        assert part in made.split("CREATE TABLE rag.vectors_1")[1]
        assert part in shown.split("For space 1 with 384 dimensions")[1]
    assert "embedding public.halfvec(384)\n" in made.replace(",\n", "\n")
    assert "embedding halfvec(384)," in shown


def test_a_graph_of_before_there_were_codes_stays_and_answers(empty_database):
    before_codes = [migration for migration in read_migrations() if migration.version <= 8]
    migrate(empty_database, migrations=before_codes)
    with connect(empty_database) as connection:
        connection.execute(
            "INSERT INTO rag.embedding_spaces (provider, model, dimensions, recipe)"
            " VALUES ('fake', 'test', 384, 'text/v1')"
        )
        connection.execute("SELECT rag.create_vector_tables('vectors_1', 384, 1)")
        connection.execute("CREATE INDEX vectors_1_hnsw ON rag.vectors_1 USING hnsw (embedding halfvec_cosine_ops)")
    migrate(empty_database)
    with connected(empty_database) as connection:
        space = space_of(connection, dimensions=384)
        assert (space.space_id, space.graph) == (1, "vectors")
        vectors = np.eye(384)[:40]
        store_vectors(connection, space, {f"text {n}": vector for n, vector in enumerate(vectors)})
        write(connection, entry("a.md", *(f"text {n}" for n in range(40))))
        assert has_graph(connection, space) and ensure_graph(connection, space) is False
        query = SearchQuery(text="q", tenant="acme", legs="vector", k=1)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(search_module, "EXACT_UP_TO", 0)
            (hit,) = search(connection, query, space=space, vector=vectors[7], settings=Retrieval())
        assert hit.text == "text 7"


def test_several_processes_may_start_at_once(empty_database):
    with ThreadPoolExecutor(6) as pool:
        applied = [
            made for future in [pool.submit(migrate, empty_database) for _ in range(6)] for made in future.result()
        ]
    assert [m.version for m in applied] == [m.version for m in read_migrations()]


def test_an_applied_file_may_not_be_changed(empty_database):
    migrate(empty_database)
    first, *others = read_migrations()
    changed = [dataclasses.replace(first, checksum="0" * 64), *others]
    with pytest.raises(MigrationError, match=r"0001_knowledge_index\.sql was changed after it was applied"):
        migrate(empty_database, migrations=changed)


def test_a_database_newer_than_the_code_is_refused(empty_database):
    migrate(empty_database, migrations=next_migration("CREATE TABLE rag.later ()"))
    with pytest.raises(MigrationError, match=r"migration \d{4}, which this code does not know: update the code"):
        migrate(empty_database)


@pytest.mark.parametrize("names", [["0002_b.sql"], ["0001_a.sql", "0003_c.sql"], ["0001_a.sql", "0001_b.sql"]])
def test_a_gap_or_a_repetition_in_the_numbers_is_refused(tmp_path: Path, names):
    for name in names:
        (tmp_path / name).write_text("SELECT 1")
    with pytest.raises(MigrationError, match="without gaps"):
        read_migrations(tmp_path)


def test_a_file_without_a_number_is_refused(tmp_path: Path):
    (tmp_path / "add_things.sql").write_text("SELECT 1")
    with pytest.raises(MigrationError, match=r"add_things\.sql is not named like"):
        read_migrations(tmp_path)


def test_a_migration_that_fails_leaves_nothing_behind_and_can_be_repeated(empty_database):
    migrate(empty_database)
    broken = next_migration("CREATE TABLE rag.half (); SELECT 1 / 0; CREATE TABLE rag.other ()", name="halves")
    with pytest.raises(MigrationError, match=r"\d{4}_halves\.sql failed and was undone: division by zero"):
        migrate(empty_database, migrations=broken)
    assert not tables(empty_database) & {"half", "other"}
    migrate(empty_database, migrations=next_migration("CREATE TABLE rag.half ()"))
    assert "half" in tables(empty_database)


def test_pending_changes_nothing(server, empty_database):
    before = dump(server, empty_database)
    assert [m.version for m in pending(empty_database)] == [m.version for m in read_migrations()]
    assert dump(server, empty_database) == before
    migrate(empty_database)
    assert pending(empty_database) == []


def test_a_server_without_pgvector_is_named_as_such(empty_database):
    # What `CREATE EXTENSION vector` answers on such a server.
    lacking = [dataclasses.replace(m, sql="CREATE EXTENSION no_such_extension") for m in read_migrations()]
    with pytest.raises(DatabaseUnavailable, match=r"The server needs pgvector 0\.8") as caught:
        migrate(empty_database, migrations=lacking)
    assert "\n" not in str(caught.value)
    assert tables(empty_database) == {"schema_migrations"}


def test_an_extension_that_was_never_updated_is_refused(empty_database):
    with psycopg.connect(empty_database, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION vector")
        connection.execute("UPDATE pg_extension SET extversion = '0.7.4' WHERE extname = 'vector'")
    with pytest.raises(DatabaseUnavailable, match=r"0\.7\.4: ALTER EXTENSION vector UPDATE"):
        migrate(empty_database)


def test_an_unmigrated_database_says_which_command_helps(empty_database):
    with pytest.raises(DatabaseUnavailable, match="run `rag-pipeline migrate`"):
        connect_with_vectors(empty_database)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ada:hunter2@127.0.0.1:1/rag",
        "postgresql://ada:hunter2@127.0.0.1:x/rag",
        "mysql://ada:hunter2@db/rag",
        "host=127.0.0.1 port=1 password=hunter2",
        "hunter2",
    ],
)
def test_a_database_that_cannot_be_reached_is_one_line_without_the_password(url):
    with pytest.raises(DatabaseUnavailable) as caught:
        connect(url)
    assert "\n" not in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_options_in_the_address_are_kept(database):
    with connect(f"{database}&options=-c%20work_mem%3D7MB") as connection:
        assert connection.execute("SHOW work_mem").fetchone() == ("7MB",)
        assert connection.execute("SHOW search_path").fetchone() == ("rag,public",)


def test_a_user_who_may_create_roles_but_is_no_superuser_can_migrate_and_search(server):
    admin = psycopg.connect(server.url("postgres"), autocommit=True)
    # As on a server that has never seen us: roles belong to the server, grants go by number, not by name.
    admin.execute("ALTER ROLE rag_reader RENAME TO another_reader")
    admin.execute("CREATE ROLE tenant_admin LOGIN CREATEROLE")
    try:
        with new_database(server, "hosted") as url:
            admin.execute("ALTER DATABASE hosted OWNER TO tenant_admin")
            with psycopg.connect(url, autocommit=True) as there:
                there.execute("CREATE EXTENSION vector")
            ours = url.replace("postgres@", "tenant_admin@", 1)
            migrate(ours)
            with connected(ours) as connection:
                space = space_of(connection)
                vector = np.eye(8)[0]
                store_vectors(connection, space, {"hello": vector})
                write(connection, entry("a.md", "hello"))
                query = SearchQuery(text="hello", tenant="acme")
                assert len(search(connection, query, space=space, vector=vector, settings=Retrieval())) == 1
    finally:
        admin.execute("DROP ROLE IF EXISTS rag_reader")
        admin.execute("DROP ROLE tenant_admin")
        admin.execute("ALTER ROLE another_reader RENAME TO rag_reader")
        admin.close()


def test_a_user_without_rights_is_told_which_are_needed(server):
    with psycopg.connect(server.url("postgres"), autocommit=True) as admin:
        admin.execute("CREATE ROLE stranger LOGIN")
        try:
            with new_database(server, "closed") as url, pytest.raises(DatabaseUnavailable, match="the right to create"):
                migrate(url.replace("postgres@", "stranger@", 1))
        finally:
            admin.execute("DROP ROLE stranger")


@pytest.mark.parametrize("partitions", [1, 3])
def test_vectors_of_before_may_be_missing_for_unreadable_texts(empty_database, partitions):
    before = [migration for migration in read_migrations() if migration.version <= 9]
    migrate(empty_database, migrations=before)
    with connected(empty_database) as connection:
        space = create_space(
            connection, provider="fake", model="test", recipe="text/v1", dimensions=8, partitions=partitions
        )
        store_vectors(connection, space, {"readable": np.ones(8)})
    migrate(empty_database)
    with connected(empty_database) as connection:
        vectors = SpaceVectors(connection, space, tenant="acme")
        texts = [text_hash(f"text {n}") for n in range(20)]
        vectors.set_unreadable([*texts, text_hash("readable")])
        assert vectors.unreadable(texts) == set(texts) and not vectors.known([text_hash("readable")])
        # And back: the model, or the minimum, is another one by now.
        store_vectors(connection, space, {"readable": np.ones(8), "text 3": np.ones(8)})
        assert vectors.known([text_hash("readable"), *texts]) == {text_hash("readable"), texts[3]}
