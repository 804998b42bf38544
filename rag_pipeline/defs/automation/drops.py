"""The sensor of the inbox: one run per batch of drops, and never two at once."""

import json
from collections.abc import Sequence
from datetime import datetime, timedelta

import dagster as dg

from rag_pipeline.defs.assets.raw_drops import DROPS_UNTIL
from rag_pipeline.defs.automation.launching import UNFINISHED
from rag_pipeline.defs.resources import Pipeline
from rag_pipeline.documents.redaction import redact
from rag_pipeline.sources.drops.peek import Batch, peek

DROP_SENSOR = "webhook_drops"
_INTERVAL_S = 10
_MARK = "rag/drops"
_ALWAYS = ("raw_webhook_drops", "documents", "chunks", "embeddings", "knowledge_index")
_LONGEST_PAUSE = timedelta(minutes=30)


def drop_sensor(job_name: str) -> dg.SensorDefinition:
    """Watches the inbox, as the settings name it."""

    @dg.sensor(
        name=DROP_SENSOR, job_name=job_name, minimum_interval_seconds=_INTERVAL_S,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=(
            "Takes what is dropped into the inbox: GitHub deliveries, JSON, NDJSON and plain files. One run per batch, "
            "the next one when it has ended; a batch whose run failed is tried again after a growing pause."
        ),
    )  # fmt: skip
    def webhook_drops(
        context: dg.SensorEvaluationContext, pipeline: dg.ResourceParam[Pipeline]
    ) -> dg.SensorResult | dg.SkipReason:
        now = pipeline.clock()
        batch = peek(pipeline.settings, now=now)
        if not batch.ids:
            return dg.SkipReason(f"the inbox is empty: {redact(pipeline.settings.inbox_url).text}")
        if _is_running(context.instance):
            return dg.SkipReason(f"{batch.waiting:,} drops wait for the run that is taking drops now")
        before = json.loads(context.cursor) if context.cursor else {}
        attempt = int(before.get("attempt", 0)) + 1 if before.get("batch") == batch.key else 1
        if attempt > 1 and now < (due := datetime.fromisoformat(before["at"]) + _pause(attempt)):
            return dg.SkipReason(f"these {len(batch.ids):,} drops were not taken; trying again at {due:%H:%M:%S} UTC")
        cursor = {"batch": batch.key, "attempt": attempt, "at": now.isoformat(), "drops": len(batch.ids)}
        return dg.SensorResult(run_requests=[_request(batch, attempt, now)], cursor=json.dumps(cursor))

    return webhook_drops


def _request(batch: Batch, attempt: int, now: datetime) -> dg.RunRequest:
    today = now.date()
    first = min(batch.pushed_since or today, today)
    assets: Sequence[str] = (*_ALWAYS, "raw_docs", "raw_code") if batch.pushed_since else _ALWAYS
    # The key is made of the deliveries: the same batch launches one run, and another one only as another attempt.
    key = f"{batch.key}-{attempt}"
    selection = [dg.AssetKey(name) for name in assets]
    tags = {_MARK: str(len(batch.ids))}
    if batch.until:
        # A push that comes in now needs another run than this one.
        tags[DROPS_UNTIL] = batch.until.isoformat()
    if first == today:
        return dg.RunRequest(run_key=key, partition_key=today.isoformat(), asset_selection=selection, tags=tags)
    tags |= {
        "dagster/asset_partition_range_start": first.isoformat(),
        "dagster/asset_partition_range_end": today.isoformat(),
    }
    return dg.RunRequest(run_key=key, asset_selection=selection, tags=tags)


def _is_running(instance: dg.DagsterInstance) -> bool:
    filters = dg.RunsFilter(statuses=UNFINISHED, tags={"dagster/sensor_name": DROP_SENSOR})
    return bool(instance.get_run_records(filters=filters, limit=1))


def _pause(attempt: int) -> timedelta:
    return min(_LONGEST_PAUSE, timedelta(seconds=_INTERVAL_S * 2.0**attempt))
