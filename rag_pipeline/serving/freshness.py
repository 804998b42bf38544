"""Whether the service can answer, and how fresh what it answers from is; looked up once for all who ask at a time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

import psycopg
from starlette.exceptions import HTTPException

from rag_pipeline.errors import DatabaseUnavailable
from rag_pipeline.index.freshness import freshness
from rag_pipeline.index.migrations import lacking
from rag_pipeline.index.pool import Pool
from rag_pipeline.index.replica import Databases, Lag, primary_position, replica_lag
from rag_pipeline.index.spaces import active_space
from rag_pipeline.refresh.freshness import Standing, judge
from rag_pipeline.serving.workers import Workers
from rag_pipeline.settings import Settings

_log = logging.getLogger(__name__)
_KEPT: Final = timedelta(seconds=2)
_PATIENCE_S: Final = 0.8
_REPLICA_PATIENCE_S: Final = 0.4
"""Two servers are asked in the time of one."""
_TIMEOUT_S: Final = 1.2


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaCondition:
    """How a service stands that reads from a replica."""

    answers: bool
    """Else the primary is asked in its place."""
    primary_answers: bool
    """Else it goes on reading, and what is to be written waits or is left out."""
    lag: Lag | None
    """None: the replica does not answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """How the service stands."""

    is_ready: bool
    problem: str = ""
    """What keeps it from answering, or from answering well; empty: nothing."""
    standings: Sequence[Standing] = ()
    """Of every source, whosever it is."""
    replica: ReplicaCondition | None = None
    """None: there is none, reads and writes are of one server."""

    @property
    def is_stale(self) -> bool:
        """Whether a source is not as fresh as the settings ask for."""
        return any(standing.is_stale for standing in self.standings)


class Conditions:
    """The condition, looked up again after two seconds; whatever the database does, an answer takes less than two.

    It has connections and threads (`spare`) that do not wait behind searches.
    """

    def __init__(
        self, settings: Settings, *, databases: Databases, spare: Workers, clock: Callable[[], datetime]
    ) -> None:
        self._settings = settings
        self._databases = databases
        self._spare = spare
        self._clock = clock
        self._seen: Condition | None = None
        self._seen_at: datetime | None = None
        self._looking: asyncio.Task[Condition] | None = None

    async def now(self) -> Condition:
        """How it stands."""
        # A clock that was put back must not keep it for longer.
        if self._seen is not None and self._seen_at is not None and abs(self._clock() - self._seen_at) < _KEPT:
            return self._seen
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look())
        # Whoever began it may go away; the others still wait for it.
        return await asyncio.shield(self._looking)

    async def _look(self) -> Condition:
        try:
            self._seen = await self._spare.run(self._condition, timeout_s=_TIMEOUT_S)
        except HTTPException:
            self._seen = Condition(is_ready=False, problem="the database does not answer in time")
        except Exception:
            self._seen = Condition(is_ready=False, problem="the database does not answer")
        self._seen_at = self._clock()
        return self._seen

    def _condition(self) -> Condition:
        if self._databases.replica is None:
            return self._of_reads(_PATIENCE_S)
        replica = self._of_replica(self._databases.replica)
        found = self._of_reads(_REPLICA_PATIENCE_S)
        return replace(found, replica=replica, problem=found.problem or self._trouble_of(replica))

    def _of_reads(self, patience_s: float) -> Condition:
        """Of whatever answers searches."""
        try:
            with self._databases.reads.connection(patience_s=patience_s) as connection:
                if missing := lacking(connection):
                    why = f"the schema lacks {len(missing)} migrations: run `rag-pipeline migrate`"
                    return Condition(is_ready=False, problem=why)
                standings = judge(freshness(connection), self._settings, now=self._clock())
                problem = "" if active_space(connection) else "nothing is indexed yet: run `rag-pipeline materialize`"
        except DatabaseUnavailable:
            return Condition(is_ready=False, problem="the database does not answer")
        return Condition(is_ready=True, problem=problem, standings=standings)

    def _of_replica(self, replica: Pool) -> ReplicaCondition:
        position, lag = None, None
        try:
            with self._databases.primary.connection(patience_s=_REPLICA_PATIENCE_S) as connection:
                position = primary_position(connection)
        except (DatabaseUnavailable, psycopg.OperationalError):
            _log.info("the primary does not answer")
        try:
            with replica.connection(patience_s=_REPLICA_PATIENCE_S) as connection:
                lag = replica_lag(connection, primary=position)
        except (DatabaseUnavailable, psycopg.OperationalError):
            _log.info("the replica does not answer")
        return ReplicaCondition(answers=lag is not None, primary_answers=position is not None, lag=lag)

    def _trouble_of(self, replica: ReplicaCondition) -> str:
        if replica.lag is None:
            return "the replica does not answer: the primary is asked in its place"
        if not replica.primary_answers:
            return "the primary does not answer: nothing is written meanwhile, and the replica learns nothing new"
        if (replica.lag.lag_s or 0.0) > self._settings.serving.replica_lag_s:
            return f"the replica is {replica.lag.lag_s:.0f} s behind the primary"
        return ""
