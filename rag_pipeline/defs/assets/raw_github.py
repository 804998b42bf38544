"""Raw assets of GitHub: whole pull requests and issues, as they stand now, on the day of their last change."""

from collections.abc import Iterator

import dagster as dg

from rag_pipeline.defs.dry_run import is_dry_run, observe_plan
from rag_pipeline.defs.failures import fail_in_the_end, note_unread, quarantine, retry_if_none_was_read, stage_errors
from rag_pipeline.defs.metadata import Metadata, Result, items_preview, plot_by_day, results, size, table
from rag_pipeline.defs.partitions import days_of
from rag_pipeline.defs.resources import Pipeline
from rag_pipeline.sources.github.stage import (
    GITHUB_SOURCE_VERSION,
    STAGES,
    GitHubReport,
    RepositoryReport,
    read_github,
)

_DESCRIPTIONS = {
    "github_pull_request": (
        "Pull requests of the configured GitHub repositories whose last change falls in these days, each whole: title, "
        "body, labels, every comment, review and review comment, changed files, and the issues it closes. GitHub is "
        "asked once per run, and only for what changed since the last one."
    ),
    "github_issue": (
        "Issues of the configured GitHub repositories whose last change falls in these days, each with all of its "
        "comments; deleted and transferred ones as tombstones."
    ),
}


def raw_github_assets(partitions: dg.PartitionsDefinition) -> dg.AssetsDefinition:
    """`raw_github_pull_requests` and `raw_github_issues`: one reading of GitHub gives both."""

    @dg.multi_asset(
        name="raw_github",
        specs=[
            dg.AssetSpec(
                stage, description=_DESCRIPTIONS[kind], group_name="sources", kinds={"github", "parquet"},
                owners=["team:knowledge"], tags={"stage": "raw", "source": "github"},
                code_version=GITHUB_SOURCE_VERSION, skippable=True, partitions_def=partitions,
            )
            for kind, stage in STAGES.items()
        ],
        can_subset=True,
        partitions_def=partitions,
        backfill_policy=dg.BackfillPolicy.single_run(),
        pool="github",
    )  # fmt: skip
    def raw_github(context: dg.AssetExecutionContext, pipeline: dg.ResourceParam[Pipeline]) -> Iterator[Result]:
        if is_dry_run(context):
            observe_plan(context, pipeline)
            return
        days = days_of(context)
        with stage_errors(context), pipeline.stage("raw_github") as connection:
            now = pipeline.clock()
            report = read_github(
                pipeline.settings, pipeline.lake(), days, access=pipeline.access,
                progress=pipeline.progress(context), ask=not pipeline.github_was_asked,
            )  # fmt: skip
            sources = len(pipeline.settings.github_repositories)
            retry_if_none_was_read(context, report.unread, of=sources)
            report.failures += pipeline.github_unread
            pipeline.note_readings(
                connection, "github", days, at=now, failures=report.failures,
                asked=lambda _: not pipeline.github_was_asked,
            )  # fmt: skip
            threads = {(f.repository.tenant, f.repository.name): f.threads for f in report.repositories}
            failed = quarantine(pipeline, connection, report.failures, stage="raw_github", days=days, items=threads)
            unread = [*(f.reason for f in pipeline.github_unread), *(str(error) for error in report.unread)]
            note_unread(pipeline, unread, stage="raw_github", of=sources)
        for failure in report.failures:
            context.log.warning(f"{failure.repository}: {failure.reason}")
        pipeline.reports["raw_github"] = report
        metadata = {stage: _metadata(report, kind) | failed for kind, stage in STAGES.items()}
        by_day = {stage: report.rows_by_day[kind] for kind, stage in STAGES.items()}
        held = {stage: report.fingerprints[kind] for kind, stage in STAGES.items()}
        yield from results(context, days, metadata, by_day, fingerprints=held)
        fail_in_the_end(context, pipeline)

    return raw_github


def _metadata(report: GitHubReport, kind: str) -> Metadata:
    usages = [found.usage for found in report.repositories if found.usage]
    limited = [usage for usage in usages if usage.remaining is not None and usage.limit]
    metadata: Metadata = {
        "items": dg.MetadataValue.int(report.items[kind]),
        "tombstones": dg.MetadataValue.int(report.tombstones[kind]),
        "unchanged_parts": dg.MetadataValue.int(report.fresh_parts),
        "size": dg.MetadataValue.text(size(report.bytes)),
        "requests": dg.MetadataValue.int(sum(usage.requests for usage in usages)),
        "requests_not_modified": dg.MetadataValue.int(sum(usage.not_modified for usage in usages)),
        "waited_seconds": dg.MetadataValue.float(round(sum((usage.waited_s for usage in usages), 0.0), 1)),
    }
    if limited:
        scarcest = min(limited, key=lambda usage: (usage.remaining or 0) / (usage.limit or 1))
        metadata["quota_left"] = dg.MetadataValue.int(scarcest.remaining or 0)
        metadata["quota"] = dg.MetadataValue.int(scarcest.limit or 0)
        if scarcest.resets_at:
            metadata["quota_resets_at"] = dg.MetadataValue.timestamp(scarcest.resets_at)
    return metadata | {
        "repositories": table(("repository", "threads", "requests", "outcome"), [_row(f) for f in report.repositories]),
        "preview": items_preview(report.preview[kind]),
        **plot_by_day("items per day", report.rows_by_day[kind]),
    }


def _row(found: RepositoryReport) -> tuple[object, ...]:
    name = found.repository.name if found.full_name in ("", found.repository.name) else (
        f"{found.repository.name} ({found.full_name})"
    )  # fmt: skip
    outcome = found.outcome if found.asked else f"{found.outcome} (asked when the run was planned)"
    return (name, found.threads, found.usage.requests if found.usage else 0, outcome)
