"""Which PostgreSQL this process uses: `DATABASE_URL` when set, else the embedded server, started when needed."""

from __future__ import annotations

from rag_pipeline.embedded.postgres import EmbeddedPostgres
from rag_pipeline.errors import DatabaseUnavailable
from rag_pipeline.settings import Settings


def database_url(settings: Settings) -> str:
    """The knowledge database's address, for psycopg.

    Raises:
        DatabaseUnavailable: the embedded server does not start.
    """
    if settings.database_url:
        return settings.database_url
    server = EmbeddedPostgres(settings.home)
    server.start()
    return server.url()


def existing_database_url(settings: Settings) -> str:
    """As `database_url`, for those who only read: an embedded server that was never set up stays so.

    Raises:
        DatabaseUnavailable: there is none yet, or it does not start.
    """
    if not settings.database_url and not EmbeddedPostgres(settings.home).exists():
        raise DatabaseUnavailable(
            f"there is no index in {settings.home} yet: run `rag-pipeline up` there, or set DATABASE_URL or "
            "RAG_HOME to where one is"
        )
    return database_url(settings)
