"""Whether the service can answer, and how fresh what it answers from is; looked up once for all who ask at a time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from starlette.exceptions import HTTPException

from rag_pipeline.errors import DatabaseUnavailable
from rag_pipeline.index.freshness import freshness
from rag_pipeline.index.migrations import lacking
from rag_pipeline.index.pool import Pool
from rag_pipeline.index.spaces import active_space
from rag_pipeline.refresh.freshness import Standing, judge
from rag_pipeline.serving.workers import Workers
from rag_pipeline.settings import Settings

_KEPT_S: Final = 2.0
_PATIENCE_S: Final = 1.0
_TIMEOUT_S: Final = 1.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """How the service stands."""

    is_ready: bool
    problem: str = ""
    """What keeps it from answering, or from answering well; empty: nothing."""
    standings: Sequence[Standing] = ()
    """Of every source, whosever it is."""

    @property
    def is_stale(self) -> bool:
        """Whether a source is not as fresh as the settings ask for."""
        return any(standing.is_stale for standing in self.standings)


class Conditions:
    """The condition, looked up again after two seconds; whatever the database does, an answer takes less than two.

    It has connections and threads (`spare`) that do not wait behind searches.
    """

    def __init__(self, settings: Settings, *, pool: Pool, spare: Workers, clock: Callable[[], datetime]) -> None:
        self._settings = settings
        self._pool = pool
        self._spare = spare
        self._clock = clock
        self._seen: Condition | None = None
        self._seen_at = 0.0
        self._looking: asyncio.Task[Condition] | None = None

    async def now(self) -> Condition:
        """How it stands."""
        if self._seen is not None and time.monotonic() - self._seen_at < _KEPT_S:
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
        self._seen_at = time.monotonic()
        return self._seen

    def _condition(self) -> Condition:
        try:
            with self._pool.connection(patience_s=_PATIENCE_S) as connection:
                if missing := lacking(connection):
                    why = f"the schema lacks {len(missing)} migrations: run `rag-pipeline migrate`"
                    return Condition(is_ready=False, problem=why)
                standings = judge(freshness(connection), self._settings, now=self._clock())
                problem = "" if active_space(connection) else "nothing is indexed yet: run `rag-pipeline materialize`"
        except DatabaseUnavailable:
            return Condition(is_ready=False, problem="the database does not answer")
        return Condition(is_ready=True, problem=problem, standings=standings)
