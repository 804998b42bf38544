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

from rag_pipeline.errors import SpaceUnavailable
from rag_pipeline.index import codes
from rag_pipeline.index.catalog import inspect_catalog
from rag_pipeline.index.codes import ENOUGH, LEVELS, bits_of, thresholds_of
from rag_pipeline.index.database import Connection, connected
from rag_pipeline.index.graph import build_graph, building_memory, ensure_graph, graph_bytes, has_graph
from rag_pipeline.index.partitioning import partition
from rag_pipeline.index.promotion import drop, standing
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


@pytest.mark.parametrize(
    ("dimensions", "kind"),
    [(8, "vectors"), (255, "vectors"), (256, "codes"), (3300, "codes"), (3301, "vectors"), (4000, "vectors")],
)  # fmt: skip
def test_long_vectors_have_a_graph_over_codes(connection, dimensions, kind):
    space = space_of(connection, dimensions=dimensions)
    assert space.graph == kind
    made = np.random.default_rng(2).normal(size=(ENOUGH, dimensions)).astype(np.float32)
    # A name of the longest kind: the row has to hold that, too.
    store_vectors(connection, space, {f"text {n}": vector for n, vector in enumerate(made)}, tenant="a" * 60)
    assert ensure_graph(connection, space)
    toast = "SELECT coalesce(pg_relation_size(nullif(reltoastrelid, 0)), 0) FROM pg_class WHERE relname = 'vectors_1'"
    assert connection.execute(toast).fetchone() == (0,)


def test_codes_of_vectors_that_are_too_long_for_them_are_refused(connection):
    with pytest.raises(SpaceUnavailable, match="3,301 dimensions leave no room for codes beside them, 3,300 are"):
        create_space(connection, provider="fake", model="m", recipe="v1", dimensions=3301, graph="codes")
    space = space_of(connection, dimensions=3301)
    with pytest.raises(SpaceUnavailable, match="leave no room"):
        partition(connection, space.space_id, graph="codes", progress=silent)


@pytest.mark.parametrize("kind", ["vectors", "codes"])
def test_a_graph_is_over_what_was_asked_for(connection, kind: Graph):
    space = create_space(
        connection, provider="fake", model="m", recipe="text/v1", dimensions=DIMENSIONS, graph=kind
    )  # fmt: skip
    fill(connection, space, ENOUGH)
    assert ensure_graph(connection, space) is True
    assert ("code bit_hamming_ops" if kind == "codes" else "embedding halfvec_cosine_ops") in definition(connection)
    assert ensure_graph(connection, space) is False


def test_every_vector_has_the_code_that_its_thresholds_say_however_it_came(connection):
    space = space_of(connection, dimensions=DIMENSIONS)
    fill(connection, space, ENOUGH)
    ensure_graph(connection, space)
    fill(connection, space, 50, seed=2, start=ENOUGH)
    # Another tenant's is taken over, one that is there twice goes the other way into the table.
    other = SpaceVectors(connection, space, tenant="other")
    assert other.known([text_hash("text 1010")]) == {text_hash("text 1010")}
    twice = vectors_of(2, seed=3)
    SpaceVectors(connection, space, tenant="acme").store([text_hash("text 0"), text_hash("text 1050")], twice)
    levels = thresholds_of(sample_of(connection), dimensions=DIMENSIONS)
    found = connection.execute("SELECT embedding, code::text FROM rag.vectors_1").fetchall()
    assert len(found) == ENOUGH + 52
    # Of the first thousand vectors were the thresholds; these are of all, so a value beside one may fall beyond it.
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
    made = vectors_of(ENOUGH)
    store_vectors(connection, space, {f"text {n}": 2.0 ** (n % 3) * vector for n, vector in enumerate(made)})
    ensure_graph(connection, space)
    assert code(connection, made[0]) == code(connection, 8 * made[0])


def test_a_space_of_few_vectors_has_neither_codes_nor_a_graph_and_lacks_nothing(connection):
    space = space_of(connection, dimensions=DIMENSIONS)
    fill(connection, space, ENOUGH - 1)
    assert ensure_graph(connection, space) is False
    assert (trained_on(connection), functions(connection)) == (None, [])
    assert standing(connection, space).has_graph and not has_graph(connection, space)
    activate(connection, space)
    assert inspect_catalog(connection)["missing_graphs"].count == 0
    fill(connection, space, 1, seed=2, start=ENOUGH)
    assert inspect_catalog(connection)["missing_graphs"].count == 1
    assert not standing(connection, space).has_graph
    assert not numbered_space(connection, space.space_id).coded
    assert ensure_graph(connection, space) is True
    assert (trained_on(connection), functions(connection)) == (ENOUGH, ["vectors_1_code"])
    assert numbered_space(connection, space.space_id).coded


def test_thresholds_are_of_texts_however_many_tenants_have_them(connection):
    space = space_of(connection, dimensions=DIMENSIONS)
    for tenant in ("acme", "globex"):
        made = vectors_of(600)
        store_vectors(connection, space, {f"text {n}": one for n, one in enumerate(made)}, tenant=tenant)
    ensure_graph(connection, space)
    assert trained_on(connection) == 600


@pytest.mark.parametrize("partitions", [1, 3])
def test_a_space_changes_to_codes_and_back(connection, partitions):
    space = create_space(
        connection, provider="fake", model="m", recipe="text/v1", dimensions=DIMENSIONS, graph="vectors",
        partitions=partitions,
    )  # fmt: skip
    fill(connection, space, ENOUGH)
    ensure_graph(connection, space)
    activate(connection, space)
    changed = partition(connection, space.space_id, graph="codes", progress=silent)
    assert (changed.graph, changed.partitions, has_graph(connection, changed)) == ("codes", partitions, True)
    assert len(stored_codes(connection)) == ENOUGH
    assert changed.coded
    fill(connection, changed, 10, seed=2, start=ENOUGH)
    back = partition(connection, space.space_id, graph="vectors", progress=silent)
    assert (back.graph, back.partitions, has_graph(connection, back)) == ("vectors", partitions, True)
    assert functions(connection) == [] and not back.coded
    assert connection.execute("SELECT count(*) FROM rag.vectors_1").fetchone() == (ENOUGH + 10,)


def test_what_a_stopped_change_has_left_is_not_taken_for_another_kind(connection, monkeypatch):
    space = space_of(connection, dimensions=DIMENSIONS)
    fill(connection, space, ENOUGH)
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
    fill(connection, space, ENOUGH)
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
    fill(connection, space, ENOUGH)
    ensure_graph(connection, space)
    before = stored_codes(connection)
    activate(connection, space)
    parted = partition(connection, space.space_id, partitions=2, progress=silent)
    assert stored_codes(connection) == before
    assert build_graph(connection, parted, "vectors_1") is False
    assert parted.coded


def test_two_runs_that_finish_together_train_once(database, connection):
    space = space_of(connection, dimensions=DIMENSIONS)
    fill(connection, space, 2 * ENOUGH)

    def build(_: int) -> bool:
        with connected(database) as own:
            return ensure_graph(own, numbered_space(own, space.space_id))

    with ThreadPoolExecutor(3) as pool:
        assert sorted(pool.map(build, range(3))) == [False, False, True]
    assert functions(connection) == ["vectors_1_code"]


def test_somebody_who_removed_the_column_gets_it_back_with_the_graph(connection):
    space = space_of(connection, dimensions=DIMENSIONS)
    fill(connection, space, ENOUGH)
    ensure_graph(connection, space)
    connection.execute("ALTER TABLE rag.vectors_1 DROP COLUMN code")
    assert not has_graph(connection, space)
    assert ensure_graph(connection, space) and has_graph(connection, space)


def test_a_space_that_gets_codes_before_it_has_enough_vectors_gets_them_later(connection):
    space = create_space(
        connection, provider="fake", model="m", recipe="text/v1", dimensions=DIMENSIONS, graph="vectors"
    )  # fmt: skip
    fill(connection, space, 100)
    ensure_graph(connection, space)
    activate(connection, space)
    changed = partition(connection, space.space_id, graph="codes", progress=silent)
    assert (changed.graph, changed.coded, has_graph(connection, changed)) == ("codes", False, False)
    fill(connection, space, ENOUGH, seed=2, start=100)
    # Whoever has read the space before.
    assert ensure_graph(connection, space) and "bit_hamming_ops" in definition(connection)


def test_the_reader_may_make_codes_where_nobody_may_by_default(connection):
    space = space_of(connection, dimensions=DIMENSIONS)
    fill(connection, space, ENOUGH)
    connection.execute("ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC")
    try:
        ensure_graph(connection, space)
    finally:
        connection.execute("ALTER DEFAULT PRIVILEGES GRANT EXECUTE ON FUNCTIONS TO PUBLIC")
    with connection.transaction():
        connection.execute("SET LOCAL ROLE rag_reader")
        assert len(code(connection, vectors_of(1)[0])) == bits_of(DIMENSIONS)


def test_a_space_is_dropped_while_its_graph_is_wanted(database, connection):
    """Either is first, and neither waits for the other in a circle."""
    for _ in range(3):
        space = space_of(connection, dimensions=DIMENSIONS)
        store_vectors(connection, space, {f"text {n}": one for n, one in enumerate(vectors_of(ENOUGH))})

        def build(space: EmbeddingSpace = space) -> str:
            try:
                with connected(database) as own:
                    return str(ensure_graph(own, space))
            except (SpaceUnavailable, psycopg.errors.UndefinedTable):
                return "gone"

        with ThreadPoolExecutor(1) as pool:
            built = pool.submit(build)
            drop(connection, space.space_id)
            assert built.result() in ("True", "gone")
    assert functions(connection) == []


def test_a_code_cannot_be_written(connection):
    space = space_of(connection, dimensions=DIMENSIONS)
    fill(connection, space, ENOUGH)
    ensure_graph(connection, space)
    with pytest.raises(psycopg.errors.GeneratedAlways):
        connection.execute("UPDATE rag.vectors_1 SET code = ~code")


def test_the_thresholds_of_a_space_are_told(connection):
    """What a person finds who looks the function up: three lists of as many numbers as dimensions."""
    space = space_of(connection, dimensions=DIMENSIONS)
    fill(connection, space, ENOUGH)
    ensure_graph(connection, space)
    (body,) = connection.execute("SELECT prosrc FROM pg_proc WHERE proname = 'vectors_1_code'").fetchone() or ("",)
    lists = [json.loads(part) for part in body.split("'")[1::2]]
    assert [len(one) for one in lists] == [DIMENSIONS] * len(LEVELS)
    assert codes.code_function("vectors_1") == "vectors_1_code"
