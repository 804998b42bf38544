"""Whether the index is fresh, for people (a check and a policy in the UI), and the sensor that makes it fresh again.

Dagster's own policy looks at the last materialization, whatever day it was of, so a backfill of an old day satisfies
it. The check `index_is_fresh` compares what each source shows with what of it is in the index: it is the truth.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

import dagster as dg

from rag_pipeline.defs.automation.drops import DROP_SENSOR
from rag_pipeline.defs.automation.launching import refresh_request, refreshing
from rag_pipeline.defs.metadata import Metadata, table
from rag_pipeline.defs.resources import Pipeline
from rag_pipeline.documents.redaction import redact
from rag_pipeline.model import DayRange
from rag_pipeline.refresh import serving_space
from rag_pipeline.refresh.freshness import Standing, missing_days, spoken_lag, staleness_lines
from rag_pipeline.refresh.watching import look
from rag_pipeline.settings import Freshness, Settings

FRESHNESS_SENSOR = "freshness_sensor"
FRESHNESS_CHECK = "index_is_fresh"
_INDEX = dg.AssetKey("knowledge_index")
_MARK = "rag/freshness"
_LONGEST_PAUSE = timedelta(hours=6)
_ATTEMPTS_BEFORE_ALARM = 2
_DESCRIPTION = (
    "Whether everything that each source shows is in the index: up to when each repository is complete, by what it "
    "showed itself. A backfill of an old day changes nothing here."
)


def index_freshness_policy(settings: Freshness) -> dg.FreshnessPolicy:
    """For the UI: when somebody last wrote to the index at all."""
    longest = timedelta(hours=settings.max_lag_hours)
    return dg.FreshnessPolicy.time_window(fail_window=longest, warn_window=longest * 0.75)


def freshness_check(settings: Settings) -> dg.AssetChecksDefinition:
    """`index_is_fresh`: evaluated at the end of each run, by the sensor, and by hand."""

    @dg.asset_check(asset=_INDEX, name=FRESHNESS_CHECK, blocking=False, description=_DESCRIPTION)
    def index_is_fresh(pipeline: dg.ResourceParam[Pipeline]) -> dg.AssetCheckResult:
        standings = _look(pipeline, ask=False)
        return dg.AssetCheckResult(
            passed=not staleness_lines(standings), severity=_severity(settings), metadata=_metadata(standings)
        )

    return index_is_fresh


def freshness_sensor(job_name: str, settings: Settings) -> dg.SensorDefinition:
    """Compares what each source shows with what is indexed, and launches the days that are missing."""

    @dg.sensor(
        name=FRESHNESS_SENSOR, job_name=job_name, default_status=dg.DefaultSensorStatus.STOPPED,
        minimum_interval_seconds=settings.freshness.check_every_minutes * 60,
        description=(
            "Asks each source for its newest change, compares it and the newest partition with what is indexed, per "
            "repository, and launches the days that are missing, near ones in one run; or launches nothing and "
            "alerts, by `freshness.on_stale`. It waits for runs that are at work, and longer after each that did not "
            "help."
        ),
    )  # fmt: skip
    def sensor(context: dg.SensorEvaluationContext, pipeline: dg.ResourceParam[Pipeline]) -> dg.SensorResult:
        wanted = pipeline.settings.freshness
        now = pipeline.clock()
        run_id = refreshing(context.instance, job_name, apart_from=DROP_SENSOR)
        # A run that reads a source holds its mirror, and tells what it read by itself.
        standings = _look(pipeline, ask=wanted.ask_sources and not run_id)
        for line in staleness_lines(standings):
            context.log.warning(redact(line).text)
        memory = _Memory(context.cursor)
        missing = missing_days(standings)
        skipped, requests = "", []
        if not missing:
            skipped = _nothing_to_launch(standings)
        elif run_id:
            skipped = f"waiting for run {run_id}, which is bringing the index up to date"
        elif wanted.on_stale == "alert":
            skipped = f'the days {_spoken(missing)} are missing; freshness.on_stale = "alert" launches nothing'
        elif due := memory.pause_until(_key(standings, now), now, wanted):
            skipped = f"the last run did not make it fresh; trying the days {_spoken(missing)} again at {due:%H:%M} UTC"
        else:
            requests = _requests(missing, memory.attempted(_key(standings, now), now))
        news = memory.news(standings, settings, now)
        return dg.SensorResult(
            run_requests=requests, skip_reason=skipped or None, asset_events=news, cursor=memory.cursor
        )

    return sensor


class _Memory:
    """What the sensor knows of its former looks; Dagster keeps it as the cursor."""

    def __init__(self, cursor: str | None) -> None:
        self._values: dict[str, str] = json.loads(cursor) if cursor else {}

    @property
    def cursor(self) -> str:
        return json.dumps(self._values)

    def pause_until(self, key: str, now: datetime, settings: Freshness) -> datetime | None:
        """When the same days may be launched again; None: now."""
        if self._values.get("key") != key:
            return None
        pause = timedelta(minutes=settings.check_every_minutes) * 2.0 ** min(self._attempts, 20)
        due = datetime.fromisoformat(self._values["at"]) + min(pause, _LONGEST_PAUSE)
        return due if now < due else None

    def attempted(self, key: str, now: datetime) -> str:
        """Note that these days are launched now; a run key that was not used before."""
        attempts = self._attempts + 1 if self._values.get("key") == key else 1
        self._values |= {"key": key, "attempts": str(attempts), "at": now.isoformat()}
        return f"{key}-{attempts}"

    def news(self, standings: Sequence[Standing], settings: Settings, now: datetime) -> list[dg.AssetCheckEvaluation]:
        """The check's result when it is another one than the last, and once a day."""
        states = [f"{s.key} {s.state} {s.unreadable}" for s in standings]
        said = f"{now.date()} {_hash(states)} {self._attempts > _ATTEMPTS_BEFORE_ALARM}"
        if self._values.get("said") == said:
            return []
        self._values["said"] = said
        # What did not become fresh by itself is for a person to look at.
        severity = (
            dg.AssetCheckSeverity.ERROR if self._attempts > _ATTEMPTS_BEFORE_ALARM else _severity(settings)
        )  # fmt: skip
        return [
            dg.AssetCheckEvaluation(
                asset_key=_INDEX, check_name=FRESHNESS_CHECK, passed=not staleness_lines(standings),
                severity=severity, metadata=_metadata(standings), description=_DESCRIPTION,
            )
        ]  # fmt: skip

    @property
    def _attempts(self) -> int:
        return int(self._values.get("attempts", "0"))


def _look(pipeline: Pipeline, *, ask: bool) -> list[Standing]:
    with pipeline.connection() as connection:
        space = serving_space(connection, pipeline.models)
        return look(
            pipeline.settings, connection=connection, space=space, lake=pipeline.lake(), access=pipeline.access,
            ask=ask,
        )  # fmt: skip


def _severity(settings: Settings) -> dg.AssetCheckSeverity:
    """What the sensor mends by itself is a warning."""
    mends_itself = settings.freshness.on_stale == "launch"
    return dg.AssetCheckSeverity.WARN if mends_itself else dg.AssetCheckSeverity.ERROR


def _metadata(standings: Sequence[Standing]) -> Metadata:
    rows = [
        (
            s.key.tenant, s.key.repository, s.key.source, s.state, _moment(s.seen.newest_item_at),
            _moment(s.seen.complete_until), spoken_lag(s.lag), ", ".join(map(str, s.due)), s.why,
        )
        for s in standings
    ]  # fmt: skip
    headers = (
        "tenant", "repository", "source", "state", "last item seen (UTC)", "complete until (UTC)", "lag",
        "missing days", "why",
    )  # fmt: skip
    return {
        "sources": table(headers, rows),
        # A cell of the table is cut; a reason is needed whole.
        "complaints": dg.MetadataValue.text(redact("\n".join(staleness_lines(standings))).text or "none"),
        "stale": dg.MetadataValue.int(sum(s.is_stale for s in standings)),
        "missing_days": dg.MetadataValue.text(_spoken(missing_days(standings)) or "none"),
        "how_to_fix": dg.MetadataValue.text(
            "Switch freshness_sensor or scheduled_refresh on under Automation, run `rag-pipeline materialize`, or "
            "accept an older index with freshness.max_lag_hours."
        ),
    }


def _requests(missing: Iterable[DayRange], run_key: str) -> list[dg.RunRequest]:
    return [
        refresh_request(days, run_key=f"{run_key}-{days.first}", tags={_MARK: str(days)}) for days in missing
    ]  # fmt: skip


def _key(standings: Iterable[Standing], now: datetime) -> str:
    """The same until a source that is due becomes complete further than it is, or another day begins."""
    due = [f"{s.key} {s.seen.complete_until}" for s in standings if s.due and not s.unreadable]
    return _hash([str(now.date()), *due])


def _hash(lines: Sequence[str]) -> str:
    return hashlib.blake2b("\n".join(lines).encode(), digest_size=12).hexdigest()


def _nothing_to_launch(standings: Sequence[Standing]) -> str:
    unreadable: Mapping[str, str] = {s.key.repository: s.why for s in standings if s.unreadable}
    if unreadable:
        told = "; ".join(f"{name}: {why}" for name, why in unreadable.items())
        return redact(f"nothing that a run could mend: {told}").text
    return f"all {len(standings)} sources are indexed" if standings else "no source is configured"


def _spoken(ranges: Sequence[DayRange]) -> str:
    return ", ".join(map(str, ranges))


def _moment(at: datetime | None) -> str:
    return f"{at:%Y-%m-%d %H:%M}" if at else "-"
