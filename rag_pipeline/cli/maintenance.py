"""The maintenance job in this process, recorded in Dagster's storage like any other run, and what it did."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, cast

from rag_pipeline.cli.console import Watch, out, rows_table
from rag_pipeline.cli.session import AsJson, enter_dagster, print_json, settings_of_process
from rag_pipeline.errors import RagPipelineError

if TYPE_CHECKING:
    from rag_pipeline.index.maintenance import MaintenanceReport
    from rag_pipeline.progress import Progress
    from rag_pipeline.settings import Settings


def maintain(as_json: AsJson = False) -> None:
    """Merge segments, remove what nothing needs any more, vacuum tables and rebuild indexes where it is worth it."""
    from rag_pipeline.cli.runs import prepare

    settings = settings_of_process()
    enter_dagster(settings)
    prepare(settings)
    with Watch() as watch:
        report = run_maintenance(settings, watch=watch)
    if as_json:
        print_json(asdict(report))
    else:
        print_maintenance(report)
    require_all_done(report)


def run_maintenance(settings: Settings, *, watch: Progress) -> MaintenanceReport:
    """Run it; what it did, and what of it could not be done.

    Raises:
        RagPipelineError: the run failed before it could say.
    """
    from rag_pipeline.cli.dagster_storage import opened_instance
    from rag_pipeline.cli.processes import process_tags
    from rag_pipeline.cli.runs import reason_of
    from rag_pipeline.definitions import MAINTAIN_JOB, build_defs
    from rag_pipeline.defs.resources import Pipeline

    pipeline = Pipeline(settings=settings, watch=watch)
    with opened_instance() as instance:
        result = build_defs(settings, pipeline=pipeline).resolve_job_def(MAINTAIN_JOB).execute_in_process(
            instance=instance, raise_on_error=False, tags=process_tags(),
            run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
        )  # fmt: skip
    if "maintenance" not in pipeline.reports:
        raise reason_of(result)
    return cast("MaintenanceReport", pipeline.reports["maintenance"])


def print_maintenance(report: MaintenanceReport) -> None:
    """What was done, and how large the index is."""
    if report.actions:
        rows = [(a.what, a.why, a.rows, a.bytes, round(a.seconds, 1)) for a in report.actions]
        out.print(rows_table("", ("action", "why", "rows", "bytes freed", "seconds"), rows))
    else:
        out.print("nothing to do")
    before, after = (sum(table.bytes for table in tables) for tables in (report.before, report.after))
    out.print(f"\nthe index takes {after / 1e6:,.1f} MB (before: {before / 1e6:,.1f} MB)")


def require_all_done(report: MaintenanceReport) -> None:
    """After everything else is done and shown: a step that could not be done is an error.

    Raises:
        RagPipelineError: names the first, and how many there are.
    """
    if report.problems:
        more = f" (and {len(report.problems) - 1} more)" if len(report.problems) > 1 else ""
        raise RagPipelineError(f"{report.problems[0]}{more}; the other steps are done")
