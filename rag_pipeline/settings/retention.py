"""The `[retention]` section: how long what came from a source is kept."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from pydantic import Field, NonNegativeInt

from rag_pipeline.settings.sections import Section


class Retention(Section):
    """After how long documents leave lake and index, by source type."""

    days: Mapping[str, NonNegativeInt] = Field(default_factory=dict)
    """Source type → days since the source last changed it; 0, or a type that is not named: for ever."""

    def kept_from(self, now: datetime) -> dict[str, datetime]:
        """By source type: what last changed before this moment is not kept."""
        return {source_type: now - timedelta(days=days) for source_type, days in self.days.items() if days}
