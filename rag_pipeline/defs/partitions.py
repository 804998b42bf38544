"""Daily partitions, today's included; repositories are a column and a file inside a partition, never a dimension."""

from datetime import date

import dagster as dg

from rag_pipeline.model import DayRange
from rag_pipeline.settings import Settings


def daily_partitions(settings: Settings) -> dg.DailyPartitionsDefinition:
    """Days in UTC from the first configured one to today."""
    return dg.DailyPartitionsDefinition(start_date=settings.first_day.isoformat(), end_offset=1, timezone="UTC")


def days_of(context: dg.AssetExecutionContext) -> DayRange:
    """The days of a run: one partition, or the range of a single-run backfill."""
    keys = context.partition_key_range
    return DayRange(first=date.fromisoformat(keys.start), last=date.fromisoformat(keys.end))
