"""The part of `rag-pipeline status` that says how fresh each source is, and whether a monitor should complain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from rag_pipeline.cli.console import out, rows_table
from rag_pipeline.index.database import Connection
from rag_pipeline.index.freshness import freshness
from rag_pipeline.refresh.freshness import Known, Standing, judge, spoken_lag
from rag_pipeline.refresh.watching import waiting_since
from rag_pipeline.settings import Settings


def freshness_report(settings: Settings, connection: Connection, *, now: datetime) -> list[dict[str, Any]]:
    """How each source stands by what was last noted of it, as JSON would show it; no source is asked."""
    known = Known(pending={}, unreadable={}, waiting_since=waiting_since(settings, now=now))
    return [_entry(standing) for standing in judge(freshness(connection), settings, now=now, known=known)]


def print_freshness(rows: Sequence[Mapping[str, Any]]) -> None:
    """A table for people; a person's terminal of 100 columns holds it."""
    if not rows:
        return
    lines: list[tuple[object, ...]] = []
    before: object = None
    for row in rows:
        of = (row["tenant"], row["repository"])
        # Of the repository, whatever the source: shown once.
        shared = (row["failures_waiting"], f"{row['cost_this_month_usd']:.2f}") if of != before else ("", "")
        lines.append((
            *(of if of != before else ("", "")), row["source"], row["state"], _moment(row["last_item_seen"]),
            _moment(row["last_indexed"]), row["lag"], *shared,
        ))  # fmt: skip
        before = of
    headers = ("tenant", "repository", "source", "state", "last item", "indexed", "lag", "failed", "USD")
    out.print()
    out.print(rows_table("", headers, lines))
    out.print("Times are UTC; lag: since all of it was indexed; failed: items that wait; USD: cost of this month.")
    for row in rows:
        if row["why"]:
            out.print(f"  {row['repository']} ({row['source']}): {row['why']}", markup=False)


def complain_of_stale(report: Mapping[str, Any]) -> list[str]:
    """Why a monitor should complain, a line each; none when all sources are fresh."""
    if not report["running"]:
        return ["the database does not run, so nothing tells how fresh the index is: start it with `rag-pipeline up`"]
    if report["pending_migrations"]:
        return ["the schema is not up to date, so nothing tells how fresh the index is: run `rag-pipeline migrate`"]
    return [
        f"stale: {row['repository']} ({row['source']}, tenant {row['tenant']}): {row['why']}"
        for row in report["freshness"]
        if row["stale"]
    ]


def _entry(standing: Standing) -> dict[str, Any]:
    seen = standing.seen
    return {
        "tenant": standing.key.tenant,
        "repository": standing.key.repository,
        "source": standing.key.source,
        "state": str(standing.state),
        "stale": standing.is_stale,
        "last_item_seen": seen.newest_item_at,
        "last_asked": seen.asked_at,
        "last_indexed": seen.indexed_at,
        "complete_until": seen.complete_until,
        "lag": spoken_lag(standing.lag),
        "lag_seconds": round(standing.lag.total_seconds()) if standing.lag is not None else None,
        "missing_days": [str(days) for days in standing.due],
        "failures_waiting": seen.failures_waiting,
        "cost_this_month_usd": seen.cost_this_month_usd,
        "why": standing.why,
    }


def _moment(at: datetime | None) -> str:
    return f"{at:%m-%d %H:%M}" if at else "-"
