"""Which PostgreSQL this process uses: `DATABASE_URL` when set, else the embedded server, started when needed."""

from __future__ import annotations

from rag_pipeline.embedded.postgres import EmbeddedPostgres
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
