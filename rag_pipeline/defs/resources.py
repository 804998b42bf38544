"""What assets get from outside: settings, lake, database, embedder, clock and progress, behind one object.

Nothing is opened before it is asked for, so that loading a code location needs no database.
"""

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime

import dagster as dg

from rag_pipeline.defs.run_log import LogProgress
from rag_pipeline.embedded import database_url
from rag_pipeline.embedding import Embedder, make_embedder
from rag_pipeline.errors import DatabaseUnavailable
from rag_pipeline.forgotten import write_marks
from rag_pipeline.index.bookkeeping import SourceKey
from rag_pipeline.index.database import Connection, connect_with_vectors
from rag_pipeline.index.forgetting import at_work, marks
from rag_pipeline.index.freshness import note_asked
from rag_pipeline.index.kept import KeptConnections, answers
from rag_pipeline.lake.store import Lake
from rag_pipeline.model import DayRange, Failure, SearchHit
from rag_pipeline.progress import Progress
from rag_pipeline.refresh import Account, Models, Readings
from rag_pipeline.refresh.git import note_windows
from rag_pipeline.refresh.readings import Asked, by_the_run, note_readings
from rag_pipeline.retrieval.query import SearchQuery
from rag_pipeline.retrieval.retriever import Found, open_retriever
from rag_pipeline.settings import Settings
from rag_pipeline.sources.git.stage import RawReport
from rag_pipeline.sources.github.stage import Access


def now_utc() -> datetime:
    """The clock."""
    return datetime.now(UTC)


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
    git_read: Set[SourceKey] = frozenset()
    """The git repositories that whoever planned the run has just fetched."""
    readings: Readings = field(default_factory=Readings)
    """What this process's run has read of the sources."""
    left_out: list[str] = field(default_factory=list)
    """What this process's run has stopped or left aside while the rest went on: it fails in the end."""
    log: LogProgress | None = None
    """Of the stage that is at work."""
    seconds: dict[str, float] = field(default_factory=dict)
    """Wall-clock time of each stage's own work in this process."""
    url: str | None = field(default=None, repr=False)
    """Of the database, when it is known to run: else it is asked, and the embedded server started."""
    _kept: KeptConnections = field(default_factory=KeptConnections, init=False, repr=False)

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
        """Where a stage reports to; it says something even while the stage does not, until the stage ends."""
        if self.watch is not None:
            return self.watch
        self.close_log()
        self.log = LogProgress(context.log.info)
        return self.log.started()

    def close_log(self) -> None:
        """Nothing is said any more."""
        if self.log is not None:
            self.log.close()
            self.log = None

    @property
    def models(self) -> Models:
        """How embedders are made: of the settings, and of embedding spaces."""
        return Models(settings=self.settings.embedding, environ=self.environ, make=self.make_embedder)

    def account(self, run_id: str) -> Account:
        """On whose account a run embeds."""
        settings = self.settings
        return Account(run_id=run_id, budget=settings.budget, prices=settings.prices, clock=self.clock)

    @contextmanager
    def keeping_connections(self) -> Iterator[None]:
        """While a run goes on: its stages use the same connections, one after the other."""
        with self._kept.keeping():
            yield

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """A connection to the migrated database; starts the embedded server if that is the one to use."""
        connection = self._kept.take() or self._connect()
        try:
            yield connection
        finally:
            self._kept.give_back(connection)

    @contextmanager
    def still_connected(self, held: Connection) -> Iterator[Connection]:
        """What a stage has held while it worked without the database; another one if that was lost meanwhile."""
        if answers(held):
            yield held
        else:
            with self.connection() as connection:
                yield connection

    def _connect(self) -> Connection:
        if self.url is not None:
            # To ask each time whether the embedded server runs would take longer than to connect.
            with suppress(DatabaseUnavailable):
                return connect_with_vectors(self.url)
        self.url = database_url(self.settings)
        return connect_with_vectors(self.url)

    def note_readings(
        self, connection: Connection, kind: str, days: DayRange, *, at: datetime, failures: Sequence[Failure],
        asked: Asked = by_the_run,
    ) -> None:  # fmt: skip
        """After this run over `days` has read all sources of a kind: remember what to the end, and since when."""
        with self.still_connected(connection) as live:
            self.readings.at |= note_readings(
                self.settings, kind=kind, connection=live, days=days, at=at, failures=failures, asked=asked
            )

    def note_git(self, connection: Connection, days: DayRange, report: RawReport) -> None:
        """After this run has read these days of the git repositories: keep how far, for runs that come to it later."""
        with self.still_connected(connection) as live:
            note_windows(self.settings, live, days, report, now=self.clock())

    def note_drops(
        self, connection: Connection, days: DayRange, *, at: datetime, taken_for: Iterable[tuple[str, str]],
        emptied: bool,
    ) -> None:  # fmt: skip
        """After this run has looked into the inbox: remember for which tenants and repositories it found something."""
        with self.still_connected(connection) as live:
            for tenant, repository in sorted(taken_for):
                key = SourceKey(tenant=tenant, repository=repository, source="drops")
                note_asked(
                    live, key, at=at, newest=at, covered=emptied and at.date() in days, position=at.isoformat()
                )  # fmt: skip
        self.readings.inbox_at = at if emptied else None

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
    def stage(self, name: str) -> Iterator[Connection]:
        """Times a stage's own work. Nothing is forgotten meanwhile, and the sources know what is forgotten.

        Gives the connection that sees to it: the stage's own thread may use it, too.
        """
        started = time.perf_counter()
        try:
            with self.connection() as connection, at_work(connection):
                write_marks(self.settings.home, marks(connection))
                yield connection
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - started
            self.close_log()


def during_runs(pipeline: Callable[[], Pipeline]) -> dg.ResourceDefinition:
    """The pipeline as a resource: what it opens for a run is closed when the run has ended."""

    @dg.resource
    def resource(_context: dg.InitResourceContext) -> Iterator[Pipeline]:
        given = pipeline()
        given.left_out.clear()
        with given.keeping_connections():
            yield given

    return resource
