"""The composition root: settings to Dagster definitions."""

import warnings

import dagster as dg

from rag_pipeline.defs.assets import (
    chunks_asset,
    documents_asset,
    embeddings_asset,
    knowledge_index_asset,
    query_asset,
    raw_git_assets,
)
from rag_pipeline.defs.partitions import daily_partitions
from rag_pipeline.defs.resources import Pipeline
from rag_pipeline.settings import Settings, load_settings

# Backfill policies, owners and kinds are marked beta; the pinned version is tested with them.
warnings.filterwarnings("ignore", category=dg.BetaWarning)

REFRESH_JOB = "refresh"


def build_defs(settings: Settings, *, pipeline: Pipeline | None = None) -> dg.Definitions:
    """All definitions of one code location; `pipeline` overrides what assets get from outside (tests, the CLI)."""
    daily = daily_partitions(settings)
    assets = [
        raw_git_assets(daily),
        documents_asset(daily),
        chunks_asset(daily),
        embeddings_asset(daily),
        knowledge_index_asset(daily),
        query_asset(settings),
    ]
    refresh = dg.define_asset_job(
        REFRESH_JOB,
        selection=dg.AssetSelection.groups("sources", "knowledge"),
        description="Brings the index up to date for the chosen days: sources, documents, chunks, embeddings, index.",
    )
    return dg.Definitions(
        assets=assets,
        jobs=[refresh],
        resources={"pipeline": pipeline or Pipeline(settings=settings)},
        # The stages of a run follow each other and do their own batching: a process per stage would only cost start-up.
        executor=dg.in_process_executor,
    )


@dg.definitions
def defs() -> dg.Definitions:
    """What Dagster loads; made when it is asked for, so that importing this module needs no configuration."""
    return build_defs(load_settings())
