"""What there is to say of a run that has ended: that it failed, and which of its checks did."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import dagster as dg
from dagster import DagsterEventType

from rag_pipeline.alerting.messages import Alert
from rag_pipeline.documents.redaction import redact
from rag_pipeline.settings.alerts import Alerts

_ENDS: Final = (DagsterEventType.RUN_FAILURE, DagsterEventType.RUN_SUCCESS, DagsterEventType.RUN_CANCELED)
_WILL_RETRY = "dagster/will_retry"
_OVERLAP = 1_000
"""Event ids: an event may become visible after one with a higher id."""
_MOST_EVENTS = 200
_MOST_CHARS = 1_500
_MOST_CHECKS = 5


def ended_runs(instance: dg.DagsterInstance, *, after: int | None) -> tuple[list[tuple[int, str]], int]:
    """(event id, run id) of runs that ended after this event and a little before it, oldest first; the next `after`.

    `after` None: only those of that little before the newest one.
    """
    if after is None:
        newest = [instance.fetch_run_status_changes(end, limit=1).records for end in _ENDS]
        after = max((records[0].storage_id for records in newest if records), default=0)
    found: list[tuple[int, str]] = []
    until = None
    for end in _ENDS:
        wanted = dg.RunStatusChangeRecordsFilter(event_type=end, after_storage_id=max(0, after - _OVERLAP))
        records = instance.fetch_run_status_changes(wanted, limit=_MOST_EVENTS, ascending=True).records
        found += [(record.storage_id, record.event_log_entry.run_id) for record in records]
        if len(records) == _MOST_EVENTS:
            # There are more: the next look begins where the list ends.
            until = min(until or records[-1].storage_id, records[-1].storage_id)
    newest_seen = max([after, *(event_id for event_id, _ in found)])
    return sorted(found), newest_seen if until is None else max(after, until)


def alert_of(instance: dg.DagsterInstance, run_id: str, settings: Alerts) -> Alert | None:
    """What people shall be told of a run; None: nothing."""
    run = instance.get_run_by_id(run_id)
    if run is None:
        return None
    checks = _failed_checks(instance, run_id, settings)
    failed = run.status == dg.DagsterRunStatus.FAILURE and run.tags.get(_WILL_RETRY) != "true"
    facts = [("job", run.job_name), ("run", run_id), *_days(run.tags), *_shown(checks)]
    link = f"{settings.ui_url}/runs/{run_id}"
    if failed and "run_failure" in settings.occasions:
        step, reason = _failure(instance, run_id)
        return Alert(
            kind="run_failure", title=f"{run.job_name} failed" + (f" in {step}" if step else ""), facts=facts,
            reason=_told(reason), link=link,
            advice="Put right what it says and launch the run again: work that was done is kept.",
        )  # fmt: skip
    if not checks:
        return None
    first = checks[0]
    kind = (
        "check_failure" if any(check.severity == dg.AssetCheckSeverity.ERROR for check in checks) else "check_warning"
    )
    more = f" and {len(checks) - 1} more" if len(checks) > 1 else ""
    return Alert(
        kind=kind, title=f"check {first.check_name} of {first.asset_key.to_user_string()}{more} failed", facts=facts,
        reason=_told(first.description or "see the check's metadata"),
        link=f"{settings.ui_url}/assets/{'/'.join(first.asset_key.path)}?view=checks&checkDetail={first.check_name}",
        advice="The check shows what it expected and what it saw, and says how to put that right or to accept it.",
    )  # fmt: skip


def _failed_checks(instance: dg.DagsterInstance, run_id: str, settings: Alerts) -> list[dg.AssetCheckEvaluation]:
    wanted = {
        *([dg.AssetCheckSeverity.ERROR] if "check_failure" in settings.occasions else []),
        *([dg.AssetCheckSeverity.WARN] if "check_warning" in settings.occasions else []),
    }
    if not wanted:
        return []
    records = instance.get_records_for_run(run_id, of_type=DagsterEventType.ASSET_CHECK_EVALUATION).records
    found = [
        event.asset_check_evaluation_data for record in records if (event := record.event_log_entry.dagster_event)
    ]  # fmt: skip
    failed = [check for check in found if not check.passed and check.severity in wanted]
    return sorted(failed, key=lambda check: check.severity != dg.AssetCheckSeverity.ERROR)


def _failure(instance: dg.DagsterInstance, run_id: str) -> tuple[str, str]:
    """The step that failed, and what it said."""
    kinds = {DagsterEventType.STEP_FAILURE, DagsterEventType.RUN_FAILURE}
    for record in instance.get_records_for_run(run_id, of_type=kinds).records:
        event = record.event_log_entry.dagster_event
        if event is None:
            continue
        if event.is_step_failure:
            data = event.step_failure_data
            if data.user_failure_data and data.user_failure_data.description:
                return event.step_key or "", data.user_failure_data.description
            error = data.error and (data.error.cause or data.error)
            return event.step_key or "", error.message if error else event.message or ""
        return "", event.message or "the run ended without a word"
    return "", "the run ended without a word: its process was killed"


def _days(tags: Mapping[str, str]) -> Iterable[tuple[str, str]]:
    first = tags.get("dagster/partition") or tags.get("dagster/asset_partition_range_start")
    last = tags.get("dagster/asset_partition_range_end") or first
    if first:
        yield "days", first if first == last else f"{first} to {last}"


def _shown(checks: Sequence[dg.AssetCheckEvaluation]) -> Iterable[tuple[str, str]]:
    for check in checks[:_MOST_CHECKS]:
        where = f" ({check.partition})" if check.partition else ""
        text = redact(check.description or "").text.strip() or "failed"
        yield f"{check.asset_key.to_user_string()}: {check.check_name}{where}", " ".join(text.split())[:200]
    if len(checks) > _MOST_CHECKS:
        yield "more failed checks", str(len(checks) - _MOST_CHECKS)


def _told(reason: str) -> str:
    return redact(reason).text.strip()[:_MOST_CHARS]
