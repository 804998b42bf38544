"""Items that could not be processed: which there are, when each is tried again, and which a person leaves out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from rag_pipeline.index.database import Connection
from rag_pipeline.index.sql_files import queries
from rag_pipeline.settings.quarantine import Quarantine

RECONCILIATION = "reconciliation"
"""The stage of withheld removals, which wait for a person."""
_LONGEST = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuarantinedItem:
    """One item that failed at a stage, and is not in the index as it is now."""

    tenant: str
    source_type: str
    source_id: str
    stage: str
    repository: str
    day: date
    reason: str
    attempts: int
    last_failed_at: datetime

    def is_given_up(self, settings: Quarantine) -> bool:
        """Whether it waits for a person."""
        return self.stage == RECONCILIATION or self.attempts >= settings.max_attempts


def quarantined(connection: Connection) -> list[QuarantinedItem]:
    """All that is in quarantine."""
    return [
        QuarantinedItem(
            tenant=r[0], source_type=r[1], source_id=r[2], stage=r[3], repository=r[4], day=r[5], reason=r[6],
            attempts=r[7], last_failed_at=r[8],
        )
        for r in connection.execute(queries("quarantine")["items"])
    ]  # fmt: skip


def accept(connection: Connection, source_id: str, *, note: str, now: datetime, tenant: str | None = None) -> int:
    """Leave an item out of the index, as it is now, and say why; how many stages had it in quarantine."""
    values = {"source_id": source_id, "note": note, "now": now, "tenant": tenant}
    return connection.execute(queries("quarantine")["accept"], values).rowcount


def pause(attempts: int, settings: Quarantine) -> timedelta:
    """Between this attempt, the first being 1, and the next."""
    return min(_LONGEST, timedelta(seconds=settings.first_pause_s) * 2.0 ** min(attempts - 1, 30))


def due_days(items: Iterable[QuarantinedItem], settings: Quarantine, *, now: datetime) -> list[date]:
    """Days that hold an item whose pause is over, oldest first."""
    return sorted({
        item.day
        for item in items
        if not item.is_given_up(settings) and item.last_failed_at + pause(item.attempts, settings) <= now
    })  # fmt: skip
