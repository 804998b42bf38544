"""Writing a part again with some of its rows: what was noted with it stays, but for its fingerprint."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from rag_pipeline.errors import DamagedPart
from rag_pipeline.lake.store import Lake, Part


def rewrite_part(
    lake: Lake, stage: str, part: Part, change: Callable[[pa.RecordBatch], pa.RecordBatch], *, fingerprint: str,
    schema: pa.Schema | None = None,
) -> int:  # fmt: skip
    """Pass each batch of a part through `change` and write the result in its place; returns the rows that are left.

    `schema` is that of the result, where it is another one. A part without rows is removed. One that is damaged is
    emptied: nothing of it is left, and its owner makes it again.
    """
    try:
        return _rewrite(lake, stage, part, change, fingerprint=fingerprint, schema=schema)
    except DamagedPart:
        if not lake.give_up(stage, part):
            raise
        return 0


def _rewrite(
    lake: Lake, stage: str, part: Part, change: Callable[[pa.RecordBatch], pa.RecordBatch], *, fingerprint: str,
    schema: pa.Schema | None,
) -> int:  # fmt: skip
    tags = lake.tags(stage, part) or {}
    batches = lake.read(stage, part)
    first = next(batches, None)
    if first is None:
        return 0
    with lake.writer(stage, part, schema=schema or first.schema) as writer:
        writer.add(change(first))
        for batch in batches:
            writer.add(change(batch))
        writer.tags = {name: value for name, value in tags.items() if name not in ("fingerprint", "rows")}
        writer.fingerprint = fingerprint
    return writer.rows


def rows_kept(batch: pa.RecordBatch, kept: list[bool]) -> pa.RecordBatch:
    """The rows for which `kept` says so."""
    return batch if all(kept) else batch.filter(pa.array(kept, pa.bool_()))
