"""The query log: what was asked and what came of it, written behind the requests' backs.

A request hands over what it has to say and goes on at once: a thread of the log's own takes the secrets out and writes
a batch at a time. What the log cannot take, because the database is away for too long, is dropped and counted.
Reading it, and feedback, is the business of `feedback`.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Literal
from uuid import UUID, uuid4

import psycopg
from psycopg.types.json import Jsonb

from rag_pipeline.index.database import Connection
from rag_pipeline.index.sql_files import queries
from rag_pipeline.model import Json, SearchHit

_log = logging.getLogger(__name__)
_BATCH: Final = 200
_LINGER_S: Final = 0.5
"""So long a question waits for others to be written with."""
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 30.0

Entrance = Literal["search", "ask", "context", "mcp"]
"""By which way a question came in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question, and what came of it."""

    tenant: str
    entrance: Entrance
    question: str
    asked_at: datetime
    outcome: str
    """`found`, `nothing_found`, or the status of an answer."""
    milliseconds: int
    hits: Sequence[SearchHit] = ()
    """Best first; of each only its identity, rank and score are kept."""
    parameters: Mapping[str, Json] = field(default_factory=dict)
    """Filters, scopes and the like that differ from the defaults."""
    confidence: float | None = None
    """Of an answer."""
    key_id: str | None = None
    query_id: UUID = field(default_factory=uuid4)


class QueryLog:
    """Writes questions to `rag.query_log`, in batches and on a thread of its own, which starts with the first question.

    `connect` gives a connection for one batch; `redact` takes the secrets out of a text; `on_dropped` is told how many
    questions could not be kept. Nothing here makes a request wait: with `capacity` questions waiting, the next is
    dropped.
    """

    def __init__(
        self,
        connect: Callable[[], AbstractContextManager[Connection]],
        *,
        redact: Callable[[str], str],
        enabled: bool = True,
        capacity: int = 2_000,
        on_dropped: Callable[[int], None] = lambda count: None,
    ) -> None:
        self._connect = connect
        self._redact = redact
        self._enabled = enabled
        self._capacity = capacity
        self._on_dropped = on_dropped
        self._changed = threading.Condition()
        self._waiting: deque[Asked] = deque()
        self._taken = self._settled = 0
        self._wanted = 0
        """Somebody waits until so many are settled, so the thread does not linger."""
        self._closing = False
        self._give_up_at = float("inf")
        self._thread: threading.Thread | None = None

    @property
    def waiting(self) -> int:
        """Questions that are not written yet."""
        return len(self._waiting)

    def asked(
        self, *, tenant: str, entrance: Entrance, question: str, asked_at: datetime, outcome: str, milliseconds: int,
        hits: Sequence[SearchHit] = (), parameters: Mapping[str, Json] | None = None, confidence: float | None = None,
        key_id: str | None = None,
    ) -> UUID | None:  # fmt: skip
        """Hand over a question, as `Asked` has it; never waits for the database, never raises.

        Returns its id, by which feedback is given; None: it is not kept, because the log is off, full or closed.
        """
        if not self._enabled:
            return None
        asked = Asked(
            tenant=tenant, entrance=entrance, question=question, asked_at=asked_at, outcome=outcome,
            milliseconds=milliseconds, hits=hits, parameters=parameters or {}, confidence=confidence, key_id=key_id,
        )  # fmt: skip
        with self._changed:
            is_taken = not self._closing and len(self._waiting) < self._capacity
            if is_taken:
                self._waiting.append(asked)
                self._taken += 1
                if self._thread is None:
                    self._thread = threading.Thread(target=self._run, name="query-log", daemon=True)
                    self._thread.start()
                self._changed.notify_all()
        if not is_taken:
            self._drop(1)
            return None
        return asked.query_id

    def flush(self, timeout_s: float) -> bool:
        """Wait until all that was handed over so far is written or dropped; False when that takes longer."""
        with self._changed:
            target = self._taken
            self._wanted = max(self._wanted, target)
            self._changed.notify_all()
            return self._changed.wait_for(lambda: self._settled >= target, timeout=timeout_s)

    def close(self, timeout_s: float = 10.0) -> None:
        """Write what waits, for at most so long; what is left then is dropped, as is all that comes later."""
        with self._changed:
            self._closing = True
            self._give_up_at = time.monotonic() + timeout_s
            self._changed.notify_all()
            thread = self._thread
        if thread is not None:
            thread.join(timeout_s + 1)
        with self._changed:
            left = len(self._waiting)
            self._waiting.clear()
            self._settled += left
            self._changed.notify_all()
        self._drop(left)

    def _drop(self, count: int) -> None:
        if count:
            _log.warning("%d questions are not in the query log: it is full or closed", count)
            self._on_dropped(count)

    def _run(self) -> None:
        pause = _FIRST_PAUSE_S
        while batch := self._next_batch():
            try:
                lost = self._write(batch)
            except Exception as error:
                # Whatever it is, the database may be back in a while; until then the questions wait.
                _log.warning("the query log cannot be written: %s", error)
                if not self._rest(pause):
                    return
                pause = min(2 * pause, _LONGEST_PAUSE_S)
                continue
            pause = _FIRST_PAUSE_S
            self._settle(len(batch))
            self._drop(lost)

    def _next_batch(self) -> list[Asked]:
        """The oldest questions, which stay in the queue until they are written; none when the log is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closing)
            self._changed.wait_for(
                lambda: self._closing or self._wanted > self._settled or len(self._waiting) >= _BATCH, timeout=_LINGER_S
            )
            return [self._waiting[place] for place in range(min(_BATCH, len(self._waiting)))]

    def _rest(self, pause_s: float) -> bool:
        """Wait before the next attempt; False when there shall be none."""
        with self._changed:
            self._changed.wait_for(lambda: self._closing, timeout=pause_s)
            if not self._closing:
                return True
        time.sleep(min(pause_s, max(0.0, self._give_up_at - time.monotonic())))
        return time.monotonic() < self._give_up_at

    def _settle(self, count: int) -> None:
        with self._changed:
            for _ in range(min(count, len(self._waiting))):
                self._waiting.popleft()
            self._settled += count
            self._changed.notify_all()

    def _write(self, batch: Sequence[Asked]) -> int:
        """Write them all at once, or where one of them cannot be stored each by itself; returns how many cannot."""
        rows = [row for asked in batch if (row := self._row(asked)) is not None]
        lost = len(batch) - len(rows)
        with self._connect() as connection:
            try:
                _insert(connection, rows)
            except (psycopg.DataError, psycopg.IntegrityError):
                lost += sum(not _is_stored(connection, row) for row in rows)
        return lost

    def _row(self, asked: Asked) -> dict[str, Any] | None:
        try:
            return {
                "query_id": asked.query_id, "tenant": asked.tenant, "asked_at": asked.asked_at,
                "entrance": asked.entrance, "key_id": asked.key_id, "question": self._redact(storable(asked.question)),
                "parameters": Jsonb(self._without_secrets(asked.parameters)),
                "hits": Jsonb([
                    {"document_id": str(h.document_id), "chunk_id": str(h.chunk_id), "rank": h.rank, "score": h.score}
                    for h in asked.hits
                ]),
                "outcome": asked.outcome, "confidence": asked.confidence, "milliseconds": asked.milliseconds,
            }  # fmt: skip
        except Exception:
            # Rather no question than one with its secrets.
            _log.exception("a question could not be made ready for the query log")
            return None

    def _without_secrets(self, value: Json) -> Json:
        if isinstance(value, str):
            return self._redact(storable(value))
        if isinstance(value, Mapping):
            return {storable(key): self._without_secrets(item) for key, item in value.items()}
        if isinstance(value, Sequence):
            return [self._without_secrets(item) for item in value]
        return value


def storable(text: str) -> str:
    """The text without what PostgreSQL refuses: NUL goes, lone surrogates are replaced."""
    return text.replace("\x00", "").encode("utf-8", "replace").decode("utf-8")


def _insert(connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
    with connection.transaction(), connection.cursor() as cursor:
        cursor.executemany(queries("query_log")["insert"], rows)


def _is_stored(connection: Connection, row: Mapping[str, Any]) -> bool:
    try:
        _insert(connection, [row])
    except (psycopg.DataError, psycopg.IntegrityError) as error:
        _log.warning("a question cannot be stored: %s", type(error).__name__)
        return False
    return True
