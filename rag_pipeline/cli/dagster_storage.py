"""Dagster's own tables: whole before anything uses them, and the limits of the pools.

Dagster (1.13) makes its tables one by one, and looks for one of them only to know whether it has: a first start that
is killed in between leaves a storage that every later run breaks on.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from rag_pipeline.cli.processes import end_dead_runs
from rag_pipeline.settings.pools import Pools

if TYPE_CHECKING:
    import dagster as dg
    from sqlalchemy import Connection
    from sqlalchemy.engine.interfaces import DBAPIConnection

_DEFAULT_POOLS: Final = Pools()

_LOCK: Final = 0x7261675F64616773
"""Of PostgreSQL's advisory locks: two first starts at once take turns."""
_MARK: Final = "rag_pipeline/storage"
_COMPLETE: Final = "complete"
_KEPT_S: Final = 5
"""A connection that is older is replaced when it is next asked for, as after PostgreSQL was started again."""


@contextlib.contextmanager
def opened_instance() -> Iterator[dg.DagsterInstance]:
    """Dagster's instance for this process; its storage keeps a connection open from one statement to the next.

    Dagster (1.13) connects anew each time, about 480 times in a refresh with nothing new: half of its time. What it
    offers its webserver against that serves here, without the time limit for a statement.
    """
    import dagster as dg
    from sqlalchemy import event
    from sqlalchemy.pool import Pool

    with dg.DagsterInstance.get() as instance:
        instance.optimize_for_webserver(statement_timeout=0, pool_recycle=_KEPT_S, max_overflow=-1)
        # On the class: Dagster does not show the pools that it makes.
        event.listen(Pool, "checkout", _require_alive)
        try:
            yield instance
        finally:
            event.remove(Pool, "checkout", _require_alive)


def _require_alive(kept: DBAPIConnection, _record: object, _proxy: object) -> None:
    """Have the pool replace a connection whose server has gone and come back, before a statement is lost with it.

    SQLAlchemy's own way for pools that were not made to look themselves ("Disconnect Handling - Pessimistic").
    """
    from sqlalchemy.exc import DisconnectionError

    try:
        with contextlib.closing(kept.cursor()) as cursor:
            cursor.execute("SELECT 1")
    except Exception as error:  # whatever the driver calls it
        raise DisconnectionError from error


def ready_storage(pools: Pools = _DEFAULT_POOLS) -> None:
    """Make what Dagster's storage lacks: tables and indexes of a start that was killed, and the pools' limits.

    Ends runs whose process was killed, so that they hold no place in a pool.

    Does nothing where Dagster does not keep its storage in our PostgreSQL. About 30 ms when nothing is missing.
    """
    url = os.environ.get("DAGSTER_POSTGRES_URL")
    if not url:
        return
    import dagster as dg
    from sqlalchemy import create_engine, func, select
    from sqlalchemy.pool import NullPool

    engine = create_engine(url, poolclass=NullPool)
    with engine.connect() as lock:
        lock.execute(select(func.pg_advisory_lock(_LOCK)))
        with dg.DagsterInstance.get() as instance:
            if instance.run_storage.get_cursor_values({_MARK}).get(_MARK) != _COMPLETE:
                with engine.begin() as connection:
                    _complete_tables(connection)
                _mark_as_new(instance)
                instance.run_storage.set_cursor_values({_MARK: _COMPLETE})
            _ensure_pools(instance, pools)
            end_dead_runs(instance)
    engine.dispose()


def _complete_tables(connection: Connection) -> None:
    from dagster._core.storage.event_log.schema import SqlEventLogStorageMetadata
    from dagster._core.storage.runs.schema import RunStorageSqlMetadata
    from dagster._core.storage.schedules.schema import ScheduleStorageSqlMetadata

    for metadata in (RunStorageSqlMetadata, SqlEventLogStorageMetadata, ScheduleStorageSqlMetadata):
        metadata.create_all(connection)
        for table in metadata.tables.values():
            for index in table.indexes:
                index.create(connection, checkfirst=True)


def _mark_as_new(instance: dg.DagsterInstance) -> None:
    """Have Dagster note that its data migrations are done, as it does itself after making its tables."""
    instance.run_storage.migrate()
    instance.run_storage.optimize()
    instance.event_log_storage.reindex_events()
    instance.event_log_storage.reindex_assets()
    if instance.schedule_storage is not None:
        instance.schedule_storage.migrate()
        instance.schedule_storage.optimize()


def _ensure_pools(instance: dg.DagsterInstance, pools: Pools) -> None:
    """Make the pools' limits before the first step asks for them.

    Dagster makes them on first use, and a run fails when another makes the same one at that moment (1.13). A limit that
    was set in the UI stays, unless the configuration file names another.
    """
    from sqlalchemy.exc import SQLAlchemyError

    storage = instance.event_log_storage
    present = {limit.name: limit for limit in storage.get_pool_limits()}
    for pool, wanted in pools.model_dump().items():
        known = present.get(pool)
        if known is None:
            # The other one has made it: just what we wanted.
            with contextlib.suppress(SQLAlchemyError):
                storage.initialize_concurrency_limit_to_default(pool)
        own = known is not None and not known.from_default
        if not own or (pool in pools.model_fields_set and known is not None and known.limit != wanted):
            storage.set_concurrency_slots(pool, wanted)
