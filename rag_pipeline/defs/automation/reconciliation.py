"""When GitHub is compared with the index."""

import dagster as dg


def weekly_reconciliation(job_name: str) -> dg.ScheduleDefinition:
    """Once a week, in the night of the least work; switched on in the UI."""
    return dg.ScheduleDefinition(
        name="weekly_reconciliation", job_name=job_name, cron_schedule="17 3 * * 0", execution_timezone="UTC",
        description="Finds what was deleted, transferred or silently edited on GitHub, every Sunday at 03:17 UTC.",
    )  # fmt: skip
