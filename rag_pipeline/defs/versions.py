"""Data versions: what tells Dagster whether a partition holds anything else than the last time it was made.

A run gives all of its partitions one version, because Dagster takes one per asset and run. So that a day that is made
again alone, and found as it was, does not look new to what depends on it, it keeps the version it had.
"""

from collections.abc import Mapping

import dagster as dg

from rag_pipeline.lake.derive import combine
from rag_pipeline.lake.store import Part
from rag_pipeline.model import DayRange

DATA_FINGERPRINT = "data_fingerprint"
"""Metadata of a partition: what its day holds, whatever other days the run was at."""
_VERSION_TAG = "dagster/data_version"

Fingerprints = Mapping[Part, str]
"""What each part of an asset holds."""


def by_day(fingerprints: Fingerprints) -> dict[str, str]:
    """What each day (ISO date) with data holds, over all tenants and repositories."""
    days: dict[str, list[str]] = {}
    for part in sorted(fingerprints, key=lambda part: (part.day, part.tenant, part.repository)):
        days.setdefault(part.day.isoformat(), []).append(f"{part.tenant}/{part.repository}={fingerprints[part]}")
    return {day: combine(*held) for day, held in days.items()}


def data_version(
    context: dg.AssetExecutionContext, key: dg.AssetKey, days: DayRange, held: Mapping[str, str]
) -> dg.DataVersion:
    """The version of what a run leaves in these days; `held` is what each day with data holds."""
    if len(days) == 1:
        return _kept(context.instance, key, days, held) or _of(held)
    return _of(held)


def _of(held: Mapping[str, str]) -> dg.DataVersion:
    return dg.DataVersion(combine(*(f"{day}={fingerprint}" for day, fingerprint in sorted(held.items()))))


def _kept(
    instance: dg.DagsterInstance, key: dg.AssetKey, days: DayRange, held: Mapping[str, str]
) -> dg.DataVersion | None:
    """The version that the day had, when it holds the same as then."""
    day = days.first.isoformat()
    filters = dg.AssetRecordsFilter(asset_key=key, asset_partitions=[day])
    found = instance.fetch_materializations(filters, limit=1).records
    last = found[0].asset_materialization if found else None
    if last is None or not last.tags or _VERSION_TAG not in last.tags:
        return None
    before = last.metadata.get(DATA_FINGERPRINT)
    if (before.value if before else None) != held.get(day):
        return None
    return dg.DataVersion(last.tags[_VERSION_TAG])
