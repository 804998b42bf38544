"""The `[freshness]` section: how old the index may be, and what happens when it is older."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from rag_pipeline.settings.sections import Section


class Freshness(Section):
    """When the index is stale, and what `freshness_sensor` does then."""

    max_lag_hours: float = Field(default=36.0, gt=0)
    """A source whose newest complete state is older than this is stale."""
    on_stale: Literal["launch", "alert"] = "launch"
    """`launch`: the sensor runs the missing days. `alert`: it launches nothing; the check `index_is_fresh` fails."""
    check_every_minutes: int = Field(default=15, ge=1, le=1440)
    """How often the sensor looks."""
    ask_sources: bool = True
    """Whether the sensor asks each source for what is new, and not only how long ago that was done."""
