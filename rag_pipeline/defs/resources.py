"""What assets get from outside: settings, lake, database, embedder, clock and progress, behind one object.

Nothing is opened before it is asked for, so that loading a code location needs no database.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

import dagster as dg

from rag_pipeline.embedded import database_url
from rag_pipeline.embedding import Embedder, make_embedder
from rag_pipeline.index.database import Connection, connected
from rag_pipeline.lake.store import Lake
from rag_pipeline.model import Failure, SearchHit
from rag_pipeline.progress import Progress
from rag_pipeline.refresh import Models
from rag_pipeline.retrieval.query import SearchQuery
from rag_pipeline.retrieval.retriever import Found, open_retriever
from rag_pipeline.settings import Settings
from rag_pipeline.sources.github.stage import Access

_LOG_EVERY_S = 5.0


def now_utc() -> datetime:
    """The clock."""
    return datetime.now(UTC)


class LogProgress:
    """Writes how far a stage is into the run's log, every few seconds, with rate and time left."""

    def __init__(self, log: Callable[[str], None]) -> None:
        self._log = log
        self._started: dict[str, float] = {}
        self._last = time.monotonic()

    def __call__(self, stage: str, *, done: int, total: int | None, unit: str) -> None:
        """See `Progress`."""
        now = time.monotonic()
        started = self._started.setdefault(stage, now)
        if now - self._last < _LOG_EVERY_S or done == 0:
            return
        self._last = now
        rate = done / max(now - started, 1e-9)
        left = f", about {(total - done) / rate:.0f} s left" if total and done < total else ""
        self._log(f"{stage}: {done:,}{f' of {total:,}' if total else ''} {unit}, {rate:,.1f} per second{left}")


@dataclass(kw_only=True)
class Pipeline:
    """Everything the assets of one code location share."""

    settings: Settings
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    clock: Callable[[], datetime] = now_utc
    watch: Progress | None = None
    """Who watches instead of the run's log."""
    make_embedder: Callable[..., Embedder] = make_embedder
    reports: dict[str, object] = field(default_factory=dict)
    """The last report of each stage, for whoever runs the job in this process."""
    sleep: Callable[[float], None] = time.sleep
    """How waits for GitHub are spent."""
    github_was_asked: bool = False
    """Whoever planned the run has just read GitHub: the run need not ask again."""
    github_unread: Sequence[Failure] = ()
    """What of it could not be read then: the run puts it on record."""
    seconds: dict[str, float] = field(default_factory=dict)
    """Wall-clock time of each stage's own work in this process."""

    @property
    def access(self) -> Access:
        """How GitHub is reached."""
        return Access(environ=self.environ, clock=self.clock, sleep=self.sleep)

    def lake(self) -> Lake:
        """The lake."""
        return Lake(self.settings.lake_url)

    def progress(
        self, context: dg.AssetExecutionContext | dg.OpExecutionContext | dg.AssetCheckExecutionContext
    ) -> Progress:
        """Where a stage reports to."""
        return self.watch or LogProgress(context.log.info)

    @property
    def models(self) -> Models:
        """How embedders are made: of the settings, and of embedding spaces."""
        return Models(settings=self.settings.embedding, environ=self.environ, make=self.make_embedder)

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """A connection to the migrated database; starts the embedded server if that is the one to use."""
        with connected(database_url(self.settings)) as connection:
            yield connection

    def search(self, query: SearchQuery) -> Sequence[SearchHit]:
        """Hits of the index's active space, whichever model the settings name by now."""
        return self.find(query).hits

    def find(self, query: SearchQuery) -> Found:
        """The hits, and what they had to do without."""
        with (
            self.connection() as connection,
            open_retriever(connection, self.settings, environ=self.environ, make=self.make_embedder) as retriever,
        ):
            return retriever.find(query)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Times a stage's own work."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - started
