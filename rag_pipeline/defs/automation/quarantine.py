"""The sensor that tries quarantined items again, with growing pauses, and tells of those that are given up."""

import json
from datetime import datetime

import dagster as dg

from rag_pipeline.alerting.messages import Alert
from rag_pipeline.defs.resources import Pipeline
from rag_pipeline.documents.redaction import redact
from rag_pipeline.errors import RagPipelineError
from rag_pipeline.index.quarantine import due_days, pause, quarantined

QUARANTINE_SENSOR = "quarantine_retry"
_INTERVAL_S = 300
_MARK = "rag/quarantine"
_MOST_DAYS = 5
_UNFINISHED = [
    dg.DagsterRunStatus.QUEUED, dg.DagsterRunStatus.NOT_STARTED, dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING,
]  # fmt: skip


def quarantine_sensor(job_name: str) -> dg.SensorDefinition:
    """Runs the days of items whose pause is over; switched on in the UI."""

    @dg.sensor(
        name=QUARANTINE_SENSOR, job_name=job_name, minimum_interval_seconds=_INTERVAL_S,
        description=(
            "Tries quarantined items again: runs their days, at most five at once, after pauses that grow from half an "
            "hour to a day. After [quarantine] max_attempts an item waits for a person: see `rag-pipeline quarantine`."
        ),
    )  # fmt: skip
    def quarantine_retry(
        context: dg.SensorEvaluationContext, pipeline: dg.ResourceParam[Pipeline]
    ) -> dg.SensorResult | dg.SkipReason:
        now, settings = pipeline.clock(), pipeline.settings
        with pipeline.connection() as connection:
            items = quarantined(connection)
        running = context.instance.get_run_records(dg.RunsFilter(statuses=_UNFINISHED, tags={_MARK: "retry"}), limit=1)
        if running:
            return dg.SkipReason("waiting for the run that tries items again now")
        launched: dict[str, tuple[str, int]] = json.loads(context.cursor) if context.cursor else {}
        due = [
            day.isoformat()
            for day in due_days(items, settings.quarantine, now=now)
            if settings.first_day <= day <= now.date()
            and _is_over(launched.get(day.isoformat()), pipeline, now)
        ][:_MOST_DAYS]  # fmt: skip
        if not due:
            return dg.SkipReason(f"{len(items):,} items in quarantine, none is due")
        waiting = {item.day.isoformat() for item in items}
        kept = {day: mark for day, mark in launched.items() if day in waiting}
        kept |= {day: (now.isoformat(), launched.get(day, ("", 0))[1] + 1) for day in due}
        requests = [dg.RunRequest(partition_key=day, tags={_MARK: "retry"}) for day in due]
        return dg.SensorResult(run_requests=requests, cursor=json.dumps(kept))

    return quarantine_retry


def given_up_alerts(pipeline: Pipeline, now: datetime, mark: str | None) -> tuple[list[Alert], str | None]:
    """An alert for each item that is newly given up; `mark` holds those that were before."""
    settings = pipeline.settings
    if "quarantine" not in settings.alerts.occasions:
        return [], mark
    try:
        with pipeline.connection() as connection:
            items = [item for item in quarantined(connection) if item.is_given_up(settings.quarantine)]
    except RagPipelineError:
        # Runs fail without the database, too, and that is told.
        return [], mark
    known = set(json.loads(mark)) if mark else set()
    names = {f"{i.tenant} {i.source_type} {i.source_id} {i.stage}": i for i in items}
    alerts = [
        Alert(
            kind="quarantine", title=f"{item.source_id} is given up after {item.attempts} attempts",
            facts=[("tenant", item.tenant), ("stage", item.stage), ("day", item.day.isoformat())],
            reason=redact(item.reason).text[:1_500], link=settings.alerts.ui_url,
            advice="Put right what it says, then `rag-pipeline quarantine retry`; or leave it out: `… accept`.",
        )
        for name, item in names.items() if name not in known
    ]  # fmt: skip
    return alerts, json.dumps(sorted(names))


def _is_over(launched: tuple[str, int] | None, pipeline: Pipeline, now: datetime) -> bool:
    """Whether the pause after our own last run is: one that failed as a whole counted no attempt of its items."""
    return launched is None or datetime.fromisoformat(launched[0]) + pause(
        launched[1], pipeline.settings.quarantine
    ) <= now  # fmt: skip
