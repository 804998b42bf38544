"""Asset checks, a module per kind of stage. Checks wire: a room of `quality` judges, this reports to Dagster."""

from rag_pipeline.defs.checks.index_stages import embeddings_checks, knowledge_index_checks
from rag_pipeline.defs.checks.lake_stages import chunks_checks, documents_checks, raw_checks

__all__ = ["chunks_checks", "documents_checks", "embeddings_checks", "knowledge_index_checks", "raw_checks"]
