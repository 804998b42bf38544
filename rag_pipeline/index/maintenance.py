"""What keeps the index small and fast over the years: everything that may go goes, and only what needs it is rebuilt.

Safe beside running refreshes, and when it is killed: each step is a transaction of its own or one statement, and the
next maintenance goes on from there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta

import psycopg

from rag_pipeline.errors import RagPipelineError
from rag_pipeline.index.changes import compact_changes
from rag_pipeline.index.database import Connection
from rag_pipeline.index.feedback import remove_old_queries
from rag_pipeline.index.orphans import remove_orphan_vectors
from rag_pipeline.index.segments import merge_segments
from rag_pipeline.index.sql_files import queries
from rag_pipeline.index.tombstones import Readable, remove_tombstones
from rag_pipeline.index.upkeep import Done, Table, Waste, mend_graphs, mend_indexes, tables, vacuum_tables
from rag_pipeline.lake.derive import parts_in
from rag_pipeline.lake.store import Lake
from rag_pipeline.model import DayRange
from rag_pipeline.progress import Progress
from rag_pipeline.settings.maintenance import Maintenance

_ALONE = 0x5241474D  # any number of our own
_ALL_DAYS = DayRange(first=date.min, last=date.max)
_ABANDONED = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """One thing that maintenance did, or left for a reason."""

    what: str
    why: str
    rows: int = 0
    """Removed."""
    bytes: int = 0
    """Freed on disk."""
    seconds: float = 0.0


@dataclass(slots=True, kw_only=True)
class MaintenanceReport:
    """What was done, and how large the tables were before and after."""

    actions: list[Action] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    """Steps that could not be done, and why; the others were."""
    before: Sequence[Table] = ()
    after: Sequence[Table] = ()

    @property
    def rows(self) -> int:
        """All rows removed."""
        return sum(action.rows for action in self.actions)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """What maintenance must know of where knowledge comes from."""

    raw_stages: Sequence[str]
    """The lake's stages that documents are made from."""
    readable: Collection[Readable] = ()
    """What can show its past again."""


def maintain(
    connection: Connection, lake: Lake, *, settings: Maintenance, sources: Sources, now: datetime, progress: Progress,
    questions_days: int,
) -> MaintenanceReport:  # fmt: skip
    """Put the index in order; does nothing where there is nothing to do, and nothing while another one is at it.

    Questions in the query log are kept for `questions_days`.
    """
    report = MaintenanceReport(before=tables(connection))
    waste = Waste(share=settings.wasted_share, min_bytes=settings.min_index_bytes)
    with alone(connection) as is_alone:
        if not is_alone:
            report.actions.append(Action(what="nothing", why="another maintenance is at work"))
            report.after = report.before
            return report
        steps: list[tuple[str, Callable[[], Iterator[Action]]]] = [
            ("merge segments", lambda: _segments(connection, settings)),
            ("orphan vectors", lambda: _orphans(connection, lake)),
            ("tombstones", lambda: _tombstones(connection, lake, settings, sources, now)),
            ("records", lambda: _records(connection, lake, settings, sources, now)),
            ("changes", lambda: _changes(connection, now)),
            ("query log", lambda: _questions(connection, questions_days, now)),
            ("temporary files", lambda: _temporary_files(lake, now)),
            ("graphs", lambda: _done(mend_graphs(connection, waste=waste))),
            ("vacuum", lambda: _done(vacuum_tables(connection, dead_share=settings.dead_share))),
            ("indexes", lambda: _done(mend_indexes(connection, waste=waste))),
        ]
        for number, (name, step) in enumerate(steps, start=1):
            _take(step, report, name)
            progress("maintenance", done=number, total=len(steps), unit="steps")
    report.after = tables(connection)
    return report


def _take(step: Callable[[], Iterator[Action]], report: MaintenanceReport, name: str) -> None:
    """Do a step; what goes wrong in it does not hold up the others."""
    started = time.perf_counter()
    try:
        for action in step():
            took, started = time.perf_counter() - started, time.perf_counter()
            report.actions.append(
                Action(what=action.what, why=action.why, rows=action.rows, bytes=action.bytes, seconds=took)
            )
    except (RagPipelineError, OSError) as error:
        report.problems.append(f"{name}: {error}")
    except psycopg.OperationalError:
        raise
    except psycopg.Error as error:
        report.problems.append(f"{name}: PostgreSQL says: {str(error).strip() or type(error).__name__}")


def _segments(connection: Connection, settings: Maintenance) -> Iterator[Action]:
    merged = merge_segments(connection, most=settings.most_segments)
    if merged:
        (left,) = connection.execute(queries("maintenance")["segments"]).fetchone() or (0,)
        yield Action(what="merge segments", why=f"each costs every search a look; {left:,} are left", rows=merged)


def _orphans(connection: Connection, lake: Lake) -> Iterator[Action]:
    removed = remove_orphan_vectors(connection, lake)
    if removed is None:
        yield Action(what="put off: remove orphan vectors", why="a run is embedding; the next maintenance does it")
        return
    for found in removed:
        if found.vectors:
            kept = f"; what {found.waiting:,} parts wait to be indexed with was kept" if found.waiting else ""
            yield Action(
                what=f"remove orphan vectors of space {found.space.space_id}", rows=found.vectors,
                why=f"no chunk holds their texts any more{kept}",
            )  # fmt: skip


def _tombstones(
    connection: Connection, lake: Lake, settings: Maintenance, sources: Sources, now: datetime
) -> Iterator[Action]:
    if not settings.tombstones_days:
        return
    before = now - timedelta(days=settings.tombstones_days)
    found = remove_tombstones(
        connection, lake, before=before, raw_stages=sources.raw_stages, readable=sources.readable
    )  # fmt: skip
    age = f"older than {settings.tombstones_days} days"
    if found.removed:
        yield Action(what="remove tombstones", why=f"{age}, and nothing can bring them back", rows=found.removed)
    kept = [
        *([f"of {found.kept_for_source:,} git can show an older state"] if found.kept_for_source else []),
        *([f"of {found.kept_for_lake:,} the lake holds one"] if found.kept_for_lake else []),
    ]
    if kept:
        yield Action(what="keep tombstones", why=f"{age}, but {' and '.join(kept)}")


def _records(
    connection: Connection, lake: Lake, settings: Maintenance, sources: Sources, now: datetime
) -> Iterator[Action]:
    sql = queries("maintenance")
    if settings.resolved_days:
        before = now - timedelta(days=settings.resolved_days)
        if gone := connection.execute(sql["remove_resolved"], {"before": before}).rowcount:
            why = f"succeeded more than {settings.resolved_days} days ago"
            yield Action(what="forget quarantined items", why=why, rows=gone)
    parts = parts_in(lake, [*sources.raw_stages, "documents", "chunks"], _ALL_DAYS)
    if not parts:
        # Rather a lake that cannot be seen than one that is empty.
        return
    values = {"before": now - _ABANDONED}
    with connection.transaction(), connection.cursor() as cursor:
        cursor.execute(sql["create_parts"])
        with cursor.copy(sql["copy_parts"]) as copy:
            copy.set_types(("text", "text", "date"))
            for part in parts:
                copy.write_row((part.tenant, part.repository, part.day))
        gone = cursor.execute(sql["forget_stored_parts"], values).rowcount
        gone += cursor.execute(sql["forget_checked_parts"], values).rowcount
    if gone:
        yield Action(what="forget records of parts", why="the lake holds these parts no more", rows=gone)


def _changes(connection: Connection, now: datetime) -> Iterator[Action]:
    if gone := compact_changes(connection, before=now - _ABANDONED):
        yield Action(what="forget changes", why="newer ones say the same to who caches answers", rows=gone)


def _questions(connection: Connection, days: int, now: datetime) -> Iterator[Action]:
    if gone := remove_old_queries(connection, before=now - timedelta(days=days)):
        yield Action(what="forget questions", why=f"asked more than {days} days ago", rows=gone)


def _temporary_files(lake: Lake, now: datetime) -> Iterator[Action]:
    files, size = lake.remove_abandoned(before=now - _ABANDONED)
    if files:
        yield Action(what=f"remove {files:,} temporary files", why="left by a run that was killed", bytes=size)


def _done(found: Iterator[Done]) -> Iterator[Action]:
    for done in found:
        yield Action(what=done.what, why=done.why, bytes=done.bytes)


@contextmanager
def alone(connection: Connection) -> Iterator[bool]:
    """Whether nobody else is at it, which then holds until the end."""
    row = connection.execute(queries("maintenance")["try_alone"], {"lock": _ALONE}).fetchone()
    is_alone = bool(row and row[0])
    try:
        yield is_alone
    finally:
        if is_alone:
            with suppress(psycopg.Error):
                connection.execute(queries("maintenance")["leave_alone"], {"lock": _ALONE})
