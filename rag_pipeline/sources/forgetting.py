"""Taking what is forgotten out of raw parts, so that they are as if it had never been read."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

import pyarrow as pa

from rag_pipeline.forgotten import Forgotten
from rag_pipeline.lake.rewriting import rewrite_part
from rag_pipeline.lake.schemas import ITEMS, items_of, to_batches
from rag_pipeline.lake.store import Lake, Part
from rag_pipeline.model import document_id
from rag_pipeline.sources.raw_parts import digest_of

_IDENTITY = ("tenant", "source_type", "source_id", "repository", "source_updated_at", "metadata")


@dataclass(slots=True, kw_only=True)
class RawFindings:
    """What the raw files of one part hold of what is forgotten."""

    gone: set[UUID] = field(default_factory=set)
    """Documents that must not be there at all."""
    cut: set[UUID] = field(default_factory=set)
    """Documents that lose what somebody said in them, or who made them."""
    rows: dict[str, int] = field(default_factory=dict)
    """Stage → rows that are concerned."""
    fingerprints: dict[str, str | None] = field(default_factory=dict)
    """Stage → the fingerprint of what is left; None: nothing is."""


def find_forgotten(lake: Lake, part: Part, stages: Sequence[str], forgotten: Forgotten) -> RawFindings:
    """Look for it, reading contents only where authors are forgotten; changes nothing."""
    found = RawFindings()
    columns = None if forgotten.has_authors(part.tenant) else _IDENTITY
    for stage in stages:
        rows = 0
        for batch in lake.read_or_give_up(stage, part, columns=columns):
            for item in items_of(batch):
                left = forgotten.left_of(item)
                if left is item:
                    continue
                rows += 1
                found_in = found.gone if left is None else found.cut
                found_in.add(document_id(tenant=item.tenant, source_type=item.source_type, source_id=item.source_id))
        if rows:
            found.rows[stage] = rows
            found.fingerprints[stage] = _fingerprint_of_rest(lake, stage, part, forgotten)
    return found


def remove_forgotten(lake: Lake, part: Part, found: RawFindings, forgotten: Forgotten) -> None:
    """Write the files that hold it again without it."""

    def rest(batch: pa.RecordBatch) -> pa.RecordBatch:
        # Newer columns may be missing from what an older version wrote; all that are known are written.
        batches = list(to_batches(forgotten.kept(items_of(batch)), ITEMS))
        return pa.Table.from_batches(batches, schema=ITEMS).combine_chunks().to_batches()[0] if batches else batch[:0]

    for stage, fingerprint in found.fingerprints.items():
        rewrite_part(lake, stage, part, rest, fingerprint=fingerprint or "", schema=ITEMS)


def _fingerprint_of_rest(lake: Lake, stage: str, part: Part, forgotten: Forgotten) -> str | None:
    digest, rows = hashlib.blake2b(digest_size=16), 0
    for batch in lake.read_or_give_up(stage, part):
        for item in forgotten.kept(items_of(batch)):
            digest.update(digest_of(item))
            rows += 1
    return digest.hexdigest() if rows else None
