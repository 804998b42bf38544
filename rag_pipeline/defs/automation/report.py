"""When the report is made."""

import dagster as dg


def daily_report(job_name: str) -> dg.ScheduleDefinition:
    """Every morning, so that its numbers are drawn over time; switched on in the UI."""
    return dg.ScheduleDefinition(
        name="daily_report", job_name=job_name, cron_schedule="30 5 * * *", execution_timezone="UTC",
        description="Makes the report of size, growth, freshness, retrieval quality and cost, every day at 05:30 UTC.",
    )  # fmt: skip
