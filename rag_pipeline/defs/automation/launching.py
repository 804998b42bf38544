"""How schedules and sensors ask for a refresh: as a single run over a range of days, and not while one is at work."""

from collections.abc import Mapping

import dagster as dg

from rag_pipeline.model import DayRange

UNFINISHED = [
    dg.DagsterRunStatus.QUEUED, dg.DagsterRunStatus.NOT_STARTED, dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING,
]  # fmt: skip
_LAST_ASSET = dg.AssetKey("knowledge_index")
_LOOKED_AT = 100


def refresh_request(days: DayRange, *, run_key: str | None, tags: Mapping[str, str]) -> dg.RunRequest:
    """One run of the whole refresh job over these days."""
    first, last = days.first.isoformat(), days.last.isoformat()
    if first == last:
        return dg.RunRequest(run_key=run_key, partition_key=first, tags=dict(tags))
    range_tags = {"dagster/asset_partition_range_start": first, "dagster/asset_partition_range_end": last}
    return dg.RunRequest(run_key=run_key, tags={**tags, **range_tags})


def refreshing(instance: dg.DagsterInstance, job_name: str, *, by: str = "", apart_from: str = "") -> str:
    """The id of an unfinished run that brings the index up to date; empty: there is none.

    Only those of the schedule `by`, if it is given; none of the sensor `apart_from`.
    """
    for record in instance.get_run_records(filters=dg.RunsFilter(statuses=UNFINISHED), limit=_LOOKED_AT):
        run = record.dagster_run
        if by and run.tags.get("dagster/schedule_name") != by:
            continue
        if apart_from and run.tags.get("dagster/sensor_name") == apart_from:
            continue
        if run.job_name == job_name or _LAST_ASSET in (run.asset_selection or ()):
            return run.run_id
    return ""
