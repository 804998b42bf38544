"""Settings of the weekly maintenance: what may go, when tables and indexes are put in order, and how often."""

from __future__ import annotations

from pydantic import Field, field_validator

from rag_pipeline.settings.sections import Section


class Maintenance(Section):
    """What the index is kept tidy by."""

    cron: str = "47 4 * * 0"
    """When the schedule runs (UTC)."""
    tombstones_days: int = Field(default=400, ge=0)
    """So long a deletion stays on record; 0: for ever."""
    resolved_days: int = Field(default=90, ge=0)
    """So long a quarantined item stays on record after it succeeded; 0: for ever."""
    most_segments: int = Field(default=4, ge=1)
    """Of the lexical index, for each tenant and scope; more are merged into one."""
    dead_share: float = Field(default=0.1, ge=0, le=1)
    """A table with more dead rows than this share of its rows is vacuumed."""
    wasted_share: float = Field(default=0.5, gt=0, lt=1)
    """An index that wastes more than this share of its pages is built again, beside itself."""
    min_index_bytes: int = Field(default=8_000_000, ge=0)
    """Smaller indexes are left as they are."""

    @field_validator("cron")
    @classmethod
    def _has_five_fields(cls, cron: str) -> str:
        if len(cron.split()) != 5:
            raise ValueError("must be a cron expression of five fields, such as '47 4 * * 0'")
        return cron
