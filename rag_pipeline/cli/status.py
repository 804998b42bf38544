"""What `rag-pipeline status` reports; it starts and changes nothing."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from rag_pipeline.cli.console import out, rows_table
from rag_pipeline.cli.freshness import freshness_report, print_freshness
from rag_pipeline.embedded import EmbeddedPostgres
from rag_pipeline.index.bookkeeping import open_failures, overview
from rag_pipeline.index.database import connected, describe
from rag_pipeline.index.migrations import pending
from rag_pipeline.index.spaces import active_space
from rag_pipeline.settings import Settings
from rag_pipeline.sources.drops.stage import inbox_of

_SHOWN = 5


def status_report(settings: Settings) -> dict[str, Any]:
    """What is used, what the index holds, and what is quarantined, as JSON would show it."""
    embedded = EmbeddedPostgres(settings.home)
    running = bool(settings.database_url) or embedded.is_running()
    report: dict[str, Any] = {
        "config": str(settings.config_file or "defaults"),
        "home": str(settings.home),
        "lake": settings.lake_url,
        "database": describe(settings.database_url) if settings.database_url else "embedded",
        "replica": describe(settings.replica_url) if settings.replica_url else None,
        "running": running,
        "repositories": [repository.source or f"{repository.github} (GitHub)" for repository in settings.repositories],
        "ignored_in_inbox": _ignored(settings),
        "first_partition": settings.first_day.isoformat(),
        "freshness": [],
        "index": [],
        "quarantined": [],
    }
    if running:
        url = settings.database_url or embedded.url()
        report["pending_migrations"] = [f"{m.version:04d}_{m.name}" for m in pending(url)]
        if not report["pending_migrations"]:
            with connected(url) as connection:
                space = active_space(connection)
                report["embedding_space"] = dataclasses.asdict(space) if space else None
                report["freshness"] = freshness_report(settings, connection, now=datetime.now(UTC))
                report["index"] = [dataclasses.asdict(line) for line in overview(connection)]
                names = ("tenant", "source_type", "source_id", "stage", "reason", "attempts")
                report["quarantined"] = [dict(zip(names, row, strict=True)) for row in open_failures(connection)]
    return report


def _ignored(settings: Settings) -> list[str]:
    """What lies in the inbox and is no file; an inbox that cannot be reached does not stop the status."""
    try:
        return [ascii(name)[1:-1] for name in inbox_of(settings).ignored()]
    except Exception as error:  # each store has errors of its own
        return [f"the inbox cannot be read: {type(error).__name__}"]


def _listed(names: Sequence[str]) -> str:
    if not names:
        return ""
    more = f", and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return f"{', '.join(names[:_SHOWN])}{more} (only files directly in it are taken)"


def print_status(report: dict[str, Any]) -> None:
    """The report for people."""
    space = report.get("embedding_space")
    rows = [
        ("configuration", report["config"]),
        ("home", report["home"]),
        ("lake", report["lake"]),
        ("database", f"{report['database']}, {'running' if report['running'] else 'not running'}"),
        *([("replica, for searches", report["replica"])] if report["replica"] else []),
        ("repositories", ", ".join(report["repositories"]) or "none configured"),
        ("first partition", report["first_partition"]),
        *([("ignored in the inbox", ignored)] if (ignored := _listed(report["ignored_in_inbox"])) else []),
        (
            "embedding space",
            f"{space['provider']} {space['model']}, {space['dimensions']} dimensions" if space else "none",
        ),
    ]
    if report.get("pending_migrations"):
        rows.append(("migrations", f"pending: {', '.join(report['pending_migrations'])} (run `rag-pipeline migrate`)"))
    out.print(rows_table("", ("status", ""), rows))
    print_freshness(report["freshness"])
    if report["index"]:
        headers = (
            "tenant",
            "repository",
            "source type",
            "documents",
            "chunks",
            "tombstones",
            "newest change",
            "last indexed",
        )
        lines = [
            (r["tenant"], r["repository"], r["source_type"], r["documents"], r["chunks"], r["tombstones"],
             f"{r['newest_change']:%Y-%m-%d %H:%M}", f"{r['last_indexed']:%Y-%m-%d %H:%M}")
            for r in report["index"]
        ]  # fmt: skip
        out.print()
        out.print(rows_table("", headers, lines))
    if report["quarantined"]:
        out.print()
        failed = [(r["source_id"], r["stage"], r["attempts"], r["reason"]) for r in report["quarantined"]]
        out.print(rows_table("", ("quarantined item", "stage", "attempts", "reason"), failed))
