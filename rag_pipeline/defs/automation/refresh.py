"""When the index is refreshed without a reason: every day, or every hour."""

from datetime import UTC, date, timedelta

import dagster as dg

from rag_pipeline.defs.automation.launching import refresh_request, refreshing
from rag_pipeline.defs.resources import Pipeline
from rag_pipeline.errors import RagPipelineError
from rag_pipeline.index.freshness import freshness
from rag_pipeline.model import DayRange
from rag_pipeline.refresh.freshness import judge
from rag_pipeline.settings import Settings

REFRESH_SCHEDULE = "scheduled_refresh"


def refresh_schedule(job_name: str, settings: Settings) -> dg.ScheduleDefinition:
    """`scheduled_refresh`: yesterday, which is over, and today so far, in one run."""

    @dg.schedule(
        name=REFRESH_SCHEDULE, job_name=job_name, cron_schedule=settings.schedules.refresh_cron,
        execution_timezone=settings.schedules.timezone, default_status=dg.DefaultScheduleStatus.STOPPED,
        description=(
            "Yesterday (closed) and today so far in one run, by `schedules.refresh`. When it was off for a while, the "
            "run begins at the day since which a repository is incomplete."
        ),
    )  # fmt: skip
    def schedule(
        context: dg.ScheduleEvaluationContext, pipeline: dg.ResourceParam[Pipeline]
    ) -> dg.RunRequest | dg.SkipReason:
        if run_id := refreshing(context.instance, job_name, by=REFRESH_SCHEDULE):
            return dg.SkipReason(f"run {run_id} of the time before is still at work")
        today = context.scheduled_execution_time.astimezone(UTC).date()
        days = DayRange(first=_first_day(context, pipeline, today=today), last=today)
        return refresh_request(days, run_key=None, tags={})

    return schedule


def _first_day(context: dg.ScheduleEvaluationContext, pipeline: Pipeline, *, today: date) -> date:
    """Yesterday, or the first day that is missing of a repository that can be read."""
    yesterday = today - timedelta(days=1)
    settings = pipeline.settings
    try:
        with pipeline.connection() as connection:
            standings = judge(freshness(connection), settings, now=pipeline.clock())
    except RagPipelineError as error:
        # The run will say it again, where people look.
        context.log.warning(f"what is missing of older days is not known: {error}")
        standings = []
    # What nobody can read does not make every run a long one.
    missing = [days.first for s in standings if not s.seen.problem for days in s.due]
    return max(min([yesterday, *missing]), settings.first_day)
