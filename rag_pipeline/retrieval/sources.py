"""What there is to search: repositories and kinds of sources, with how much of them is indexed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from rag_pipeline.index.database import Connection
from rag_pipeline.index.sql_files import queries
from rag_pipeline.retrieval.reader import reading


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceCount:
    """One kind of documents of one repository."""

    repository: str
    source_type: str
    documents: int
    chunks: int
    newest_change: datetime
    """When one of them last changed in its source."""
    newest_indexed: datetime
    """When one of them was last written to the index."""


def list_sources(connection: Connection, *, tenant: str, scopes: Sequence[str] = ()) -> list[SourceCount]:
    """What a tenant with these scopes may see, by repository and source type; takes time with the number of chunks."""
    with reading(connection, tenant=tenant, scopes=scopes):
        rows = connection.execute(queries("sources")["sources"], {"tenant": tenant}).fetchall()
    return [
        SourceCount(
            repository=row[0], source_type=row[1], documents=row[2], chunks=row[3], newest_change=row[4],
            newest_indexed=row[5],
        )
        for row in rows
    ]  # fmt: skip
