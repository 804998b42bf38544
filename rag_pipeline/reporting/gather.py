"""Where the report's facts come from: the database, the lake, and what runs said of reuse."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from rag_pipeline.index.database import Connection
from rag_pipeline.index.reporting import read_facts, record_sizes
from rag_pipeline.lake.store import Lake
from rag_pipeline.reporting.summary import Report, Reuse


def gather(connection: Connection, lake: Lake, *, days: int, reuse: Sequence[Reuse], now: datetime) -> Report:
    """The facts of the last `days` days (UTC), today included; notes how large the index is today."""
    first = now.date() - timedelta(days=days - 1)
    record_sizes(connection, now.date())
    found = [point for point in sorted(reuse, key=lambda point: point.at) if point.at.date() >= first]
    return Report(
        made_at=now, first=first, facts=read_facts(connection, first=first), reuse=found, lake=lake.sizes()
    )  # fmt: skip
