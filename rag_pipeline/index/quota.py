"""How many requests each tenant was served in a month."""

from __future__ import annotations

from datetime import date

from rag_pipeline.index.database import Connection
from rag_pipeline.index.sql_files import queries


def requests_served(connection: Connection, *, tenant: str, month: date) -> int:
    """The requests that are on record; `month` is its first day (UTC)."""
    row = connection.execute(queries("quota")["served"], {"tenant": tenant, "month": month}).fetchone()
    return int(row[0]) if row else 0


def add_requests(connection: Connection, *, tenant: str, month: date, requests: int) -> int:
    """Count some more; returns how many that makes, whoever counted them."""
    values = {"tenant": tenant, "month": month, "requests": requests}
    row = connection.execute(queries("quota")["add"], values).fetchone()
    assert row is not None
    return int(row[0])
