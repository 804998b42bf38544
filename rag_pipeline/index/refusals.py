"""What PostgreSQL says in the middle of work, in words that say what to do. When there is no connection: `database`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import psycopg
from psycopg import errors

from rag_pipeline.errors import DatabaseUnavailable, RagPipelineError, TransientError

_KEPT: Final = "what was done so far is kept, and the next run goes on from there"
_NO_ROOM: Final = (errors.DiskFull, errors.ConfigurationLimitExceeded)
_PASSING: Final = (
    errors.AdminShutdown, errors.CrashShutdown, errors.CannotConnectNow, errors.IdleSessionTimeout,
    errors.IdleInTransactionSessionTimeout, errors.DeadlockDetected, errors.SerializationFailure,
    errors.LockNotAvailable, errors.QueryCanceled, errors.OutOfMemory,
)  # fmt: skip
"""Of these another attempt may succeed."""


def spoken(error: BaseException) -> RagPipelineError | None:
    """Our error for what the server refused or how the connection ended; None: nobody foresaw it, it is a defect."""
    if not isinstance(error, psycopg.Error):
        return None
    return spoken_state(error.sqlstate, str(error), lost=isinstance(error, psycopg.OperationalError))


def spoken_state(state: str | None, said: str, *, lost: bool) -> RagPipelineError | None:
    """As `spoken`, for drivers that give the same codes; `lost`: without a code, the connection is gone.

    Codes: https://www.postgresql.org/docs/current/errcodes-appendix.html
    """
    brief = next((line.strip() for line in said.splitlines() if line.strip()), "no reason given")
    if state is None:
        if "too many" in brief or "connection slots" in brief:  # a refused connection has no code
            return DatabaseUnavailable(f"{_too_many(brief)}; {_KEPT}")
        return TransientError(f"the connection to PostgreSQL was lost: {brief}; {_KEPT}") if lost else None
    if state in _states(*_NO_ROOM):
        return DatabaseUnavailable(
            f"PostgreSQL has no room left: {brief}: make room on the disk of its data (`rag-pipeline maintain` frees "
            f"some), then run again; {_KEPT}"
        )
    if state == errors.ReadOnlySqlTransaction.sqlstate:
        return DatabaseUnavailable(
            f"PostgreSQL may only be read here: {brief}: let DATABASE_URL name the primary, not a standby, and see "
            f"that default_transaction_read_only is off; {_KEPT}"
        )
    if state == errors.TooManyConnections.sqlstate:
        return DatabaseUnavailable(f"{_too_many(brief)}; {_KEPT}")
    if state == errors.InsufficientPrivilege.sqlstate:
        return DatabaseUnavailable(
            f"PostgreSQL refuses this user: {brief}: connect as the owner of the schema `rag`, or grant it; {_KEPT}"
        )
    if state in (errors.DataCorrupted.sqlstate, errors.IndexCorrupted.sqlstate):
        return DatabaseUnavailable(
            f"PostgreSQL's data is damaged: {brief}: restore a backup, or make a new database: the index is rebuilt "
            "from the lake and the sources"
        )
    if state in _states(*_PASSING):
        return TransientError(f"PostgreSQL ended the work: {brief}; {_KEPT}")
    return DatabaseUnavailable(f"PostgreSQL cannot go on: {brief}: see its log; {_KEPT}") if lost else None


@contextmanager
def in_words() -> Iterator[None]:
    """What PostgreSQL refuses inside is raised as one of our errors.

    Raises:
        TransientError: the connection was lost, or another attempt may succeed.
        DatabaseUnavailable: somebody has to do something first.
    """
    try:
        yield
    except psycopg.Error as error:
        ours = spoken(error)
        if ours is None:
            raise
        raise ours from error


def _states(*kinds: type[psycopg.Error]) -> frozenset[str | None]:
    return frozenset(kind.sqlstate for kind in kinds)


def _too_many(brief: str) -> str:
    return f"PostgreSQL has no connection left: {brief}: end some, raise max_connections, or lower [pools]"
