"""Maintenance of the index, with what it must know of the configured sources."""

from __future__ import annotations

import time
from datetime import datetime

from rag_pipeline.errors import TransientError
from rag_pipeline.index.database import Connection
from rag_pipeline.index.maintenance import Action, MaintenanceReport, Sources, maintain
from rag_pipeline.index.tombstones import Readable
from rag_pipeline.lake.store import Lake
from rag_pipeline.progress import Progress
from rag_pipeline.refresh.forgetting import apply_retention
from rag_pipeline.refresh.parts import RAW_STAGES
from rag_pipeline.settings import Settings
from rag_pipeline.sources.git.stage import STAGES as GIT_STAGES


def retire(settings: Settings, lake: Lake, *, connection: Connection, now: datetime) -> tuple[list[Action], list[str]]:
    """What is older than its source type is kept leaves index and lake; what was done, and what could not be.

    To be called outside of any stage, because it waits until none is at work.
    """
    started = time.perf_counter()
    try:
        gone = apply_retention(settings, lake, connection, now)
    except TransientError as error:
        return [], [f"retention: {error}"]
    if gone.left.total():
        return [], [f"retention: {gone.left.total():,} rows are still there: run `rag-pipeline forget --expired`"]
    if not gone.found.total():
        return [], []
    rows = gone.found.total()
    why = ", ".join(f"{name} {count:,}" for name, count in gone.found.items() if count)
    taken = Action(what="remove what is kept no longer", why=why, rows=rows, seconds=time.perf_counter() - started)
    return [taken], []


def maintain_index(
    settings: Settings, lake: Lake, *, connection: Connection, now: datetime, progress: Progress
) -> MaintenanceReport:
    """Put the index in order; see `rag_pipeline.index.maintenance`."""
    # git can be asked for any day again; GitHub and the inbox show the present only.
    readable = [
        Readable(tenant=repository.tenant, repository=repository.name, source_types=tuple(GIT_STAGES))
        for repository in settings.git_repositories
    ]
    return maintain(
        connection, lake, settings=settings.maintenance, now=now, progress=progress,
        sources=Sources(raw_stages=RAW_STAGES, readable=readable), questions_days=settings.serving.query_log_days,
    )  # fmt: skip
