"""Asset definitions, a module per stage. Assets wire: they call a stage, quarantine failures and report metadata."""

from rag_pipeline.defs.assets.evaluation import retrieval_evaluation_asset
from rag_pipeline.defs.assets.index import knowledge_index_asset
from rag_pipeline.defs.assets.knowledge import chunks_asset, documents_asset, embeddings_asset
from rag_pipeline.defs.assets.maintenance import maintenance_asset
from rag_pipeline.defs.assets.query import query_asset
from rag_pipeline.defs.assets.raw_drops import raw_drops_asset
from rag_pipeline.defs.assets.raw_git import raw_git_assets
from rag_pipeline.defs.assets.raw_github import raw_github_assets
from rag_pipeline.defs.assets.raw_kinds import raw_kind_assets
from rag_pipeline.defs.assets.reconciliation import reconciliation_asset
from rag_pipeline.defs.assets.report import pipeline_report_asset

POOLS = ("git", "github", "drops", "embedding", "maintenance")
"""Dagster's concurrency pools that the assets use; their limits are set in dagster.yaml or in the UI."""

__all__ = [
    "POOLS",
    "chunks_asset",
    "documents_asset",
    "embeddings_asset",
    "knowledge_index_asset",
    "maintenance_asset",
    "pipeline_report_asset",
    "query_asset",
    "raw_drops_asset",
    "raw_git_assets",
    "raw_github_assets",
    "raw_kind_assets",
    "reconciliation_asset",
    "retrieval_evaluation_asset",
]
