"""When the index is put in order."""

import dagster as dg

from rag_pipeline.settings import Settings


def maintenance_schedule(job_name: str, settings: Settings) -> dg.ScheduleDefinition:
    """Once a week by default, after the reconciliation; switched on in the UI."""
    return dg.ScheduleDefinition(
        name="index_maintenance_schedule", job_name=job_name, cron_schedule=settings.maintenance.cron,
        execution_timezone="UTC",
        description=(
            "Puts the index in order: merged segments, no vector or tombstone that nothing needs, vacuumed tables, "
            "sound indexes. `[maintenance] cron` says when."
        ),
    )  # fmt: skip
