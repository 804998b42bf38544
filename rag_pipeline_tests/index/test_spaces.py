"""Embedding spaces: one vector table each, one active space, vectors kept at half precision."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import psycopg
import pytest
from psycopg import sql

from rag_pipeline.errors import DimensionMismatch
from rag_pipeline.index.database import connected
from rag_pipeline.index.graph import allow_memory, build_in_memory, building_bytes, ensure_graph, graph_bytes
from rag_pipeline.index.spaces import SpaceVectors, activate, active_space, create_space, find_space
from rag_pipeline.model import text_hash
from rag_pipeline_tests.knowledge import space_of, store_vectors

RANDOM = np.random.default_rng(7)


def hashes(count: int):
    return [text_hash(f"text {n}") for n in range(count)]


def statuses(connection) -> dict[int, str]:
    return dict(connection.execute("SELECT space_id, status FROM rag.embedding_spaces"))


def test_a_space_is_created_once(connection):
    space = space_of(connection)
    assert space_of(connection) == space
    assert (space.provider, space.model, space.dimensions, space.status) == ("fake", "test", 8, "building")
    tables = connection.execute("SELECT tablename FROM pg_tables WHERE tablename LIKE 'vectors_%'").fetchall()
    assert tables == [(f"vectors_{space.space_id}",)]


def test_several_processes_may_create_the_same_space_at_once(database):
    def create(_: int) -> int:
        with connected(database) as connection:
            return space_of(connection).space_id

    with ThreadPoolExecutor(6) as pool:
        assert len(set(pool.map(create, range(6)))) == 1


@pytest.mark.parametrize("other", [{"dimensions": 16}, {"model": "larger"}, {"recipe": "text/v2"}, {"provider": "b"}])
def test_whatever_makes_vectors_incomparable_makes_another_space(connection, other):
    values = {"provider": "a", "model": "m", "recipe": "text/v1", "dimensions": 8}
    first = create_space(connection, **values)
    second = create_space(connection, **values | other)
    assert second.space_id != first.space_id
    assert find_space(connection, **values) == first


def test_a_space_is_found_without_knowing_its_length(connection):
    assert find_space(connection, provider="fake", model="test", recipe="text/v1", dimensions=None) is None
    space = space_of(connection)
    assert find_space(connection, provider="fake", model="test", recipe="text/v1", dimensions=None) == space
    assert find_space(connection, provider="fake", model="test", recipe="text/v1", dimensions=9) is None


def test_vectors_come_back_as_they_were_stored_at_half_precision(connection):
    vectors = SpaceVectors(connection, space_of(connection), tenant="acme")
    given = RANDOM.normal(size=(5, 8)).astype(np.float32)
    assert vectors.store(hashes(5), given) == 5
    assert vectors.store(hashes(5), given) == 0
    assert vectors.known(hashes(7)) == set(hashes(5))
    found = vectors.fetch(hashes(7))
    assert found.keys() == set(hashes(5))
    for text_id, vector in zip(hashes(5), given, strict=True):
        assert found[text_id].dtype == np.float16
        np.testing.assert_array_equal(found[text_id], vector.astype(np.float16))


def test_nothing_asked_is_nothing_found(connection):
    vectors = SpaceVectors(connection, space_of(connection), tenant="acme")
    assert (vectors.known([]), vectors.fetch([])) == (set(), {})
    assert vectors.store([], np.empty((0, 8))) == 0


def test_one_text_twice_in_a_batch_is_stored_once(connection):
    vectors = SpaceVectors(connection, space_of(connection), tenant="acme")
    assert vectors.store(hashes(1) * 2, np.ones((2, 8))) == 1


@pytest.mark.parametrize("shape", [(1, 9), (1, 7), (8,)])
def test_vectors_of_another_length_are_refused_with_what_to_do(connection, shape):
    vectors = SpaceVectors(connection, space_of(connection), tenant="acme")
    with pytest.raises(DimensionMismatch) as caught:
        vectors.store(hashes(1), np.ones(shape))
    message = str(caught.value)
    assert f"model 'test' returned {shape[-1]} dimensions, its embedding space holds 8" in message
    assert "set `dimensions = 8` under [embedding]" in message


def test_a_text_that_another_tenant_has_embedded_is_not_embedded_again(connection):
    space = space_of(connection)
    given = RANDOM.normal(size=(2, 8))
    SpaceVectors(connection, space, tenant="acme").store(hashes(2), given)
    globex = SpaceVectors(connection, space, tenant="globex")
    assert globex.known([*hashes(1), text_hash("new")]) == set(hashes(1))
    np.testing.assert_array_equal(globex.fetch(hashes(1))[hashes(1)[0]], given[0].astype(np.float16))
    # Only what was asked for: the other text is still acme's alone.
    assert globex.fetch(hashes(2)).keys() == set(hashes(1))


def test_tenants_adopting_at_once_agree(database):
    with connected(database) as connection:
        space = space_of(connection)
        SpaceVectors(connection, space, tenant="acme").store(hashes(200), RANDOM.normal(size=(200, 8)))

    def adopt(step: int) -> int:
        with connected(database) as connection:
            return len(SpaceVectors(connection, space, tenant="globex").known(hashes(200)[:: step or 1]))

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(adopt, (1, -1, 1, -1))) == [200] * 4


def test_activating_a_space_retires_the_one_before(connection):
    first, second = space_of(connection, model="a"), space_of(connection, model="b")
    assert active_space(connection) is None
    assert activate(connection, first) is True
    assert activate(connection, first) is False
    assert activate(connection, second) is True
    assert statuses(connection) == {first.space_id: "retired", second.space_id: "active"}
    active = active_space(connection)
    assert active is not None
    assert active.space_id == second.space_id
    # And back again.
    assert activate(connection, first) is True
    assert statuses(connection) == {first.space_id: "active", second.space_id: "retired"}


def test_a_promotion_is_seen_whole_or_not_at_all(database, connection):
    first, second = space_of(connection, model="a"), space_of(connection, model="b")
    activate(connection, first)
    with connected(database) as other, other.transaction(force_rollback=True):
        activate(other, second)
        seen = active_space(connection)
        assert seen is not None
        assert seen.space_id == first.space_id
    assert statuses(connection) == {first.space_id: "active", second.space_id: "building"}


def test_promotions_at_once_leave_one_active_space(database, connection):
    spaces = [space_of(connection, model=name) for name in "abcd"]
    activate(connection, spaces[0])

    def promote(index: int) -> bool:
        with connected(database) as own:
            return activate(own, spaces[index])

    for _ in range(3):
        with ThreadPoolExecutor(3) as pool:
            list(pool.map(promote, (1, 2, 3)))
        assert sorted(statuses(connection).values()).count("active") == 1


def valid_graphs(connection) -> int:
    row = connection.execute(
        "SELECT count(*) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am a ON a.oid = c.relam "
        "WHERE a.amname = 'hnsw' AND indisvalid AND indisready"
    ).fetchone()
    return row[0]


def test_the_graph_is_built_once_and_not_for_an_empty_table(connection):
    space = space_of(connection)
    assert ensure_graph(connection, space) is False
    assert valid_graphs(connection) == 0
    store_vectors(connection, space, {f"text {n}": RANDOM.normal(size=8) for n in range(100)})
    assert ensure_graph(connection, space) is True
    assert ensure_graph(connection, space) is False
    assert valid_graphs(connection) == 1
    # What the planner needs was gathered with it.
    assert connection.execute("SELECT reltuples FROM pg_class WHERE relname = 'vectors_1'").fetchone() == (100,)


def test_two_runs_that_finish_together_build_one_graph(database, connection):
    space = space_of(connection)
    SpaceVectors(connection, space, tenant="acme").store(hashes(3000), RANDOM.normal(size=(3000, 8)))

    def build(_: int) -> bool:
        with connected(database) as own:
            return ensure_graph(own, space)

    with ThreadPoolExecutor(3) as pool:
        assert sorted(pool.map(build, range(3))) == [False, False, True]
    assert valid_graphs(connection) == 1


class WithoutSharedMemory:
    """A connection to a server in a container: a build that wants workers finds no room for what they share."""

    def __init__(self, connection) -> None:
        self._connection = connection
        self.refused = 0

    def __getattr__(self, name: str):
        return getattr(self._connection, name)

    def execute(self, query, values=None):
        if "INDEX" in (query if isinstance(query, str) else query.as_string(self._connection)):
            (workers,) = self._connection.execute("SHOW max_parallel_maintenance_workers").fetchone()
            if workers != "0":
                self.refused += 1
                raise psycopg.errors.DiskFull("could not resize shared memory segment: No space left on device")
        return self._connection.execute(query, values)


def test_a_server_without_shared_memory_builds_the_graph_alone(connection):
    space = space_of(connection)
    store_vectors(connection, space, {f"text {n}": RANDOM.normal(size=8) for n in range(100)})
    within = WithoutSharedMemory(connection)
    assert ensure_graph(within, space) is True
    assert within.refused == 1
    assert valid_graphs(connection) == 1


def test_a_graph_is_built_again_alone_too(connection):
    space = space_of(connection)
    store_vectors(connection, space, {f"text {n}": RANDOM.normal(size=8) for n in range(100)})
    ensure_graph(connection, space)
    within = WithoutSharedMemory(connection)
    build_in_memory(within, sql.SQL("REINDEX INDEX CONCURRENTLY rag.vectors_1_hnsw"))
    assert within.refused == 1
    assert valid_graphs(connection) == 1


def test_a_graph_is_built_in_the_memory_that_it_needs(connection):
    def allowed(**graph: int) -> int:
        with connection.transaction():
            allow_memory(connection, in_transaction=True, **graph)
            (kilobytes,) = connection.execute(
                "SELECT setting::bigint FROM pg_settings WHERE name = 'maintenance_work_mem'"
            ).fetchone()
        return kilobytes

    million = building_bytes(1_000_000, dimensions=384, graph="vectors")
    assert allowed() == allowed(graph=building_bytes(1_000, dimensions=384, graph="vectors")) == 512 * 1024
    assert graph_bytes(1_000_000, dimensions=384, graph="vectors") * 1.27 < million
    assert allowed(graph=million) == million // 1024
    assert allowed(graph=100 * million) == 2 * 1024 * 1024
    connection.execute("SET maintenance_work_mem = '3GB'")
    assert allowed(graph=million) == 3 * 1024 * 1024


@pytest.mark.parametrize("tenant", ["acme", "o'brien", "büro 🏢"])
def test_vectors_that_are_there_already_or_come_twice_are_stored_once(connection, tenant):
    space = space_of(connection)
    vectors = SpaceVectors(connection, space, tenant=tenant)
    names, values = hashes(6), RANDOM.normal(size=(6, 8)).astype(np.float32)
    assert vectors.store(names[:3], values[:3]) == 3
    # Those that another run stored meanwhile keep their vector, the others are added.
    assert vectors.store(names[1:5], values[1:5] + 1) == 2
    assert vectors.store([names[5], names[5]], values[[5, 5]]) == 1
    found = vectors.fetch(names)
    kept = values + np.array([0, 0, 0, 1, 1, 0])[:, None]
    for number, name in enumerate(names):
        np.testing.assert_array_equal(found[name], kept[number].astype(np.float16))
    assert vectors.store([], values[:0]) == 0
    assert connection.execute(f"SELECT DISTINCT tenant_id FROM rag.vectors_{space.space_id}").fetchall() == [(tenant,)]
