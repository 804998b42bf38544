"""The `[backfills]` section: how a backfill over many days is cut into runs."""

from __future__ import annotations

from pydantic import Field

from rag_pipeline.settings.sections import Section


class Backfills(Section):
    """Backfills that are launched in the UI; commands, schedules and sensors ask for the ranges that they need."""

    days_per_run: int = Field(default=0, ge=0)
    """At most so many days in one run, so that several workers have something to do; 0: one run for all days."""
