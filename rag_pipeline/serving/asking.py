"""Questions of a service to answers: remembered ones, or new ones as they are written."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Protocol

import psycopg

from rag_pipeline.answering.answerer import Looked, Question, Wrote
from rag_pipeline.answering.opening import book
from rag_pipeline.errors import DatabaseUnavailable
from rag_pipeline.index.changes import index_state
from rag_pipeline.index.pool import Connections, connected_twice
from rag_pipeline.model import Answer
from rag_pipeline.serving.caches import Answered, Caches, question_key
from rag_pipeline.serving.degraded import told
from rag_pipeline.settings import Settings
from rag_pipeline.settings.model import fingerprint_of

_log = logging.getLogger(__name__)


class Answers(Protocol):
    """What answers questions, piece by piece; see `answering.answerer.Answerer`."""

    def stream(self, question: Question) -> Iterator[Looked | Wrote | Answer]:
        """What was found, the text as it is written, and the answer at the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """The last event: the answer, and what it was made from."""

    answer: Answer
    looked: Looked | None
    is_cached: bool = False
    """It was given before, and cost nothing this time."""


class Asking:
    """Answers questions; may be used from several threads."""

    def __init__(
        self, settings: Settings, *, reads: Connections, pool: Connections, answerer: Answers, caches: Caches,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:  # fmt: skip
        """What an answer took is written to `pool`."""
        self._settings = settings.answering
        self._reads = reads
        self._clock = clock
        self._fingerprint = fingerprint_of(settings, "answering", "retrieval", "rerank", "embedding")
        self._pool = pool
        self._answerer = answerer
        self._caches = caches

    def stream(self, question: Question) -> Generator[Looked | Wrote | Given, None, None]:
        """Blocks; holds no connection while a model writes, and closing it stops the model. Ends with one `Given`.

        Raises what a search raises.
        """
        key = question_key(question, settings=self._fingerprint)
        state = connected_twice(
            self._reads.connection, lambda connection: index_state(connection, question.query.tenant)
        )
        known = self._caches.answers.get(key, state)
        if known is not None:
            yield from _again(known)
            return
        looked: Looked | None = None
        with closing(_closable(self._answerer.stream(question))) as events:
            for event in events:
                if isinstance(event, Answer):
                    self._book(event, tenant=question.query.tenant)
                    if event.degraded:
                        _log.warning("an answer was degraded: %s", event.degraded)
                    elif not (looked and looked.degraded):
                        # The search may have asked another server than we did, one that was behind it.
                        seen = looked.state if looked and looked.state else state
                        self._caches.answers.put(key, seen, Answered(looked=looked, answer=event))
                    yield Given(answer=replace(event, degraded=told(event.degraded)), looked=looked)
                    return
                if isinstance(event, Looked):
                    event = looked = replace(event, degraded=told(event.degraded))
                yield event

    def _book(self, answer: Answer, *, tenant: str) -> None:
        if not (answer.input_tokens or answer.output_tokens):
            return
        try:
            with self._pool.connection() as connection:
                book(connection, answer, tenant=tenant, settings=self._settings, now=self._clock())
        except (DatabaseUnavailable, psycopg.Error) as error:
            # It was answered and paid for; that it is not on record is no reason to keep it back.
            _log.warning("what an answer took is not on record: %s", type(error).__name__)


def _again(known: Answered) -> Generator[Looked | Wrote | Given, None, None]:
    if known.looked is not None:
        yield known.looked
    yield Wrote(text=known.answer.text)
    free = replace(known.answer, input_tokens=0, output_tokens=0, cost_usd=0.0)
    yield Given(answer=free, looked=known.looked, is_cached=True)


def _closable(events: Iterator[Looked | Wrote | Answer]) -> Generator[Looked | Wrote | Answer, None, None]:
    """The same events as a generator, which can be closed whatever the iterator is."""
    try:
        yield from events
    finally:
        close = getattr(events, "close", None)
        if close is not None:
            close()
