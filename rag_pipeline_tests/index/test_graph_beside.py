"""The first graph of a space, built on a connection of its own while documents are written on another."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import psycopg
import pytest

from rag_pipeline.errors import DatabaseUnavailable
from rag_pipeline.index.database import Connection, connected
from rag_pipeline.index.graph import ensure_graph, has_graph
from rag_pipeline.index.graph_beside import graph_beside
from rag_pipeline.index.spaces import SpaceVectors
from rag_pipeline.index.stage import index_documents
from rag_pipeline.lake.store import Lake
from rag_pipeline.model import DayRange, EmbeddingSpace, text_hash
from rag_pipeline.progress import silent
from rag_pipeline_tests.index.test_stage import put
from rag_pipeline_tests.knowledge import DAY, NOW, entry, space_of, store_vectors

RANDOM = np.random.default_rng(4)


def filled(connection: Connection, count: int = 3000, dimensions: int = 8) -> EmbeddingSpace:
    space = space_of(connection, dimensions=dimensions)
    hashes = [text_hash(f"text {number}") for number in range(count)]
    SpaceVectors(connection, space, tenant="acme").store(
        hashes, RANDOM.normal(size=(count, dimensions)).astype(np.float32)
    )
    return space


def building(connection: Connection) -> int:
    """Statements that build an index."""
    found = connection.execute(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query ILIKE 'CREATE INDEX%hnsw%'"
        " AND state = 'active' AND backend_type = 'client backend'"
    ).fetchone()
    assert found
    return int(found[0])


def test_it_is_built_while_the_caller_goes_on(database, connection):
    space = filled(connection)
    with graph_beside(connection, space, connect=partial(connected, database)) as is_built:
        assert connection.execute("SELECT 1").fetchone() == (1,)
        assert is_built()
    assert has_graph(connection, space)
    with graph_beside(connection, space, connect=partial(connected, database)) as is_built:
        assert not is_built()


def test_without_vectors_nobody_connects(connection):
    space = space_of(connection)

    def connect() -> AbstractContextManager[Connection]:
        raise AssertionError("not needed")

    with graph_beside(connection, space, connect=connect) as is_built:
        assert not is_built()


def test_an_error_of_the_caller_ends_the_build(database, connection):
    space = filled(connection, count=20_000, dimensions=384)
    started = threading.active_count()
    with (
        pytest.raises(RuntimeError, match="of the caller"),
        graph_beside(connection, space, connect=partial(connected, database)),
    ):
        while not building(connection):
            time.sleep(0.01)
        raise RuntimeError("of the caller")
    assert building(connection) == 0
    assert not has_graph(connection, space)
    assert threading.active_count() <= started
    # Nothing of it is in the way of the next.
    assert connection.execute(
        "SELECT count(*) FROM pg_locks WHERE relation = 'rag.vectors_1'::regclass"
    ).fetchone() == (0,)


def test_an_error_of_the_build_is_the_callers(database, connection):
    space = filled(connection)

    @contextmanager
    def connect() -> Iterator[Connection]:
        with connected(database) as own:
            own.execute("SET default_transaction_read_only = on")
            yield own

    with (
        pytest.raises(psycopg.errors.ReadOnlySqlTransaction),
        graph_beside(connection, space, connect=connect) as is_built,
    ):
        is_built()


def test_the_stage_builds_it_afterwards_where_there_is_no_second_connection(tmp_path: Path, connection, caplog):
    space = space_of(connection)
    store_vectors(connection, space, {"one": np.eye(8)[0]})
    lake = Lake(str(tmp_path))
    put(lake, entry("a.md", "one"))

    def connect() -> AbstractContextManager[Connection]:
        raise DatabaseUnavailable("sorry, too many clients already")

    report = index_documents(
        lake, DayRange(first=DAY, last=DAY), connection=connection, space=space, fingerprint="v1", now=NOW,
        progress=silent, connect=connect,
    )  # fmt: skip
    assert report.graph_built
    assert has_graph(connection, space)
    assert "after the documents, not beside them: sorry, too many clients already" in caplog.text


def test_the_stage_takes_statistics_when_all_is_written(tmp_path: Path, database, connection):
    space = space_of(connection)
    store_vectors(connection, space, {"one": np.eye(8)[0]})
    lake = Lake(str(tmp_path))
    put(lake, entry("a.md", "one"))
    report = index_documents(
        lake, DayRange(first=DAY, last=DAY), connection=connection, space=space, fingerprint="v1", now=NOW,
        progress=silent, connect=partial(connected, database),
    )  # fmt: skip
    assert report.graph_built
    assert not ensure_graph(connection, space)
    counted = connection.execute(
        "SELECT relname, reltuples FROM pg_class WHERE oid IN ('rag.chunks'::regclass, 'rag.vectors_1'::regclass)"
    )
    assert dict(counted.fetchall()) == {"chunks": 1, "vectors_1": 1}
