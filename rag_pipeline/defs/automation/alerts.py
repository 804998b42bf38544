"""The sensor that tells people: each thing once by each channel, many at once as one message."""

import dataclasses
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import dagster as dg

from rag_pipeline.alerting.channels import Channel, channels_of
from rag_pipeline.alerting.messages import Alert, digest
from rag_pipeline.defs.automation.run_alerts import alert_of, ended_runs
from rag_pipeline.defs.resources import Pipeline
from rag_pipeline.errors import RagPipelineError
from rag_pipeline.settings import Settings

ALERTS_SENSOR = "alerts"
_INTERVAL_S = 30
_FEW = 3
"""So many alerts at once are a message each; more are one message together."""
_MOST_READ = 50
_MOST_WAITING = 500
_WINDOW = 1_000
"""Event ids that are remembered: more than `ended_runs` looks back."""

More = Callable[[Pipeline, datetime, str | None], tuple[list[Alert], str | None]]
"""(pipeline, now, mark of the last look) to alerts that are no run's, and the mark of this look."""


@dataclass(kw_only=True)
class _Memory:
    """What the sensor's cursor holds."""

    after: int | None = None
    seen: list[int] = field(default_factory=list)
    """Ids of the newest events that were looked at."""
    waiting: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """What each channel has still to deliver: a run, or an alert."""
    left_out: dict[str, int] = field(default_factory=dict)
    sent: dict[str, list[str]] = field(default_factory=dict)
    """When each channel delivered, in the last hour."""
    mark: str | None = None


def alerts_sensor(settings: Settings, *, more: Sequence[More] = ()) -> list[dg.SensorDefinition]:
    """`alerts`, where a channel is configured; else none."""
    if not settings.alerts.configured:
        return []

    @dg.sensor(
        name=ALERTS_SENSOR, minimum_interval_seconds=_INTERVAL_S, default_status=dg.DefaultSensorStatus.RUNNING,
        description=(
            "Tells people of failed runs, failed checks and items that are given up, by the channels that [alerts] "
            "names. What could not be delivered is sent again by the next tick."
        ),
    )  # fmt: skip
    def alerts(context: dg.SensorEvaluationContext, pipeline: dg.ResourceParam[Pipeline]) -> dg.SkipReason:
        now = pipeline.clock()
        begins = not context.cursor
        memory = _Memory(**json.loads(context.cursor)) if context.cursor else _Memory()
        channels = channels_of(pipeline.settings.alerts, environ=pipeline.environ)
        news = _news(context.instance, pipeline, memory)
        for source in more:
            told, memory.mark = source(pipeline, now, memory.mark)
            news += [{"alert": dataclasses.asdict(alert)} for alert in told]
        if begins:
            # What failed before there was anybody to tell is history.
            context.update_cursor(json.dumps(dataclasses.asdict(memory)))
            return dg.SkipReason("watching from now on")
        for channel in channels:
            _queue(memory, channel.name, news)
        said = [_deliver(context.instance, pipeline, memory, channel, now) for channel in channels]
        context.update_cursor(json.dumps(dataclasses.asdict(memory)))
        for problem in [text for failed, text in said if failed]:
            context.log.error(problem)
        return dg.SkipReason("; ".join(text for _, text in said if text) or "nothing to tell")

    return [alerts]


def _news(instance: dg.DagsterInstance, pipeline: Pipeline, memory: _Memory) -> list[dict[str, Any]]:
    ended, memory.after = ended_runs(instance, after=memory.after)
    seen = set(memory.seen)
    fresh = [(event_id, run_id) for event_id, run_id in ended if event_id not in seen]
    memory.seen = sorted(i for i in seen | {event_id for event_id, _ in fresh} if i > memory.after - _WINDOW)
    settings = pipeline.settings.alerts
    return [{"run": run_id} for _, run_id in fresh if alert_of(instance, run_id, settings) is not None]


def _queue(memory: _Memory, name: str, news: Sequence[dict[str, Any]]) -> None:
    waiting = memory.waiting.setdefault(name, [])
    room = max(0, _MOST_WAITING - len(waiting))
    waiting += news[:room]
    memory.left_out[name] = memory.left_out.get(name, 0) + len(news[room:])


def _deliver(
    instance: dg.DagsterInstance, pipeline: Pipeline, memory: _Memory, channel: Channel, now: datetime
) -> tuple[bool, str]:
    """Whether something went wrong, and what to say of it."""
    settings = pipeline.settings.alerts
    waiting = memory.waiting[channel.name]
    sent = [at for at in memory.sent.get(channel.name, []) if datetime.fromisoformat(at) > now - timedelta(hours=1)]
    memory.sent[channel.name] = sent
    if not waiting:
        return False, ""
    batches = [waiting[:]] if len(waiting) > _FEW else [[entry] for entry in waiting]
    done = 0
    for batch in batches:
        if len(sent) >= settings.max_per_hour:
            return (
                False,
                f"{channel.name}: {len(waiting):,} alerts wait, {len(sent)} messages went out in the last hour",
            )
        try:
            if alert := _message(instance, pipeline, batch, memory.left_out.get(channel.name, 0)):
                channel.send(alert)
                sent.append(now.isoformat())
        except RagPipelineError as error:
            return True, f"{error}; {len(waiting):,} alerts wait, trying again"
        del waiting[: len(batch)]
        memory.left_out[channel.name] = 0
        done += len(batch)
    return False, f"{channel.name}: {done:,} told"


def _message(
    instance: dg.DagsterInstance, pipeline: Pipeline, batch: Sequence[dict[str, Any]], left_out: int
) -> Alert | None:
    """One alert, or a digest of several; None: their runs have been deleted."""
    found = [_alert(instance, pipeline, entry) for entry in batch[:_MOST_READ]]
    alerts = [alert for alert in found if alert is not None]
    more = len(batch) - len(found) + left_out
    if len(alerts) == 1 and not more:
        return alerts[0]
    return digest(alerts, left_out=more) if alerts else None


def _alert(instance: dg.DagsterInstance, pipeline: Pipeline, entry: dict[str, Any]) -> Alert | None:
    if "run" in entry:
        return alert_of(instance, entry["run"], pipeline.settings.alerts)
    facts = [(name, value) for name, value in entry["alert"]["facts"]]
    return Alert(**entry["alert"] | {"facts": facts})
