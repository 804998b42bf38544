"""The raw assets of further kinds of sources: one for each that is registered."""

from collections.abc import Iterator
from typing import Any

import dagster as dg

from rag_pipeline.defs.dry_run import is_dry_run, observe_plan
from rag_pipeline.defs.failures import fail_in_the_end, note_unread, quarantine, retry_if_none_was_read, stage_errors
from rag_pipeline.defs.metadata import Metadata, Result, items_preview, plot_by_day, results, size, table
from rag_pipeline.defs.partitions import days_of
from rag_pipeline.defs.resources import Pipeline
from rag_pipeline.sources.kinds import Outside, SourceKind, kinds, stage_of
from rag_pipeline.sources.kinds.stage import KindReport, read_kind


def raw_kind_assets(partitions: dg.PartitionsDefinition) -> list[dg.AssetsDefinition]:
    """`raw_NAME` of every kind that is registered."""
    return [_raw_kind_asset(kind, partitions) for kind in kinds()]


def _raw_kind_asset(kind: SourceKind[Any], partitions: dg.PartitionsDefinition) -> dg.AssetsDefinition:
    stage = stage_of(kind)

    @dg.asset(
        name=stage, partitions_def=partitions, backfill_policy=dg.BackfillPolicy.single_run(), group_name="sources",
        output_required=False, kinds={"parquet"}, owners=["team:knowledge"], tags={"stage": "raw", "source": kind.name},
        code_version=kind.version, pool=kind.name, description=kind.description,
    )  # fmt: skip
    def raw(context: dg.AssetExecutionContext, pipeline: dg.ResourceParam[Pipeline]) -> Iterator[Result]:
        if is_dry_run(context):
            observe_plan(context, pipeline)
            return
        days = days_of(context)
        with stage_errors(context), pipeline.stage(stage) as connection:
            now = pipeline.clock()
            report = read_kind(
                kind, pipeline.settings, pipeline.lake(), days, clock=pipeline.clock,
                outside=Outside(base=pipeline.settings.base, environ=pipeline.environ),
                progress=pipeline.progress(context),
            )  # fmt: skip
            retry_if_none_was_read(context, report.unread, of=len(report.blocks))
            pipeline.note_readings(connection, kind.name, days, at=now, failures=report.failures)
            listed = {(found.block.tenant, found.block.name): found.items for found in report.blocks}
            failed = quarantine(pipeline, connection, report.failures, stage=stage, days=days, items=listed)
            note_unread(pipeline, [str(error) for error in report.unread], stage=stage, of=len(report.blocks))
        for failure in report.failures:
            context.log.warning(f"{failure.source_id}: {failure.reason}")
        pipeline.reports[stage] = report
        metadata = _metadata(report, kind.name) | failed
        held = {stage: report.fingerprints[kind.name]}
        yield from results(context, days, {stage: metadata}, {stage: report.rows_by_day[kind.name]}, fingerprints=held)
        fail_in_the_end(context, pipeline)

    return raw


def _metadata(report: KindReport, kind: str) -> Metadata:
    blocks = [
        (found.block.name, found.block.tenant, found.items, found.observed.changed, found.observed.removed,
         found.observed.withheld)
        for found in report.blocks
    ]  # fmt: skip
    return {
        "items": dg.MetadataValue.int(report.items[kind]),
        "tombstones": dg.MetadataValue.int(report.tombstones[kind]),
        "unchanged_parts": dg.MetadataValue.int(report.fresh_parts),
        "size": dg.MetadataValue.text(size(report.bytes)),
        "listings": table(("source", "tenant", "items of these days", "changed", "removed", "withheld"), blocks),
        "preview": items_preview(report.preview[kind]),
        **plot_by_day("items per day", report.rows_by_day[kind]),
    }
