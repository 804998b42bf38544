"""Raw assets of git: what the repositories gave, unchanged."""

from collections import Counter
from collections.abc import Iterator

import dagster as dg

from rag_pipeline.defs import plots
from rag_pipeline.defs.dry_run import is_dry_run, observe_plan
from rag_pipeline.defs.failures import fail_in_the_end, note_unread, quarantine, retry_if_none_was_read, stage_errors
from rag_pipeline.defs.metadata import Metadata, Result, counts, items_preview, plot_by_day, results, size, table
from rag_pipeline.defs.partitions import days_of
from rag_pipeline.defs.resources import Pipeline
from rag_pipeline.loading import load_in_background
from rag_pipeline.quality import judging
from rag_pipeline.sources.git.reader import GIT_SOURCE_VERSION
from rag_pipeline.sources.git.stage import STAGES, RawReport, is_first_fetch, read_git

_DESCRIPTIONS = {
    "docs": (
        "Documentation files (Markdown, reStructuredText, AsciiDoc, text, notebooks, HTML) of the configured git "
        "repositories that changed in these days, each once, on the day of its last change; deletions and renames as "
        "tombstones. The first partition also holds everything older. One Parquet file per repository and day."
    ),
    "code": (
        "Source code of the configured git repositories that changed in these days, each file once, on the day of its "
        "last change; binary, generated, minified, vendored and too large files are skipped and counted."
    ),
}


def raw_git_assets(partitions: dg.PartitionsDefinition) -> dg.AssetsDefinition:
    """`raw_docs` and `raw_code`: one walk over the history gives both."""

    @dg.multi_asset(
        name="raw_git",
        specs=[
            dg.AssetSpec(
                stage, description=_DESCRIPTIONS[kind], group_name="sources", kinds={"git", "parquet"},
                owners=["team:knowledge"], tags={"stage": "raw", "source": "git"}, code_version=GIT_SOURCE_VERSION,
                skippable=True, partitions_def=partitions,
            )
            for kind, stage in STAGES.items()
        ],
        can_subset=True,
        partitions_def=partitions,
        backfill_policy=dg.BackfillPolicy.single_run(),
        pool="git",
    )  # fmt: skip
    def raw_git(context: dg.AssetExecutionContext, pipeline: dg.ResourceParam[Pipeline]) -> Iterator[Result]:
        if is_dry_run(context):
            observe_plan(context, pipeline)
            return
        days = days_of(context)
        if is_first_fetch(pipeline.settings):
            # We shall wait for git, and then have much to judge and to draw.
            load_in_background(judging.ready, plots.load)
        with stage_errors(context), pipeline.stage("raw") as connection:
            now = pipeline.clock()
            report = read_git(
                pipeline.settings, pipeline.lake(), days, now=now, progress=pipeline.progress(context),
                fetched={(key.tenant, key.repository) for key in pipeline.git_read},
            )  # fmt: skip
            sources = len(pipeline.settings.git_repositories)
            retry_if_none_was_read(context, report.unread, of=sources)
            pipeline.note_readings(
                connection, "git", days, at=now, failures=report.failures,
                asked=lambda key: key not in pipeline.git_read,
            )  # fmt: skip
            pipeline.note_git(connection, days, report)
            failed = quarantine(pipeline, connection, report.failures, stage="raw", days=days, items={})
            note_unread(pipeline, [str(error) for error in report.unread], stage="raw", of=sources)
        pipeline.reports["raw"] = report
        metadata = {stage: _metadata(report, kind) | failed for kind, stage in STAGES.items()}
        by_day = {stage: report.rows_by_day[kind] for kind, stage in STAGES.items()}
        held = {stage: report.fingerprints[kind] for kind, stage in STAGES.items()}
        yield from results(context, days, metadata, by_day, fingerprints=held)
        fail_in_the_end(context, pipeline)

    return raw_git


def _metadata(report: RawReport, kind: str) -> Metadata:
    gits = [found.git for found in report.repositories]
    skipped = sum((git.skipped for git in gits), Counter[str]())
    repositories = [
        (
            found.repository.name, found.repository.tenant, found.commits, found.git.items[kind],
            found.git.tombstones[kind], found.git.rewrites,
            "empty repository" if found.empty else found.position.commit[:12] if found.position else "no change",
        )
        for found in report.repositories
    ]  # fmt: skip
    return {
        "items": dg.MetadataValue.int(sum(git.items[kind] for git in gits)),
        "tombstones": dg.MetadataValue.int(sum(git.tombstones[kind] for git in gits)),
        "moved": dg.MetadataValue.int(sum(git.moves for git in gits)),
        "bytes_read": dg.MetadataValue.text(size(sum(git.bytes for git in gits))),
        "unchanged_parts": dg.MetadataValue.int(report.fresh_parts),
        "skipped": counts(skipped),
        "repositories": table(
            ("repository", "tenant", "commits", "items", "tombstones", "rewrites", "up to"), repositories
        ),
        "preview": items_preview(report.preview[kind]),
        **plot_by_day("items per day", report.rows_by_day[kind]),
    }
