"""Reading from a replica: which server a connection comes from, and how far a replica is behind.

Nothing here writes. What a standby cannot do (temporary tables, sequences, LISTEN, row locks) is not done on the read
path; becoming the reader, settings of a transaction and prepared statements are.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from rag_pipeline.errors import DatabaseUnavailable
from rag_pipeline.index.database import Connection
from rag_pipeline.index.pool import PATIENCE_S, Connections, Pool
from rag_pipeline.index.sql_files import queries

_log = logging.getLogger(__name__)
_LEFT_ALONE_S: Final = 5.0
"""So long one that did not answer is not asked again, so that not every request waits for it."""
_FIRST_PATIENCE_S: Final = 1.0
_ONCE_MORE_S: Final = 0.05


class Fallback:
    """Connections of the first pool, and of the second while the first does not answer; safe to share between threads.

    `fell_back` is called for each connection of the second.
    """

    def __init__(
        self, first: Connections, second: Connections, *, name: str, fell_back: Callable[[], object] = lambda: None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        """`name`: what the first is, for the log."""
        self._first = first
        self._second = second
        self._name = name
        self._fell_back = fell_back
        self._monotonic = monotonic
        self._left_alone_until = 0.0

    @contextmanager
    def connection(self, *, patience_s: float = PATIENCE_S) -> Iterator[Connection]:
        """A connection of whichever answers.

        Raises:
            DatabaseUnavailable: neither does.
        """
        with ExitStack() as held:
            yield self._entered(held, patience_s)

    def _entered(self, held: ExitStack, patience_s: float) -> Connection:
        first = self._first.connection(patience_s=min(patience_s, _FIRST_PATIENCE_S))
        is_left_alone = self._monotonic() < self._left_alone_until
        if not is_left_alone:
            try:
                return held.enter_context(first)
            except DatabaseUnavailable:
                _log.warning("%s does not answer; it is left alone for %g s", self._name, _LEFT_ALONE_S)
                self._left_alone_until = self._monotonic() + _LEFT_ALONE_S
        try:
            connection = held.enter_context(self._second.connection(patience_s=patience_s))
        except DatabaseUnavailable:
            if not is_left_alone:
                raise
            # It may be back by now, and there is nobody else.
            return held.enter_context(first)
        self._fell_back()
        return connection


@dataclass(frozen=True, slots=True, kw_only=True)
class Lag:
    """How far a replica is behind its primary."""

    lag_s: float | None
    """0: it has all that the primary had a moment ago; None: the primary does not answer, so nobody knows."""
    replayed_until: datetime | None
    """When the last transaction that it has was committed; None: it is no standby, or has seen none yet."""


def primary_position(connection: Connection) -> str:
    """How much the primary has written to its log, as its own kind of number."""
    row = connection.execute(queries("replica")["position"]).fetchone()
    assert row is not None
    return str(row[0])


def replica_lag(
    connection: Connection, *, primary: str | None, sleep: Callable[[float], object] = time.sleep
) -> Lag:  # fmt: skip
    """Of the replica at the other end; `primary`: what `primary_position` said just before, if anything."""
    behind, age_s, until = _standing(connection, primary)
    if behind:
        # What was written this very moment is on its way, and the last commit may have been long ago.
        sleep(_ONCE_MORE_S)
        behind, age_s, until = _standing(connection, primary)
    if behind is None:
        return Lag(lag_s=None, replayed_until=until)
    return Lag(lag_s=age_s if behind else 0.0, replayed_until=until)


def _standing(connection: Connection, primary: str | None) -> tuple[bool | None, float | None, datetime | None]:
    row = connection.execute(queries("replica")["standing"], {"primary": primary}).fetchone()
    assert row is not None
    return row[0], row[1], row[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Databases:
    """Where a service reads and writes."""

    primary: Pool
    """For whatever writes."""
    replica: Pool | None
    reads: Connections
    """Of the replica while it answers, else of the primary."""
    keys: Connections
    """Of the primary, so that a revoked key opens nothing; of the replica while the primary does not answer."""


@contextmanager
def open_databases(
    url: str, replica_url: str | None, *, size: int, statement_s: float, fell_back: Callable[[], object] = lambda: None
) -> Iterator[Databases]:
    """Pools of at most `size` connections each, closed at the end; nothing is connected before somebody asks.

    `fell_back` is called for each read that the primary answers because the replica does not.
    """
    with ExitStack() as closing:
        primary = Pool(url, size=size, statement_s=statement_s)
        closing.callback(primary.close)
        if replica_url is None:
            yield Databases(primary=primary, replica=None, reads=primary, keys=primary)
            return
        replica = Pool(replica_url, size=size, statement_s=statement_s)
        closing.callback(replica.close)
        yield Databases(
            primary=primary, replica=replica, reads=Fallback(replica, primary, name="the replica", fell_back=fell_back),
            keys=Fallback(primary, replica, name="the primary"),
        )  # fmt: skip
