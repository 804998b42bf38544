"""Deletions that need not be remembered any more.

A tombstone keeps a late backfill from bringing the dead back. It may go only when nothing that we know of could still
show an older state of its document: no part of the lake, and no source whose history can be read again. git shows its
whole history, so the tombstones of a repository's files stay as long as the repository is configured; GitHub and the
inbox only show the present.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from uuid import UUID

from rag_pipeline.index.database import Connection
from rag_pipeline.index.sql_files import queries
from rag_pipeline.lake.derive import parts_in
from rag_pipeline.lake.schemas import ids_of
from rag_pipeline.lake.store import Lake, Part
from rag_pipeline.model import DayRange, document_id

_ALL_DAYS = DayRange(first=date.min, last=date.max)


@dataclass(frozen=True, slots=True, kw_only=True)
class Readable:
    """A source that can show what it showed long ago."""

    tenant: str
    repository: str
    source_types: tuple[str, ...]


@dataclass(slots=True, kw_only=True)
class TombstoneReport:
    """What became of tombstones past their time."""

    removed: int = 0
    kept_for_source: int = 0
    """Their source could show an older state again."""
    kept_for_lake: int = 0
    """The lake holds an older state."""


def remove_tombstones(
    connection: Connection, lake: Lake, *, before: datetime, raw_stages: Sequence[str], readable: Collection[Readable]
) -> TombstoneReport:
    """Forget documents whose deletion happened, and was indexed, before this time, unless they could come back."""
    report = TombstoneReport()
    again = {(r.tenant, r.repository, source_type) for r in readable for source_type in r.source_types}
    waiting: defaultdict[str, set[UUID]] = defaultdict(set)
    rows = connection.execute(queries("maintenance")["old_tombstones"], {"before": before})
    for tenant, repository, source_type, identity in rows:
        if (tenant, repository, source_type) in again:
            report.kept_for_source += 1
        else:
            waiting[tenant].add(identity)
    for tenant, found in sorted(waiting.items()):
        shown = found & _shown_by_lake(lake, tenant=tenant, raw_stages=raw_stages)
        report.kept_for_lake += len(shown)
        values = {"ids": sorted(found - shown), "before": before}
        report.removed += connection.execute(queries("maintenance")["remove_tombstones"], values).rowcount
    return report


def _shown_by_lake(lake: Lake, *, tenant: str, raw_stages: Sequence[str]) -> set[UUID]:
    """The tenant's documents that some part shows as alive, under whatever name their repository had then."""
    shown: set[UUID] = set()
    for part in parts_in(lake, ["documents"], _ALL_DAYS):
        if part.tenant == tenant:
            for batch in lake.read("documents", part, columns=["document_id", "deleted"]):
                ids, gone = ids_of(batch.column("document_id")), batch.column("deleted").to_pylist()
                shown |= {identity for identity, is_gone in zip(ids, gone, strict=True) if not is_gone}
    # What is not cleaned yet.
    for stage in raw_stages:
        for part in parts_in(lake, [stage], _ALL_DAYS):
            if part.tenant == tenant:
                shown |= _items_shown(lake, stage, part)
    return shown


def _items_shown(lake: Lake, stage: str, part: Part) -> set[UUID]:
    return {
        document_id(tenant=part.tenant, source_type=row["source_type"], source_id=row["source_id"])
        for batch in lake.read(stage, part, columns=["source_type", "source_id", "deleted"])
        for row in batch.to_pylist()
        if not row["deleted"]
    }
