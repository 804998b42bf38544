"""Vectors in several tables with a graph each: laid out so, or anew while all goes on, they answer the same."""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np
import psycopg
import pytest
from numpy.typing import NDArray
from pgvector import HalfVector
from psycopg.conninfo import make_conninfo

from rag_pipeline.errors import SpaceUnavailable
from rag_pipeline.index import partitioning
from rag_pipeline.index.catalog import inspect_catalog
from rag_pipeline.index.changes import index_state
from rag_pipeline.index.database import Connection, connected
from rag_pipeline.index.graph import building_bytes, ensure_graph, has_graph, partitions_for
from rag_pipeline.index.inspection import inspect_rows, inspecting
from rag_pipeline.index.orphans import counting_on_vectors
from rag_pipeline.index.partitioning import partition
from rag_pipeline.index.promotion import drop, promote, rollback, standing
from rag_pipeline.index.spaces import SpaceVectors, activate, active_space, create_space, numbered_space
from rag_pipeline.index.sql_files import queries
from rag_pipeline.index.upkeep import Waste, mend_graphs
from rag_pipeline.model import EmbeddingSpace, Graph, text_hash
from rag_pipeline.progress import silent
from rag_pipeline.retrieval import search as search_module
from rag_pipeline.retrieval import vector_leg
from rag_pipeline.retrieval.query import SearchQuery
from rag_pipeline.retrieval.search import search
from rag_pipeline.settings import Retrieval
from rag_pipeline_tests.databases import empty
from rag_pipeline_tests.knowledge import entry, space_of, store_vectors, write

MANY = 1_200
TEXTS = [f"passage {number}" for number in range(MANY)]


@pytest.fixture
def database(reused_database: str) -> str:
    empty(reused_database)
    return reused_database


@pytest.fixture(autouse=True)
def by_the_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_module, "EXACT_UP_TO", 0)


def vectors_of_clusters() -> NDArray[np.float64]:
    random = np.random.default_rng(3)
    vectors = random.normal(size=(20, 8))[random.integers(0, 20, MANY)] + 0.35 * random.normal(size=(MANY, 8))
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


VECTORS = vectors_of_clusters()


def fill(connection: Connection, space: EmbeddingSpace) -> None:
    store_vectors(connection, space, dict(zip(TEXTS, VECTORS, strict=True)))
    pages = [TEXTS[start : start + 20] for start in range(0, MANY, 20)]
    write(connection, *(entry(f"{number}.md", *page) for number, page in enumerate(pages)))
    assert ensure_graph(connection, space)
    activate(connection, space)


@pytest.fixture
def space(connection: Connection) -> EmbeddingSpace:
    """A space of one table, with a graph, that answers."""
    made = space_of(connection)
    fill(connection, made)
    return numbered_space(connection, made.space_id)


@pytest.fixture
def parted(connection: Connection) -> EmbeddingSpace:
    """The same, made with three tables."""
    made = create_space(connection, provider="fake", model="m", recipe="text/v1", dimensions=8, partitions=3)
    fill(connection, made)
    return numbered_space(connection, made.space_id)


def found(connection: Connection, number: int, *, k: int = 10, **where: str) -> list[str]:
    space = active_space(connection)
    query = SearchQuery(text="q", tenant="acme", legs="vector", k=k, **where)  # type: ignore[arg-type]
    hits = search(connection, query, space=space, vector=VECTORS[number].astype(np.float32), settings=Retrieval())
    return [hit.text for hit in hits]


def nearest(number: int, k: int = 10) -> set[str]:
    return {TEXTS[one] for one in np.argsort(-(VECTORS @ VECTORS[number]))[:k]}


def recall(connection: Connection) -> float:
    asked = range(0, MANY, 60)
    return float(np.mean([len(set(found(connection, number)) & nearest(number)) / 10 for number in asked]))


def relations(connection: Connection) -> list[str]:
    rows = connection.execute(
        "SELECT relname FROM pg_class WHERE relnamespace = 'rag'::regnamespace AND starts_with(relname, 'vectors_')"
    )
    return sorted(row[0] for row in rows)


def plan(connection: Connection, space: EmbeddingSpace) -> str:
    values = {
        "tenant": "acme", "repository": None, "source_type": None, "language": None, "path_prefix": None, "limit": 10,
        "metadata": None, "updated_from": None, "updated_to": None, "query": HalfVector(VECTORS[0]),
    }  # fmt: skip
    statement = vector_leg.statement("graph_everywhere", space).decode()
    with connection.transaction():
        connection.execute(
            queries("search")["enter"],
            {"tenant": "acme", "scopes": [], "vectors": None, "neighbours": 40, "plans": "auto"},
        )
        # As it is with more of them.
        connection.execute(
            "SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off; SET LOCAL enable_sort = off"
        )
        row = connection.execute(f"EXPLAIN (FORMAT JSON) {statement}".encode(), values).fetchone()
    assert row is not None
    return json.dumps(row[0])


def faults(connection: Connection, space: EmbeddingSpace) -> dict[str, int]:
    with inspecting(connection):
        looks = inspect_catalog(connection) | inspect_rows(connection, space)
    return {name: one.count for name, one in looks.items() if one.count}


def test_a_space_made_with_partitions_answers_as_one_table_would(
    connection: Connection, parted: EmbeddingSpace
) -> None:
    assert parted.partitions == 3 and has_graph(connection, parted)
    assert recall(connection) > 0.98
    assert len(found(connection, 7, k=150)) == len(set(found(connection, 7, k=150))) == 150
    made = plan(connection, parted)
    assert '"Merge Append"' in made
    assert {f"vectors_{parted.space_id}_p{part}_hnsw" in made for part in range(3)} == {True}
    assert "visible" not in made
    assert faults(connection, parted) == {}
    now = standing(connection, parted)
    assert (now.vectors, now.missing, now.has_graph) == (MANY, 0, True)
    held = connection.execute("SELECT sum(pg_total_relation_size(relid)) FROM pg_partition_tree('rag.vectors_1')")
    assert (now.bytes,) == held.fetchone()
    storages = connection.execute(
        "SELECT DISTINCT attstorage FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = attrelid"
        " WHERE attname = 'embedding' AND relkind IN ('r', 'p') AND relnamespace = 'rag'::regnamespace"
    )
    assert storages.fetchall() == [("p",)]


def test_what_is_written_later_is_found_and_what_another_tenant_had_embedded_is_used_again(
    connection: Connection, parted: EmbeddingSpace
) -> None:
    late = -VECTORS.mean(axis=0)
    late /= np.linalg.norm(late)
    store_vectors(connection, parted, {"late": late})
    write(connection, entry("late.md", "late"))
    query = SearchQuery(text="q", tenant="acme", legs="vector", k=1)
    asked = {"space": parted, "vector": late.astype(np.float32), "settings": Retrieval()}
    assert search(connection, query, **asked)[0].text == "late"  # type: ignore[arg-type]
    theirs = SpaceVectors(connection, parted, tenant="globex")
    hashes = [text_hash(text) for text in TEXTS[:50]]
    assert theirs.known(hashes) == set(hashes)
    assert theirs.store(hashes, VECTORS[:50]) == 0
    assert len(theirs.fetch(hashes)) == 50


def test_nobody_reads_a_partition_by_itself_or_another_tenants_vectors(
    connection: Connection, parted: EmbeddingSpace
) -> None:
    def seen(table: str, tenant: str) -> int:
        with connection.transaction():
            connection.execute(
                "SELECT set_config('role', 'rag_reader', true), set_config('rag.tenant_id', %s, true)", (tenant,)
            )
            row = connection.execute(f"SELECT count(*) FROM rag.{table}".encode()).fetchone()
            return row[0] if row else -1

    assert (seen("vectors_1", "acme"), seen("vectors_1", "globex"), seen("vectors_1", "")) == (MANY, 0, 0)
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        seen("vectors_1_p0", "acme")


def test_a_space_is_laid_out_anew_and_back_without_a_difference(connection: Connection, space: EmbeddingSpace) -> None:
    before, looked = relations(connection), index_state(connection, "acme")
    expected = [found(connection, number) for number in range(0, MANY, 200)]
    made = partition(connection, space.space_id, partitions=4, progress=silent)
    assert (made.partitions, made.status, made.space_id) == (4, "active", space.space_id)
    assert index_state(connection, "acme") != looked
    assert [name for name in relations(connection) if name.endswith("_hnsw")] == [
        "vectors_1_hnsw", *(f"vectors_1_p{part}_hnsw" for part in range(4))
    ]  # fmt: skip
    assert recall(connection) > 0.98
    assert faults(connection, made) == {}
    assert "Merge Append" in plan(connection, made)
    again = partition(connection, space.space_id, partitions=1, progress=silent)
    assert again == space
    assert relations(connection) == before
    assert [found(connection, number) for number in range(0, MANY, 200)] == expected


def test_what_comes_and_goes_meanwhile_is_not_lost_and_a_stopped_one_goes_on(
    connection: Connection, space: EmbeddingSpace, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stopped(Exception):
        pass

    def stop(*_: object, **__: object) -> None:
        raise Stopped

    with monkeypatch.context() as patched:
        patched.setattr(partitioning, "_switch", stop)
        with pytest.raises(Stopped):
            partition(connection, space.space_id, partitions=2, progress=silent)
    assert numbered_space(connection, space.space_id).partitions == 1
    assert "vectors_1_new" in relations(connection)
    assert faults(connection, space) == {}  # it is no orphan while it may go on
    store_vectors(connection, space, {"new": np.eye(8)[0]})
    write(connection, entry("new.md", "new"))
    connection.execute("DELETE FROM rag.vectors_1 WHERE text_hash = %s", (text_hash(TEXTS[0]),))
    made = partition(connection, space.space_id, partitions=2, progress=silent)
    hashes = [text_hash(text) for text in (*TEXTS, "new")]
    known = SpaceVectors(connection, made, tenant="acme").fetch(hashes)
    assert set(known) == set(hashes) - {text_hash(TEXTS[0])}
    assert not [name for name in relations(connection) if "_new" in name]


def test_one_that_was_stopped_is_taken_away_by_asking_for_what_there_is(
    connection: Connection, space: EmbeddingSpace, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = relations(connection)
    monkeypatch.setattr(partitioning, "_switch", lambda *_, **__: None)
    partition(connection, space.space_id, partitions=2, progress=silent)
    assert relations(connection) != before
    assert partition(connection, space.space_id, partitions=1, progress=silent) == space
    assert relations(connection) == before


def test_while_a_run_embeds_nothing_changes_and_searches_are_not_held_up(
    connection: Connection, space: EmbeddingSpace, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partitioning, "_PATIENCE_S", 0.1)
    with connected(database) as run, counting_on_vectors(run):
        with pytest.raises(SpaceUnavailable, match="run it again when that has ended; what was copied stays"):
            partition(connection, space.space_id, partitions=2, progress=silent)
        assert found(connection, 3)[0] == TEXTS[3]
        assert numbered_space(connection, space.space_id) == space
    assert partition(connection, space.space_id, partitions=2, progress=silent).partitions == 2


def test_a_prepared_search_of_another_connection_goes_on_over_the_new_tables(
    connection: Connection, space: EmbeddingSpace, database: str
) -> None:
    with connected(make_conninfo(database)) as reader:
        for number in range(8):
            assert found(reader, number)[0] == TEXTS[number]
        partition(connection, space.space_id, partitions=2, progress=silent)
        for number in range(8):
            assert found(reader, number)[0] == TEXTS[number]


def test_a_partitioned_space_is_promoted_rolled_back_and_dropped_as_any_other(
    connection: Connection, space: EmbeddingSpace
) -> None:
    other = create_space(connection, provider="fake", model="other", recipe="text/v1", dimensions=8, partitions=2)
    store_vectors(connection, other, dict(zip(TEXTS, VECTORS, strict=True)))
    with pytest.raises(SpaceUnavailable, match="no graph yet"):
        promote(connection, other.space_id, gate=lambda *_: [])
    ensure_graph(connection, other)
    assert promote(connection, other.space_id, gate=lambda *_: []).space_id == other.space_id
    assert found(connection, 5)[0] == TEXTS[5]
    assert rollback(connection).space_id == space.space_id
    drop(connection, other.space_id)
    assert [name for name in relations(connection) if name.startswith("vectors_2")] == []


@pytest.fixture
def mended(connection: Connection, parted: EmbeddingSpace) -> Iterator[Connection]:
    connection.execute("UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'rag.vectors_1_p1_hnsw'::regclass")
    yield connection


def test_maintenance_mends_the_graph_of_one_partition(mended: Connection) -> None:
    done = list(mend_graphs(mended, waste=Waste(share=0.5, min_bytes=10**9)))
    assert [one.what for one in done] == ["rebuild vectors_1_p1_hnsw"]
    assert list(mend_graphs(mended, waste=Waste(share=0.5, min_bytes=0))) == []
    assert recall(mended) > 0.98


@pytest.mark.parametrize("kind", ["vectors", "codes"])
def test_as_many_partitions_as_let_each_graph_be_built_in_memory(kind: Graph) -> None:
    gigabyte = 2**30
    assert partitions_for(100_000, dimensions=384, graph=kind, memory_bytes=gigabyte) == 1
    ten_million = partitions_for(10_000_000, dimensions=384, graph=kind, memory_bytes=2 * gigabyte)
    assert building_bytes(10_000_000 // ten_million, dimensions=384, graph=kind) <= 2 * gigabyte
    assert building_bytes(10_000_000 // (ten_million - 1), dimensions=384, graph=kind) > 2 * gigabyte


def test_more_partitions_than_are_possible_are_refused(connection: Connection, space: EmbeddingSpace) -> None:
    for wrong in (0, 257):
        with pytest.raises(SpaceUnavailable, match="choose 1 to 256"):
            partition(connection, space.space_id, partitions=wrong, progress=silent)
