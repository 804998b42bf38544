"""What there is to search: which repositories hold what, how much of it, and how fresh it is."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from rag_pipeline.index.database import Connection
from rag_pipeline.index.sql_files import queries


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownSource:
    """One type of source of a repository, as its reader may see it."""

    repository: str
    source_type: str
    documents: int
    chunks: int
    newest_change: datetime
    """When the source last changed any of it, UTC."""
    newest_indexed: datetime
    """When the index last took a change in, UTC."""


def known_sources(connection: Connection, *, tenant: str) -> list[KnownSource]:
    """By repository and type; to be called inside a transaction of the reader."""
    return [
        KnownSource(
            repository=repository, source_type=source_type, documents=documents, chunks=chunks,
            newest_change=changed, newest_indexed=indexed,
        )
        for repository, source_type, documents, chunks, changed, indexed in connection.execute(
            queries("knowledge")["sources"], {"tenant": tenant}
        )
    ]  # fmt: skip
