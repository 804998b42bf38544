"""The raw asset of drops: what webhooks and people dropped into the inbox."""

from collections.abc import Iterator
from datetime import date, datetime

import dagster as dg

from rag_pipeline.defs.dry_run import is_dry_run, observe_plan
from rag_pipeline.defs.failures import (
    fail_in_the_end,
    files_in_words,
    note_unread,
    quarantine,
    retry_if_none_was_read,
    stage_errors,
)
from rag_pipeline.defs.metadata import Metadata, Result, items_preview, results, size, table
from rag_pipeline.defs.partitions import days_of
from rag_pipeline.defs.resources import Pipeline
from rag_pipeline.errors import PartError, RagPipelineError
from rag_pipeline.lake.derive import fingerprints_of
from rag_pipeline.lake.store import Part
from rag_pipeline.model import Failure
from rag_pipeline.sources.drops.stage import STAGE, DropsReport, read_drops

DROPS_UNTIL = "rag/drops_until"
"""Tag of a run that takes only what had been dropped by this moment."""


def raw_drops_asset(partitions: dg.PartitionsDefinition) -> dg.AssetsDefinition:
    """`raw_webhook_drops`."""

    @dg.asset(
        name=STAGE, partitions_def=partitions, backfill_policy=dg.BackfillPolicy.single_run(),
        output_required=False, group_name="sources",
        kinds={"json", "parquet"}, owners=["team:knowledge"], tags={"stage": "raw", "source": "drops"},
        code_version="1", pool="drops",
        description=(
            "What waited in the inbox when the run was at it: GitHub deliveries (the thread they touch, fresh from "
            "GitHub or as far as they tell), JSON, NDJSON and plain files. Only today's partition takes drops: a drop "
            "belongs to the day it is taken in. Malformed ones go to rejected/ beside a reason."
        ),
    )  # fmt: skip
    def raw_webhook_drops(context: dg.AssetExecutionContext, pipeline: dg.ResourceParam[Pipeline]) -> Iterator[Result]:
        if is_dry_run(context):
            observe_plan(context, pipeline)
            return
        days = days_of(context)
        with stage_errors(context), pipeline.stage("raw_drops") as connection:
            now, until = pipeline.clock(), context.run.tags.get(DROPS_UNTIL)
            left_aside: dict[Part, str] = {}
            try:
                with files_in_words():
                    report = read_drops(
                        pipeline.settings, pipeline.lake(), days, access=pipeline.access,
                        progress=pipeline.progress(context), until=datetime.fromisoformat(until) if until else None,
                    )  # fmt: skip
            except PartError as error:
                # The drops wait, and nothing else does.
                assert isinstance(error.part, Part)
                report, left_aside = DropsReport(left=1), {error.part: str(error)}
            except RagPipelineError as error:
                # So do they where the inbox cannot be listed, or not be emptied.
                report = DropsReport(
                    left=1, unread=[error], failures=[_unread(pipeline, error, day=days.last, now=now)]
                )
            retry_if_none_was_read(context, report.unread, of=1)
            quarantine(
                pipeline, connection, report.failures, stage="raw_drops", days=days, items={}, left_aside=left_aside
            )
            note_unread(pipeline, [str(error) for error in report.unread], stage="raw_drops", of=1)
            pipeline.note_drops(connection, days, at=now, taken_for=report.taken_for, emptied=report.left == 0)
        for part, items in report.restored.items():
            context.log.warning(
                f"{part.tenant}/{part.repository} of {part.day} was damaged or gone: made again, with {items:,} items"
            )
        for name, reason in report.rejected:
            context.log.warning(f"rejected {name}: {reason}")
        pipeline.reports["raw_drops"] = report
        # Of other days than today nothing was read: what they hold is looked up.
        held = {STAGE: fingerprints_of(pipeline.lake(), STAGE, days)}
        by_day = {STAGE: report.rows_by_day[STAGE]}
        yield from results(context, days, {STAGE: _metadata(report)}, by_day, fingerprints=held)
        fail_in_the_end(context, pipeline)

    return raw_webhook_drops


def _unread(pipeline: Pipeline, error: RagPipelineError, *, day: date, now: datetime) -> Failure:
    return Failure(
        tenant=pipeline.settings.tenant, source_type="repository", source_id="inbox", stage="raw_drops",
        repository="inbox", day=day, source_updated_at=now, reason=str(error)[:500],
    )  # fmt: skip


def _metadata(report: DropsReport) -> Metadata:
    metadata: Metadata = {
        "drops_taken": dg.MetadataValue.int(report.taken),
        "drops_left": dg.MetadataValue.int(report.left),
        "drops_rejected": dg.MetadataValue.int(len(report.rejected)),
        "items": dg.MetadataValue.int(report.items[STAGE]),
        "tombstones": dg.MetadataValue.int(report.tombstones[STAGE]),
        "threads_from_api": dg.MetadataValue.int(report.threads_from_api),
        "threads_from_payload": dg.MetadataValue.int(report.threads_from_payload),
        "size": dg.MetadataValue.text(size(report.bytes)),
        "preview": items_preview(report.preview[STAGE]),
    }
    if report.pushed:
        metadata["pushed"] = dg.MetadataValue.text(", ".join(sorted(report.pushed)))
    if report.events:
        metadata["deliveries"] = table(("event", "deliveries"), report.events.most_common())
    if report.ignored:
        metadata["ignored"] = table(("why", "deliveries"), report.ignored.most_common())
    if report.restored:
        rows = [(str(p.day), p.tenant, p.repository, n) for p, n in report.restored.items()]
        metadata["restored_parts"] = table(("day", "tenant", "repository", "items"), rows[:50])
    if report.rejected:
        metadata["rejected"] = table(("file", "reason"), report.rejected[:50])
    if report.unreachable:
        metadata["github_not_reached"] = table(("reason",), [(reason,) for reason in report.unreachable])
    return metadata
