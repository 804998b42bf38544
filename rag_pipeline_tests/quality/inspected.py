"""What the inspection of the index finds in an installation."""

from __future__ import annotations

from datetime import date

from rag_pipeline.index.database import connected
from rag_pipeline.index.inspection import Offences
from rag_pipeline.model import DayRange
from rag_pipeline.quality.knowledge_index import Inspection, inspect_index
from rag_pipeline.refresh import serving_space
from rag_pipeline_tests.end_to_end.installation import Installation

ALL_DAYS = DayRange(first=date.min, last=date.max)
NO_FAULT = {"vectors_without_chunk"}
"""Vectors of texts that are gone stay until maintenance."""


def inspect(installation: Installation, days: DayRange = ALL_DAYS) -> Inspection:
    """The whole index, and the lake of these days."""
    pipeline = installation.pipeline()
    with connected(installation.database) as connection:
        return inspect_index(
            connection, pipeline.lake(), days, serving_space(connection, pipeline.models),
            settings=installation.settings, now=installation.now,
        )  # fmt: skip


def wrong(installation: Installation, days: DayRange = ALL_DAYS) -> dict[str, Offences]:
    """Every look that finds a fault."""
    offences = inspect(installation, days).offences
    return {name: found for name, found in offences.items() if found.count and name not in NO_FAULT}
