"""The reconciliation job in this process, recorded in Dagster's storage like any other run, and what it found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from rag_pipeline.cli.console import out, rows_table
from rag_pipeline.cli.dagster_storage import opened_instance
from rag_pipeline.cli.processes import process_tags
from rag_pipeline.cli.runs import reason_of
from rag_pipeline.errors import SourceNotFound
from rag_pipeline.progress import Progress
from rag_pipeline.settings import Settings
from rag_pipeline.sources.github.client import QUOTA_REACHED


def run_reconciliation(
    settings: Settings, *, confirm: bool, repositories: Sequence[str], watch: Progress
) -> list[dict[str, Any]]:
    """Run it; what it found, an entry per repository.

    Raises:
        RagPipelineError: the run failed; the error is the one that made it fail.
    """
    from rag_pipeline.definitions import RECONCILE_JOB, build_defs
    from rag_pipeline.defs.assets.reconciliation import RECONCILIATION
    from rag_pipeline.defs.resources import Pipeline

    pipeline = Pipeline(settings=settings, watch=watch)
    config = {"confirm_removals": confirm, "repositories": list(repositories)}
    with opened_instance() as instance:
        result = build_defs(settings, pipeline=pipeline).resolve_job_def(RECONCILE_JOB).execute_in_process(
            instance=instance, raise_on_error=False, tags=process_tags(),
            run_config={
                "ops": {RECONCILIATION: {"config": config}},
                "loggers": {"console": {"config": {"log_level": "CRITICAL"}}},
            },
        )  # fmt: skip
    if not result.success:
        raise reason_of(result)
    return cast("list[dict[str, Any]]", pipeline.reports["reconciliation"])


def print_reconciliation(rows: Sequence[dict[str, Any]]) -> None:
    """What was found, a table per repository."""
    for row in rows:
        shown = [(name.replace("_", " "), str(value)) for name, value in row.items() if value not in ("", None)]
        if QUOTA_REACHED in row["outcome"]:
            left = f"{row['threads_left']:,} threads that were found changed, and what was not compared yet"
            shown.append(("left to the next run", left))
        out.print(rows_table("", ("reconciliation", ""), shown))


def require_all_compared(rows: Sequence[dict[str, Any]]) -> None:
    """After everything else is done and shown: a repository that was not compared to the end is an error.

    Where GitHub's quota ended the comparison, it is none: the next one goes on from there.

    Raises:
        SourceNotFound: names the first, and how many there are.
    """
    from rag_pipeline.defs.assets.reconciliation import COMPLETE

    unfinished = [row for row in rows if row["outcome"] != COMPLETE and QUOTA_REACHED not in row["outcome"]]
    if unfinished:
        first = unfinished[0]
        more = f" (and {len(unfinished) - 1} more, see `rag-pipeline status`)" if len(unfinished) > 1 else ""
        rest = "; the other repositories are compared" if len(rows) > len(unfinished) else ""
        raise SourceNotFound(f"{first['repository']}: {first['outcome']}{more}{rest}")
