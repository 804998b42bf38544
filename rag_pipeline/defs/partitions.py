"""Daily partitions, today's included; repositories are a column and a file inside a partition, never a dimension."""

from datetime import date

import dagster as dg

from rag_pipeline.model import DayRange
from rag_pipeline.settings import Settings


def daily_partitions(settings: Settings) -> dg.DailyPartitionsDefinition:
    """Days in UTC from the first configured one to today."""
    return dg.DailyPartitionsDefinition(start_date=settings.first_day.isoformat(), end_offset=1, timezone="UTC")


def backfill_policy(settings: Settings) -> dg.BackfillPolicy:
    """How a backfill is cut into runs: any cut gives the same index, and each further run costs its start-up."""
    if days := settings.backfills.days_per_run:
        return dg.BackfillPolicy.multi_run(max_partitions_per_run=days)
    return dg.BackfillPolicy.single_run()


def days_of(context: dg.AssetExecutionContext) -> DayRange:
    """The days of a run: one partition, or the range of a single-run backfill."""
    keys = context.partition_key_range
    return DayRange(first=date.fromisoformat(keys.start), last=date.fromisoformat(keys.end))
