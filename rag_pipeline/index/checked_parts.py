"""Which parts of the lake passed the checks of a stage, so that the next run need not look at them again."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from rag_pipeline.index.database import Connection
from rag_pipeline.index.sql_files import queries
from rag_pipeline.lake.store import Part
from rag_pipeline.model import DayRange


def passed_parts(connection: Connection, days: DayRange, *, stage: str) -> dict[Part, str]:
    """Fingerprints with which the parts of these days passed the checks of a stage."""
    values = {"stage": stage, "first": days.first, "last": days.last}
    rows = connection.execute(queries("checks")["passed_parts"], values)
    return {Part(tenant=row[0], repository=row[1], day=row[2]): row[3] for row in rows}


def record_passed(connection: Connection, passed: Mapping[Part, str], *, stage: str, now: datetime) -> None:
    """Note that parts passed the checks of a stage with these fingerprints."""
    if not passed:
        return
    connection.execute(
        queries("checks")["record_passed"],
        {
            "stage": stage, "now": now, "tenants": [part.tenant for part in passed],
            "repositories": [part.repository for part in passed], "days": [part.day for part in passed],
            "fingerprints": list(passed.values()),
        },
    )  # fmt: skip


def last_passed(connection: Connection, part: Part, *, stage: str) -> tuple[str, datetime] | None:
    """With which fingerprint a part passed the checks of a stage, and when; None: it did not."""
    values = {"stage": stage, "tenant": part.tenant, "repository": part.repository, "day": part.day}
    row = connection.execute(queries("checks")["last_passed"], values).fetchone()
    return (row[0], row[1]) if row else None


def forget_passed(connection: Connection, part: Part, *, stage: str) -> None:
    """A part that passed does so no more."""
    values = {"stage": stage, "tenant": part.tenant, "repository": part.repository, "day": part.day}
    connection.execute(queries("checks")["forget_passed"], values)
