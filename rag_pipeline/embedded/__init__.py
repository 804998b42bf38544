"""The supervised local PostgreSQL behind the one-command set-up."""

from rag_pipeline.embedded.address import database_url, existing_database_url
from rag_pipeline.embedded.postgres import EmbeddedPostgres

__all__ = ["EmbeddedPostgres", "database_url", "existing_database_url"]
