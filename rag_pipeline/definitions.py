"""The composition root: settings to Dagster definitions."""

import warnings

import dagster as dg

from rag_pipeline.defs.assets import (
    chunks_asset,
    documents_asset,
    embeddings_asset,
    knowledge_index_asset,
    query_asset,
    raw_drops_asset,
    raw_git_assets,
    raw_github_assets,
    reconciliation_asset,
    retrieval_evaluation_asset,
)
from rag_pipeline.defs.automation import drop_sensor, weekly_reconciliation
from rag_pipeline.defs.checks import (
    chunks_checks,
    documents_checks,
    embeddings_checks,
    knowledge_index_checks,
    raw_checks,
)
from rag_pipeline.defs.jobs import build_space_job
from rag_pipeline.defs.partitions import daily_partitions
from rag_pipeline.defs.resources import Pipeline
from rag_pipeline.quality.suites import require_known, rules_by_stage
from rag_pipeline.settings import Settings, load_settings
from rag_pipeline.sources.git.stage import STAGES as GIT_STAGES
from rag_pipeline.sources.github.stage import STAGES as GITHUB_STAGES

# Backfill policies, owners and kinds are marked beta; the pinned version is tested with them.
warnings.filterwarnings("ignore", category=dg.BetaWarning)

REFRESH_JOB = "refresh"
RECONCILE_JOB = "reconcile"


def build_defs(settings: Settings, *, pipeline: Pipeline | None = None) -> dg.Definitions:
    """All definitions of one code location; `pipeline` overrides what assets get from outside (tests, the CLI)."""
    require_known(settings.quality.accepted, rules_by_stage(settings))
    daily = daily_partitions(settings)
    assets = [
        raw_git_assets(daily),
        raw_github_assets(daily),
        raw_drops_asset(daily),
        documents_asset(daily),
        chunks_asset(daily),
        embeddings_asset(daily),
        knowledge_index_asset(daily),
        query_asset(settings),
        retrieval_evaluation_asset(settings),
        reconciliation_asset(),
    ]
    refresh = dg.define_asset_job(
        REFRESH_JOB,
        selection=dg.AssetSelection.groups("sources", "knowledge") - _unconfigured(settings),
        description="Brings the index up to date for the chosen days: sources, documents, chunks, embeddings, index.",
    )
    reconcile = dg.define_asset_job(
        RECONCILE_JOB,
        selection=dg.AssetSelection.groups("maintenance"),
        description="Compares GitHub with the index: what was deleted or transferred there leaves it.",
    )
    return dg.Definitions(
        assets=assets,
        asset_checks=[
            raw_checks(settings),
            documents_checks(settings),
            chunks_checks(settings),
            embeddings_checks(settings),
            knowledge_index_checks(settings),
        ],
        jobs=[refresh, reconcile, build_space_job()],
        sensors=[drop_sensor(REFRESH_JOB)],
        schedules=[weekly_reconciliation(RECONCILE_JOB)],
        resources={"pipeline": pipeline or Pipeline(settings=settings)},
        # The stages of a run follow each other and do their own batching: a process per stage would only cost start-up.
        executor=dg.in_process_executor,
    )


def _unconfigured(settings: Settings) -> dg.AssetSelection:
    """Raw assets that would have nothing to read: every asset of a run costs Dagster an event for each partition."""
    names = [] if settings.github_repositories else list(GITHUB_STAGES.values())
    names += [] if settings.git_repositories or not settings.github_repositories else list(GIT_STAGES.values())
    return dg.AssetSelection.assets(*names)


@dg.definitions
def defs() -> dg.Definitions:
    """What Dagster loads; made when it is asked for, so that importing this module needs no configuration."""
    return build_defs(load_settings())
