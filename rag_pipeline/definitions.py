"""The composition root: settings to Dagster definitions."""

import warnings

import dagster as dg

from rag_pipeline.defs.assets import (
    chunks_asset,
    documents_asset,
    embeddings_asset,
    knowledge_index_asset,
    maintenance_asset,
    pipeline_report_asset,
    query_asset,
    raw_drops_asset,
    raw_git_assets,
    raw_github_assets,
    raw_kind_assets,
    reconciliation_asset,
    retrieval_evaluation_asset,
)
from rag_pipeline.defs.assets.maintenance import MAINTENANCE
from rag_pipeline.defs.assets.reconciliation import RECONCILIATION
from rag_pipeline.defs.assets.report import PIPELINE_REPORT
from rag_pipeline.defs.automation import (
    alerts_sensor,
    daily_report,
    drop_sensor,
    freshness_check,
    freshness_sensor,
    given_up_alerts,
    index_freshness_policy,
    maintenance_schedule,
    quarantine_sensor,
    refresh_schedule,
    weekly_reconciliation,
)
from rag_pipeline.defs.catalog import catalogued
from rag_pipeline.defs.checks import (
    chunks_checks,
    documents_checks,
    embeddings_checks,
    knowledge_index_checks,
    raw_checks,
)
from rag_pipeline.defs.jobs import build_space_job
from rag_pipeline.defs.partitions import backfill_policy, daily_partitions
from rag_pipeline.defs.resources import Pipeline, during_runs
from rag_pipeline.quality.suites import require_known, rules_by_stage
from rag_pipeline.settings import Settings, load_settings
from rag_pipeline.sources.git.stage import STAGES as GIT_STAGES
from rag_pipeline.sources.github.stage import STAGES as GITHUB_STAGES
from rag_pipeline.sources.kinds import kinds, stage_of
from rag_pipeline.sources.kinds.registry import require_valid

# Backfill policies, owners and kinds are marked beta; the pinned version is tested with them.
warnings.filterwarnings("ignore", category=dg.BetaWarning)

REFRESH_JOB = "refresh"
RECONCILE_JOB = "reconcile"
REPORT_JOB = "report"
MAINTAIN_JOB = "maintain"


def build_defs(settings: Settings, *, pipeline: Pipeline | dg.ResourceDefinition | None = None) -> dg.Definitions:
    """All definitions of one code location; `pipeline` overrides what assets get from outside (tests, the CLI)."""
    require_valid(settings)
    require_known(settings.quality.accepted, rules_by_stage(settings))
    daily = daily_partitions(settings)
    if not isinstance(pipeline, dg.ResourceDefinition):
        shared = pipeline or Pipeline(settings=settings)
        pipeline = during_runs(lambda: shared)
    assets = [
        raw_git_assets(daily),
        raw_github_assets(daily),
        raw_drops_asset(daily),
        *raw_kind_assets(daily),
        documents_asset(daily),
        chunks_asset(daily),
        embeddings_asset(daily),
        knowledge_index_asset(daily, freshness_policy=index_freshness_policy(settings.freshness)),
        query_asset(settings),
        retrieval_evaluation_asset(settings),
        reconciliation_asset(),
        pipeline_report_asset(),
        maintenance_asset(),
    ]
    policy = backfill_policy(settings)
    cut = [asset.with_attributes(backfill_policy=policy) if asset.partitions_def else asset for asset in assets]
    refresh = dg.define_asset_job(
        REFRESH_JOB,
        selection=_of_refresh(settings),
        description="Brings the index up to date for the chosen days: sources, documents, chunks, embeddings, index.",
    )
    reconcile = dg.define_asset_job(
        RECONCILE_JOB,
        selection=dg.AssetSelection.assets(RECONCILIATION),
        description="Compares GitHub with the index: what was deleted or transferred there leaves it.",
    )
    report = dg.define_asset_job(
        REPORT_JOB,
        selection=dg.AssetSelection.assets(PIPELINE_REPORT),
        description="Looks at the whole: what the index holds, how it grew, how fresh, how good and how costly it is.",
    )
    maintain = dg.define_asset_job(
        MAINTAIN_JOB,
        selection=dg.AssetSelection.assets(MAINTENANCE),
        description="Keeps the index small and fast: removes what nothing needs any more, rebuilds what needs it.",
    )
    return dg.Definitions(
        assets=catalogued(cut, settings),
        asset_checks=[
            raw_checks(settings),
            documents_checks(settings),
            chunks_checks(settings),
            embeddings_checks(settings),
            knowledge_index_checks(settings),
            freshness_check(settings),
        ],
        jobs=[refresh, reconcile, maintain, report, build_space_job()],
        sensors=[
            drop_sensor(REFRESH_JOB),
            freshness_sensor(REFRESH_JOB, settings),
            quarantine_sensor(REFRESH_JOB),
            *alerts_sensor(settings, more=[given_up_alerts]),
        ],
        schedules=[
            refresh_schedule(REFRESH_JOB, settings),
            weekly_reconciliation(RECONCILE_JOB),
            maintenance_schedule(MAINTAIN_JOB, settings),
            daily_report(REPORT_JOB),
        ],
        resources={"pipeline": pipeline},
        # The stages of a run follow each other and do their own batching: a process per stage would only cost start-up.
        executor=dg.in_process_executor,
    )


def _of_refresh(settings: Settings) -> dg.AssetSelection:
    selection = dg.AssetSelection.groups("sources", "knowledge") - _unconfigured(settings)
    return selection if settings.quality.in_refresh else selection.without_checks()


def _unconfigured(settings: Settings) -> dg.AssetSelection:
    """Raw assets that would have nothing to read: every asset of a run costs Dagster an event for each partition."""
    names = [] if settings.github_repositories else list(GITHUB_STAGES.values())
    names += [] if settings.git_repositories or not settings.github_repositories else list(GIT_STAGES.values())
    names += [stage_of(kind) for kind in kinds() if not settings.sources.get(kind.name)]
    return dg.AssetSelection.assets(*names)


@dg.definitions
def defs() -> dg.Definitions:
    """What Dagster loads; made when it is asked for, so that importing this module needs no configuration."""
    return build_defs(load_settings())
