"""What the pipeline remembers of each source: when it was asked, what it showed, up to when it is indexed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from rag_pipeline.index.bookkeeping import SourceKey
from rag_pipeline.index.database import Connection
from rag_pipeline.index.sql_files import queries


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFreshness:
    """One source, as the view `rag.freshness` shows it; times are None where nothing is known yet."""

    key: SourceKey
    asked_at: datetime | None = None
    """When it was last read, by a run or by the freshness sensor."""
    newest_item_at: datetime | None = None
    """Its own high-water mark then: the newest change it showed."""
    complete_until: datetime | None = None
    """Everything that it showed up to here is in the index."""
    indexed_at: datetime | None = None
    """When a run last found or made it complete."""
    problem: str = ""
    """Why it could not be read the last time."""
    failures_waiting: int = 0
    """Quarantined items of the repository, whatever their source."""
    cost_this_month_usd: float = 0.0
    """Of the repository, whatever the source."""
    position_seen: str | None = None
    """Where it stood when it was last read."""
    position_complete: str | None = None
    """Where it stood when everything that was read of it was in the index, or in the quarantine."""

    @property
    def all_indexed(self) -> bool | None:
        """Whether everything that was read of it is in the index or in the quarantine; None: it is not known."""
        return None if self.position_seen is None else self.position_seen == self.position_complete


def note_asked(
    connection: Connection, key: SourceKey, *, at: datetime, newest: datetime | None, covered: bool = False,
    position: str | None = None,
) -> None:  # fmt: skip
    """Note that a source was read from `at` on, and its newest change; an older reading changes nothing.

    `covered`: by a run over the day of `at`, to the end. `position`: where the source stood.
    """
    # A clock over there that is ahead of ours must not make the source look ahead of the index for ever.
    newest = min(newest, at) if newest else None
    connection.execute(
        queries("freshness")["note_asked"],
        _key(key)
        | {"asked_at": at, "newest_item_at": newest, "covered_at": at if covered else None, "position": position},
    )


def note_unreadable(connection: Connection, key: SourceKey, *, reason: str, now: datetime) -> None:
    """Note why a source cannot be read, unless somebody could by now."""
    values = {"problem": reason.replace("\0", "")[:500], "now": now}
    connection.execute(queries("freshness")["note_unreadable"], _key(key) | values)


def note_complete(connection: Connection, key: SourceKey, *, until: datetime, now: datetime) -> None:
    """Note that everything a source showed up to `until` is in the index; never moves backwards."""
    connection.execute(queries("freshness")["note_complete"], _key(key) | {"complete_until": until, "indexed_at": now})


def note_position(connection: Connection, key: SourceKey, *, position: str) -> None:
    """Note that everything that was read of a source up to this position is in the index, or in the quarantine."""
    connection.execute(queries("freshness")["note_position"], _key(key) | {"position": position})


def covered(connection: Connection) -> dict[SourceKey, datetime]:
    """Of each source that is complete up to less: the newest reading by a run that covered the day of its reading."""
    rows = connection.execute(queries("freshness")["covered"])
    return {SourceKey(tenant=row[0], repository=row[1], source=row[2]): row[3] for row in rows}


def freshness(connection: Connection) -> Sequence[SourceFreshness]:
    """Every source that was ever asked, in order of tenant, repository and source."""
    return [
        SourceFreshness(
            key=SourceKey(tenant=row[0], repository=row[1], source=row[2]), asked_at=row[3], newest_item_at=row[4],
            complete_until=row[5], indexed_at=row[6], problem=row[7] or "", failures_waiting=row[8],
            cost_this_month_usd=row[9], position_seen=row[10], position_complete=row[11],
        )
        for row in connection.execute(queries("freshness")["sources"])
    ]  # fmt: skip


def worst_lags(connection: Connection, *, now: datetime) -> dict[str, float]:
    """Of each kind of source that was ever complete, how many seconds ago the one furthest behind was."""
    rows = connection.execute(queries("freshness")["worst_lags"], {"now": now})
    return {row[0]: max(0.0, float(row[1])) for row in rows}


def _key(key: SourceKey) -> dict[str, object]:
    return {"tenant": key.tenant, "repository": key.repository, "source": key.source}
