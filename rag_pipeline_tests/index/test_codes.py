"""A graph over short codes of the vectors: who writes vectors need not know of it, and what is there can be changed."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from uuid import UUID

import numpy as np
import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from pgvector import HalfVector

from rag_pipeline.index import codes, graph
from rag_pipeline.index.codes import LEVELS, bits_of, thresholds_of
from rag_pipeline.index.database import Connection, connected
from rag_pipeline.index.graph import build_graph, building_memory, ensure_graph, graph_bytes, has_graph
from rag_pipeline.index.partitioning import partition
from rag_pipeline.index.promotion import drop
from rag_pipeline.index.spaces import SpaceVectors, activate, create_space, numbered_space
from rag_pipeline.model import EmbeddingSpace, Graph, text_hash
from rag_pipeline.progress import silent
from rag_pipeline_tests.databases import empty
from rag_pipeline_tests.knowledge import space_of, store_vectors

DIMENSIONS = 256


@pytest.fixture
def database(reused_database: str) -> str:
    empty(reused_database)
    return reused_database


def vectors_of(count: int, *, seed: int = 1, offset: float = 0.05) -> NDArray[np.float32]:
    """Unit vectors in clusters, off the origin as those of most models are."""
    random = np.random.default_rng(seed)
    made = random.normal(size=(12, DIMENSIONS))[random.integers(0, 12, count)]
    made = made + 0.4 * random.normal(size=(count, DIMENSIONS)) + offset * DIMENSIONS**0.5
    return (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)


def fill(connection: Connection, space: EmbeddingSpace, count: int, *, seed: int = 1, start: int = 0) -> None:
    made = vectors_of(count, seed=seed)
    store_vectors(connection, space, {f"text {start + n}": vector for n, vector in enumerate(made)})


def definition(connection: Connection) -> str:
    row = connection.execute("SELECT indexdef FROM pg_indexes WHERE indexname = 'vectors_1_hnsw'").fetchone()
    return "" if row is None else str(row[0])


def trained_on(connection: Connection) -> int | None:
    row = connection.execute("SELECT code_trained_on FROM rag.embedding_spaces WHERE space_id = 1").fetchone()
    assert row is not None
    return row[0]  # type: ignore[no-any-return]


def functions(connection: Connection) -> list[str]:
    rows = connection.execute(
        "SELECT proname FROM pg_proc WHERE pronamespace = 'rag'::regnamespace AND proname LIKE '%\\_code' "
        "AND proname <> 'create_code'"
    )
    return [row[0] for row in rows]


def stored_codes(connection: Connection, *, table: str = "vectors_1") -> dict[UUID, str]:
    return dict(connection.execute(f"SELECT text_hash, code::text FROM rag.{table}".encode()).fetchall())


def code(connection: Connection, vector: NDArray[np.floating]) -> str:
    row = connection.execute("SELECT rag.vectors_1_code(%s)::text", [HalfVector(vector)]).fetchone()
    assert row is not None
    return str(row[0])


@pytest.mark.parametrize(("dimensions", "kind"), [(8, "vectors"), (255, "vectors"), (256, "codes"), (1536, "codes")])
def test_long_vectors_have_a_graph_over_codes(connection, dimensions, kind):
    assert space_of(connection, dimensions=dimensions).graph == kind


@pytest.mark.parametrize("kind", ["vectors", "codes"])
def test_a_graph_is_over_what_was_asked_for(connection, kind: Graph):
    space = create_space(
        connection, provider="fake", model="m", recipe="text/v1", dimensions=DIMENSIONS, graph=kind
    )  # fmt: skip
    fill(connection, space, 100)
    assert ensure_graph(connection, space) is True
    assert ("code bit_hamming_ops" if kind == "codes" else "embedding halfvec_cosine_ops") in definition(connection)
    assert ensure_graph(connection, space) is False


def test_every_vector_has_the_code_that_its_thresholds_say_however_it_came(connection):
    space = space_of(connection, dimensions=DIMENSIONS)
    fill(connection, space, 200)
    ensure_graph(connection, space)
    fill(connection, space, 50, seed=2, start=200)
    # Another tenant's is taken over, one that is there twice goes the other way into the table.
    other = SpaceVectors(connection, space, tenant="other")
    assert other.known([text_hash("text 210")]) == {text_hash("text 210")}
    twice = vectors_of(2, seed=3)
    SpaceVectors(connection, space, tenant="acme").store([text_hash("text 0"), text_hash("text 250")], twice)
    levels = thresholds_of(sample_of(connection), dimensions=DIMENSIONS)
    found = connection.execute("SELECT embedding, code::text FROM rag.vectors_1").fetchall()
    assert len(found) == 252
    # Of the first 200 vectors were the thresholds; these are of all, so a value beside one may fall on its other side.
    for embedding, bits in found:
        vector = np.asarray(embedding.to_numpy(), dtype=np.float32)
        expected = np.concatenate([vector > level for level in levels])
        assert np.mean(expected != (np.frombuffer(bits.encode(), dtype=np.uint8) == ord("1"))) < 0.1


def sample_of(connection: Connection) -> NDArray[np.float32]:
    rows = connection.execute("SELECT embedding FROM rag.vectors_1").fetchall()
    return np.stack([np.asarray(row[0].to_numpy(), dtype=np.float32) for row in rows])


@given(
    sample=arrays(np.float32, (70, 4), elements=st.floats(-1, 1, width=16)),
    one=arrays(np.float32, 4, elements=st.floats(-1, 1, width=16)),
    other=arrays(np.float32, 4, elements=st.floats(-1, 1, width=16)),
)
@settings(max_examples=60, deadline=None)
def test_the_distance_of_codes_counts_the_thresholds_between_two_vectors(sample, one, other):
    levels = thresholds_of(sample, dimensions=4)
    assert len(levels) == len(LEVELS) and bits_of(4) == 12
    assert all(np.all(lower <= upper) for lower, upper in pairwise(levels))
    between = sum(np.sum((np.minimum(one, other) <= level) & (level < np.maximum(one, other))) for level in levels)
    differ = sum(np.sum((one > level) != (other > level)) for level in levels)
    assert between == differ


def test_of_few_vectors_no_thresholds_are_taken():
    neutral = thresholds_of(np.zeros((0, DIMENSIONS)), dimensions=DIMENSIONS)
    assert [level[0] for level in neutral] == [np.float16(level / 16) for level in LEVELS]
    few = thresholds_of(vectors_of(63), dimensions=DIMENSIONS)
    assert all(np.array_equal(*pair) for pair in zip(neutral, few, strict=True))


def test_the_length_of_a_vector_says_nothing(connection):
    space = space_of(connection, dimensions=DIMENSIONS)
    made = vectors_of(100)
    store_vectors(connection, space, {f"text {n}": 2.0 ** (n % 3) * vector for n, vector in enumerate(made)})
    ensure_graph(connection, space)
    assert code(connection, made[0]) == code(connection, 8 * made[0])


def test_thresholds_of_few_vectors_are_taken_again_once_there_are_many(connection):
    space = space_of(connection, dimensions=DIMENSIONS)
    fill(connection, space, 10)
    ensure_graph(connection, space)
    before = stored_codes(connection)
    fill(connection, space, 980, seed=2, start=10)
    assert (ensure_graph(connection, space), trained_on(connection)) == (False, 10)
    fill(connection, space, 20, seed=3, start=990)
    assert (ensure_graph(connection, space), trained_on(connection)) == (True, 1010)
    after = stored_codes(connection)
    assert len(after) == 1010 and all(after[name] != before[name] for name in before)
    assert has_graph(connection, space)
    assert ensure_graph(connection, space) is False


def test_they_stay_while_somebody_reads_the_vectors(database, connection, monkeypatch):
    monkeypatch.setattr(graph, "_PATIENCE_S", 0.2)
    space = space_of(connection, dimensions=DIMENSIONS)
    fill(connection, space, 10)
    ensure_graph(connection, space)
    fill(connection, space, 1000, seed=2, start=10)
    with connected(database) as reader, reader.transaction():
        reader.execute("SELECT count(*) FROM rag.vectors_1")
        assert ensure_graph(connection, space) is False
    assert trained_on(connection) == 10 and has_graph(connection, space)
    assert ensure_graph(connection, space) is True


@pytest.mark.parametrize("partitions", [1, 3])
def test_a_space_changes_to_codes_and_back(connection, partitions):
    space = create_space(
        connection, provider="fake", model="m", recipe="text/v1", dimensions=DIMENSIONS, graph="vectors",
        partitions=partitions,
    )  # fmt: skip
    fill(connection, space, 300)
    ensure_graph(connection, space)
    activate(connection, space)
    changed = partition(connection, space.space_id, graph="codes", progress=silent)
    assert (changed.graph, changed.partitions, has_graph(connection, changed)) == ("codes", partitions, True)
    assert len(stored_codes(connection)) == 300
    fill(connection, changed, 10, seed=2, start=300)
    back = partition(connection, space.space_id, graph="vectors", progress=silent)
    assert (back.graph, back.partitions, has_graph(connection, back)) == ("vectors", partitions, True)
    assert functions(connection) == []
    assert connection.execute("SELECT count(*) FROM rag.vectors_1").fetchone() == (310,)


def test_what_a_stopped_change_has_left_is_not_taken_for_another_kind(connection, monkeypatch):
    space = space_of(connection, dimensions=DIMENSIONS)
    fill(connection, space, 100)
    ensure_graph(connection, space)
    activate(connection, space)
    with monkeypatch.context() as stopped, pytest.raises(RuntimeError):
        stopped.setattr("rag_pipeline.index.partitioning._switch", lambda *_: raise_stopped())
        partition(connection, space.space_id, graph="vectors", progress=silent)
    with monkeypatch.context() as stopped, pytest.raises(RuntimeError):
        stopped.setattr("rag_pipeline.index.partitioning._switch", lambda *_: raise_stopped())
        # Its copy has as many tables, but a graph over vectors.
        partition(connection, space.space_id, partitions=2, progress=silent)
    changed = partition(connection, space.space_id, graph="vectors", progress=silent)
    assert changed.graph == "vectors" and "halfvec_cosine_ops" in definition(connection)
    again = partition(connection, space.space_id, graph="codes", progress=silent)
    assert again.graph == "codes" and "bit_hamming_ops" in definition(connection)


def raise_stopped() -> None:
    raise RuntimeError("stopped")


def test_a_space_that_is_dropped_leaves_nothing(connection):
    space = space_of(connection, dimensions=DIMENSIONS)
    fill(connection, space, 100)
    ensure_graph(connection, space)
    assert functions(connection) == ["vectors_1_code"]
    drop(connection, space.space_id)
    assert functions(connection) == []


def test_a_graph_over_codes_takes_the_room_and_the_memory_that_is_reckoned(connection):
    space = space_of(connection, dimensions=DIMENSIONS)
    random = np.random.default_rng(5)
    names = [UUID(int=n) for n in range(3000)]
    SpaceVectors(connection, space, tenant="acme").store(names, random.normal(size=(3000, DIMENSIONS)))
    ensure_graph(connection, space)
    (held,) = connection.execute("SELECT pg_relation_size('rag.vectors_1_hnsw')").fetchone() or (0,)
    assert held == pytest.approx(graph_bytes(3000, dimensions=DIMENSIONS, graph="codes"), rel=0.1)
    assert building_memory(connection, space, "vectors_1") > held
    assert held < graph_bytes(3000, dimensions=DIMENSIONS, graph="vectors") / 1.9


def test_a_copy_of_a_space_is_given_codes_of_the_same_thresholds(connection):
    space = space_of(connection, dimensions=DIMENSIONS)
    fill(connection, space, 100)
    ensure_graph(connection, space)
    before = stored_codes(connection)
    activate(connection, space)
    parted = partition(connection, space.space_id, partitions=2, progress=silent)
    assert stored_codes(connection) == before
    assert build_graph(connection, parted, "vectors_1") is False


def test_two_runs_that_finish_together_train_once(database, connection):
    space = space_of(connection, dimensions=DIMENSIONS)
    fill(connection, space, 500)

    def build(_: int) -> bool:
        with connected(database) as own:
            return ensure_graph(own, numbered_space(own, space.space_id))

    with ThreadPoolExecutor(3) as pool:
        assert sorted(pool.map(build, range(3))) == [False, False, True]
    assert functions(connection) == ["vectors_1_code"]


def test_somebody_who_removed_the_column_gets_it_back_with_the_graph(connection):
    space = space_of(connection, dimensions=DIMENSIONS)
    fill(connection, space, 100)
    ensure_graph(connection, space)
    connection.execute("ALTER TABLE rag.vectors_1 DROP COLUMN code")
    assert not has_graph(connection, space)
    assert ensure_graph(connection, space) and has_graph(connection, space)


def test_a_code_cannot_be_written(connection):
    space = space_of(connection, dimensions=DIMENSIONS)
    fill(connection, space, 70)
    ensure_graph(connection, space)
    with pytest.raises(psycopg.errors.GeneratedAlways):
        connection.execute("UPDATE rag.vectors_1 SET code = ~code")


def test_the_thresholds_of_a_space_are_told(connection):
    """What a person finds who looks the function up: three lists of as many numbers as dimensions."""
    space = space_of(connection, dimensions=DIMENSIONS)
    fill(connection, space, 100)
    ensure_graph(connection, space)
    (body,) = connection.execute("SELECT prosrc FROM pg_proc WHERE proname = 'vectors_1_code'").fetchone() or ("",)
    lists = [json.loads(part) for part in body.split("'")[1::2]]
    assert [len(one) for one in lists] == [DIMENSIONS] * len(LEVELS)
    assert codes.code_function("vectors_1") == "vectors_1_code"
