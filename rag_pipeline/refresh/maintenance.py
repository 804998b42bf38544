"""Maintenance of the index, with what it must know of the configured sources."""

from __future__ import annotations

from datetime import datetime

from rag_pipeline.index.database import Connection
from rag_pipeline.index.maintenance import MaintenanceReport, Sources, maintain
from rag_pipeline.index.tombstones import Readable
from rag_pipeline.lake.store import Lake
from rag_pipeline.progress import Progress
from rag_pipeline.refresh.parts import RAW_STAGES
from rag_pipeline.settings import Settings
from rag_pipeline.sources.git.stage import STAGES as GIT_STAGES


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
        sources=Sources(raw_stages=RAW_STAGES, readable=readable),
    )  # fmt: skip
