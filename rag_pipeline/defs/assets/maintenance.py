"""The upkeep of the index: what may go goes, what is out of order is put in order."""

from typing import Any

import dagster as dg

from rag_pipeline.defs.failures import stage_errors
from rag_pipeline.defs.metadata import Metadata, Result, size, table
from rag_pipeline.defs.resources import Pipeline
from rag_pipeline.documents.redaction import redact
from rag_pipeline.index.maintenance import MaintenanceReport
from rag_pipeline.refresh.maintenance import maintain_index, retire

MAINTENANCE = "index_maintenance"


def maintenance_asset() -> dg.AssetsDefinition:
    """`index_maintenance`: unpartitioned, for a weekly schedule or by hand."""

    @dg.asset(
        name=MAINTENANCE, group_name="maintenance", kinds={"postgres"}, owners=["team:knowledge"],
        tags={"stage": "maintenance"}, code_version="1", pool="maintenance",
        description=(
            "Takes out what is older than [retention] keeps, merges segments of the lexical index, removes vectors, "
            "tombstones, records and temporary files that nothing needs any more, vacuums tables and rebuilds indexes "
            "where that is worth it. Says what it did and why. Safe beside running refreshes, as often as you like."
        ),
    )  # fmt: skip
    def index_maintenance(context: dg.AssetExecutionContext, pipeline: dg.ResourceParam[Pipeline]) -> Result:
        settings, lake, now = pipeline.settings, pipeline.lake(), pipeline.clock()
        with stage_errors(context), pipeline.connection() as connection:
            expired, problems = retire(settings, lake, connection=connection, now=now)
            with pipeline.stage("maintenance"):
                report = maintain_index(
                    settings, lake, connection=connection, now=now, progress=pipeline.progress(context)
                )
        report.actions, report.problems = [*expired, *report.actions], [*problems, *report.problems]
        for action in report.actions:
            context.log.info(f"{action.what}: {action.why} ({action.seconds:.1f} s)")
        for problem in report.problems:
            context.log.warning(problem)
        pipeline.reports["maintenance"] = report
        if report.problems:
            # All steps had their turn; what could not be done must not go unseen.
            description = redact("; ".join(report.problems)).text
            raise dg.Failure(description=description, metadata=_metadata(report), allow_retries=False)
        return dg.MaterializeResult(metadata=_metadata(report))

    return index_maintenance


def _metadata(report: MaintenanceReport) -> Metadata:
    actions: list[tuple[Any, ...]] = [
        (a.what, a.why, a.rows or "", size(a.bytes) if a.bytes else "", f"{a.seconds:.1f}") for a in report.actions
    ]
    after = {t.name: t for t in report.after}
    sizes: list[tuple[Any, ...]] = [
        (t.name, size(t.bytes), size(now.bytes), f"{now.rows:,}", f"{now.dead:,}")
        for t in report.before
        if (now := after.get(t.name)) is not None
    ]
    metadata: Metadata = {
        "actions": table(("action", "why", "rows", "freed", "seconds"), actions)
        if actions
        else dg.MetadataValue.text("nothing to do"),
        "rows_removed": dg.MetadataValue.int(report.rows),
        "size_before": dg.MetadataValue.text(size(sum(t.bytes for t in report.before))),
        "size_after": dg.MetadataValue.text(size(sum(t.bytes for t in report.after))),
        "tables": table(("table", "before", "after", "rows", "dead rows"), sizes),
    }
    if report.problems:
        metadata["problems"] = table(("not done",), [(problem,) for problem in report.problems])
    return metadata
