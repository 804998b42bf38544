"""What the pipeline remembers of its own work: how far sources are indexed, which parts are stored, what failed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime

from rag_pipeline.index.database import Connection
from rag_pipeline.index.sql_files import queries
from rag_pipeline.lake.store import Part
from rag_pipeline.model import DayRange, EmbeddingSpace, Failure


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceKey:
    """A source whose progress is kept."""

    tenant: str
    repository: str
    source: str


def position(
    connection: Connection, key: SourceKey, space: EmbeddingSpace, *, fingerprint: str
) -> tuple[str, datetime] | None:
    """How far a source is indexed under these settings without a gap; None: not at all."""
    values = _key(key) | {"space": space.space_id, "fingerprint": fingerprint}
    row = connection.execute(queries("progress")["position"], values).fetchone()
    return (row[0], row[1]) if row else None


def advance(
    connection: Connection,
    key: SourceKey,
    space: EmbeddingSpace,
    *,
    fingerprint: str,
    to: str,
    at: datetime,
    now: datetime,
) -> bool:
    """Note that a source is indexed up to `to`; False when that was known."""
    values = _key(key) | {
        "space": space.space_id, "fingerprint": fingerprint, "position": to, "position_at": at, "now": now,
    }  # fmt: skip
    return connection.execute(queries("progress")["advance"], values).rowcount == 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadWindow:
    """Days of a source that a run has read wholly."""

    days: DayRange
    position: str
    """Where the source stood at their end."""
    at: datetime


def note_window(connection: Connection, key: SourceKey, window: ReadWindow, *, fingerprint: str) -> None:
    """Keep what a run has read under these settings, unless the source is indexed further than that."""
    values = _key(key) | {
        "first": window.days.first, "last": window.days.last, "position": window.position, "position_at": window.at,
        "fingerprint": fingerprint,
    }  # fmt: skip
    connection.execute(queries("progress")["note_window"], values)


def windows_read(connection: Connection, key: SourceKey, *, fingerprint: str) -> list[ReadWindow]:
    """What was read under these settings and is kept, from the first day on."""
    rows = connection.execute(queries("progress")["windows_read"], _key(key) | {"fingerprint": fingerprint})
    return [ReadWindow(days=DayRange(first=row[0], last=row[1]), position=row[2], at=row[3]) for row in rows]


def drop_windows(connection: Connection, key: SourceKey, *, fingerprint: str, until: datetime) -> None:
    """Keep no longer what was read up to `until`, nor what was read under other settings."""
    values = _key(key) | {"fingerprint": fingerprint, "position_at": until}
    connection.execute(queries("progress")["drop_windows"], values)


def stored_parts(connection: Connection, space: EmbeddingSpace, days: DayRange, *, stage: str) -> dict[Part, str]:
    """Fingerprints of the parts that a stage has stored for these days."""
    rows = connection.execute(
        queries("progress")["stored_parts"],
        {"space": space.space_id, "stage": stage, "first": days.first, "last": days.last},
    )
    return {Part(tenant=row[0], repository=row[1], day=row[2]): row[3] for row in rows}


def forget_stored(connection: Connection, space: EmbeddingSpace, *, stage: str) -> None:
    """Let the next run of a stage look at every part again, whatever it had stored of it."""
    connection.execute(queries("progress")["forget_stored"], {"space": space.space_id, "stage": stage})


def record_part(
    connection: Connection, space: EmbeddingSpace, part: Part, *, stage: str, fingerprint: str, now: datetime
) -> None:
    """Note that a stage has stored a part."""
    connection.execute(
        queries("progress")["record_part"],
        {
            "stage": stage, "tenant": part.tenant, "repository": part.repository, "day": part.day,
            "space": space.space_id, "fingerprint": fingerprint, "now": now,
        },
    )  # fmt: skip


def record_failures(
    connection: Connection, failures: Iterable[Failure], *, stage: str, days: DayRange | None, now: datetime
) -> list[Failure]:
    """Quarantine what failed in a stage's run over these days, and resolve what failed there before and now did not.

    Without days, somebody else than the stage found it, and nothing is resolved.
    Returns those that no person has accepted, in the order of their names.
    """
    unaccepted = []
    with connection.transaction(), connection.cursor() as cursor:
        # In one order, so that two runs never wait for each other in a circle.
        for failure in sorted(failures, key=lambda f: (f.tenant, f.source_type, f.source_id, f.stage)):
            recorded = cursor.execute(
                queries("progress")["record_failure"],
                {
                    "tenant": failure.tenant, "source_type": failure.source_type, "source_id": failure.source_id,
                    "stage": failure.stage, "repository": failure.repository, "day": failure.day,
                    "source_updated_at": failure.source_updated_at,
                    "reason": failure.reason.replace("\0", ""), "now": now,
                },
            ).fetchone()  # fmt: skip
            if not (recorded and recorded[0]):
                unaccepted.append(failure)
        if days is not None:
            cursor.execute(
                queries("progress")["resolve_failures"],
                {"stage": stage, "first": days.first, "last": days.last, "now": now},
            )
    return unaccepted


def accepted_states(connection: Connection, *, stage: str) -> set[tuple[str, str, str, datetime]]:
    """What a person has accepted of a stage's failures: tenant, source type, source id, and of which state."""
    return {tuple(row) for row in connection.execute(queries("progress")["accepted_states"], {"stage": stage})}


def failing_days(connection: Connection) -> list[date]:
    """Days that hold quarantined items."""
    return [row[0] for row in connection.execute(queries("progress")["failing_days"])]


def living_ids(
    connection: Connection, *, tenant: str, source_types: Sequence[str], prefix: str
) -> list[tuple[str, str]]:
    """(source type, source id) of the documents that the index shows, whose source id begins like this."""
    values = {"tenant": tenant, "source_types": list(source_types), "prefix": prefix}
    return [(row[0], row[1]) for row in connection.execute(queries("progress")["living_ids"], values)]


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOverview:
    """What the index holds of one source."""

    tenant: str
    repository: str
    source_type: str
    documents: int
    tombstones: int
    chunks: int
    newest_change: datetime
    last_indexed: datetime


def overview(connection: Connection) -> list[SourceOverview]:
    """What the index holds, a line per tenant, repository and source type."""
    rows = connection.execute(queries("progress")["overview"])
    return [
        SourceOverview(
            tenant=r[0], repository=r[1], source_type=r[2], documents=r[3], tombstones=r[4], chunks=r[5],
            newest_change=r[6], last_indexed=r[7],
        )
        for r in rows
    ]  # fmt: skip


def open_failures(connection: Connection) -> Sequence[tuple[str, str, str, str, str, int]]:
    """The newest quarantined items: tenant, source type, source id, stage, reason, attempts; at most 100."""
    return connection.execute(queries("progress")["open_failures"]).fetchall()


def _key(key: SourceKey) -> dict[str, object]:
    return {"tenant": key.tenant, "repository": key.repository, "source": key.source}
