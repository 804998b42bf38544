"""Settings of the quarantine: how often an item that failed is tried again by itself."""

from __future__ import annotations

from pydantic import Field

from rag_pipeline.settings.sections import Section


class Quarantine(Section):
    """For the sensor `quarantine_retry`."""

    max_attempts: int = Field(default=8, ge=1)
    """An item that failed so often is given up: it waits for a person, and an alert says so."""
    first_pause_s: float = Field(default=1_800.0, gt=0)
    """Before the second attempt; each further pause is twice as long, up to a day."""
