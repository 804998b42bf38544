"""Dagster's own tables: a first start that was killed at any of its statements is made whole by the next."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import dagster as dg
import pytest
from sqlalchemy import Engine, NullPool, Pool, create_engine, event, inspect, text

from rag_pipeline.cli import dagster_storage
from rag_pipeline.cli.dagster_storage import opened_instance, ready_storage
from rag_pipeline.cli.processes import process_tags
from rag_pipeline.defs.assets import POOLS
from rag_pipeline.settings.pools import Pools

CHECKOUT = Path(__file__).resolve().parent.parent


class KilledHere(BaseException):
    """Nothing catches it, as nothing catches SIGKILL."""


@contextmanager
def killed_at(statement: int) -> Iterator[None]:
    """Stop before this statement, the first being 1, that SQLAlchemy sends."""
    sent = 0

    def count(*_: object) -> None:
        nonlocal sent
        sent += 1
        if sent == statement:
            raise KilledHere

    event.listen(Engine, "before_cursor_execute", count)
    try:
        with pytest.raises(KilledHere):
            yield
    finally:
        event.remove(Engine, "before_cursor_execute", count)


@pytest.fixture
def storage(empty_database, tmp_path, monkeypatch) -> str:
    """The address of a database that Dagster is about to use."""
    for name in ("dagster.yaml", "workspace.yaml"):
        shutil.copyfile(CHECKOUT / name, tmp_path / name)
    url = empty_database.replace("postgresql://", "postgresql+psycopg2://")
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    monkeypatch.setenv("RAG_DAGSTER_STORAGE", str(tmp_path))
    monkeypatch.setenv("DAGSTER_POSTGRES_URL", url)
    return url


def shape(url: str) -> dict[str, set[str]]:
    """Every table with its indexes."""
    engine = create_engine(url, poolclass=NullPool)
    found = inspect(engine)
    return {t: {str(i["name"]) for i in found.get_indexes(t)} for t in found.get_table_names()}


# The first ones lie in the making of tables; the later ones in what Dagster notes about them, and in the pools.
@pytest.mark.parametrize("statement", [5, 15, 27, 40, 58, 66, 75, 85, 92, 98, 109, 113])
def test_a_start_that_was_killed_leaves_nothing_half_made(storage, statement, untouched) -> None:
    with killed_at(statement):
        ready_storage()
    ready_storage()
    assert shape(storage) == untouched
    with dg.DagsterInstance.get() as instance:
        assert {pool.name for pool in instance.event_log_storage.get_pool_limits()} == set(POOLS)
        assert instance.create_run_for_job(job_def=empty.resolve_job_def("__ASSET_JOB")).run_id


@dg.asset
def nothing() -> None:
    """An asset, so that a run of it is recorded in the tables of events too."""


empty = dg.Definitions(assets=[nothing])


@pytest.fixture
def untouched(other_empty_database, monkeypatch, tmp_path, storage) -> dict[str, set[str]]:
    """What Dagster makes when nobody stops it."""
    monkeypatch.setenv("DAGSTER_POSTGRES_URL", other_empty_database.replace("postgresql://", "postgresql+psycopg2://"))
    with dg.DagsterInstance.get():
        found = shape(other_empty_database.replace("postgresql://", "postgresql+psycopg2://"))
    monkeypatch.setenv("DAGSTER_POSTGRES_URL", storage)
    return found


def test_a_storage_that_is_whole_is_left_alone(storage) -> None:
    ready_storage()
    before = shape(storage)
    statements: list[str] = []

    def keep(*sent: object) -> None:
        statements.append(str(sent[2]))

    event.listen(Engine, "before_cursor_execute", keep)
    try:
        ready_storage()
    finally:
        event.remove(Engine, "before_cursor_execute", keep)
    assert shape(storage) == before
    assert not [s for s in statements if s.lstrip().upper().startswith(("CREATE", "DROP", "ALTER"))]


def limits() -> dict[str, int]:
    with dg.DagsterInstance.get() as instance:
        return {pool.name: pool.limit for pool in instance.event_log_storage.get_pool_limits()}


def test_pools_have_the_limits_of_the_file_and_else_those_that_were_set_by_hand(storage) -> None:
    ready_storage(Pools())
    assert limits() == {pool: getattr(Pools(), pool) for pool in POOLS}
    with dg.DagsterInstance.get() as instance:
        instance.event_log_storage.set_concurrency_slots("github", 5)
        instance.event_log_storage.set_concurrency_slots("embedding", 5)
    ready_storage(Pools(embedding=3))
    assert (limits()["github"], limits()["embedding"]) == (5, 3)


@pytest.mark.slow
def test_a_step_waits_while_all_places_of_its_pool_are_taken_with_our_executor_too(storage) -> None:
    ready_storage(Pools(github=1))
    entered = threading.Event()

    @dg.asset(pool="github")
    def asks_github() -> None:
        entered.set()

    job = dg.Definitions(assets=[asks_github], executor=dg.in_process_executor).resolve_job_def("__ASSET_JOB")
    with dg.DagsterInstance.get() as instance, ThreadPoolExecutor(1) as thread:
        pools = instance.event_log_storage
        assert pools.claim_concurrency_slot("github", "another run", "its step").is_claimed
        run = thread.submit(job.execute_in_process, instance=instance)
        while not run.done() and not pools.get_concurrency_info("github").pending_steps:
            pass
        assert not entered.is_set()
        pools.free_concurrency_slots_for_run("another run")
        assert run.result().success and entered.is_set()
        assert pools.get_concurrency_info("github").active_slot_count == 0


KILLED = """
import os, signal, dagster as dg
from rag_pipeline.cli.dagster_storage import ready_storage
from rag_pipeline.cli.processes import process_tags
from rag_pipeline.settings.pools import Pools

@dg.asset(pool="github")
def asks_github():
    os.kill(os.getpid(), signal.SIGKILL)

ready_storage(Pools())
job = dg.Definitions(assets=[asks_github], executor=dg.in_process_executor).resolve_job_def("__ASSET_JOB")
with dg.DagsterInstance.get() as instance:
    job.execute_in_process(instance=instance, tags=process_tags())
"""


def test_the_run_of_a_killed_command_is_ended_and_leaves_no_place_taken(storage) -> None:
    assert subprocess.run([sys.executable, "-c", KILLED], cwd=CHECKOUT, check=False).returncode == -signal.SIGKILL
    with dg.DagsterInstance.get() as instance:
        assert instance.event_log_storage.get_concurrency_info("github").active_slot_count == 1
        (run,) = instance.get_runs()
        assert run.status == dg.DagsterRunStatus.STARTED
        ready_storage(Pools())
        assert instance.event_log_storage.get_concurrency_info("github").active_slot_count == 0
        assert instance.get_run_by_id(run.run_id).status == dg.DagsterRunStatus.FAILURE


def test_the_run_of_a_command_that_is_still_at_work_is_left_alone(storage) -> None:
    ready_storage(Pools())

    @dg.asset(pool="github")
    def asks_github() -> None:
        ready_storage(Pools())

    job = dg.Definitions(assets=[asks_github], executor=dg.in_process_executor).resolve_job_def("__ASSET_JOB")
    with dg.DagsterInstance.get() as instance:
        assert job.execute_in_process(instance=instance, tags=process_tags()).success


def test_a_command_keeps_its_connections_to_dagsters_storage(storage, monkeypatch) -> None:
    ready_storage()
    opened: list[object] = []

    def count(connection: object, _: object) -> None:
        opened.append(connection)

    monkeypatch.setattr(dagster_storage, "_KEPT_S", 600)
    event.listen(Pool, "connect", count)
    try:
        with opened_instance() as instance:
            before = len(opened)
            for _ in range(20):
                instance.event_log_storage.get_pool_limits()
                instance.get_runs_count()
    finally:
        event.remove(Pool, "connect", count)
    assert len(opened) - before <= 2, "one for events and one for runs"


def test_a_kept_connection_that_was_lost_is_made_again(storage, monkeypatch) -> None:
    ready_storage()
    monkeypatch.setattr(dagster_storage, "_KEPT_S", 0)
    engine = create_engine(storage, poolclass=NullPool, isolation_level="AUTOCOMMIT")
    others = text("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
                  "WHERE datname = current_database() AND pid <> pg_backend_pid()")  # fmt: skip
    with opened_instance() as instance, engine.connect() as connection:
        assert instance.get_runs_count() == 0
        assert all(connection.execute(others).scalars().all())
        assert instance.get_runs_count() == 0
        assert instance.event_log_storage.get_pool_limits()
