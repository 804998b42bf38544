"""A transaction of the reader, who owns nothing and sees one tenant and the scopes that were named."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from psycopg import IsolationLevel

from rag_pipeline.index.database import Connection
from rag_pipeline.index.sql_files import queries
from rag_pipeline.model import EmbeddingSpace

_LEAST_NEIGHBOURS: Final = 50


@contextmanager
def reading(
    connection: Connection,
    *,
    tenant: str,
    scopes: Sequence[str] = (),
    space: EmbeddingSpace | None = None,
    neighbours: int = _LEAST_NEIGHBOURS,
    filtered: bool = True,
) -> Iterator[None]:
    """One state of the index, as this tenant sees it; role and settings end with the transaction, however it ends.

    `neighbours` is how many the graph of `space` keeps in sight while it is walked (hnsw.ef_search), more where it is a
    large one. Statements with filters (`filtered`) are planned for their values each time; others are planned once,
    which is a quarter of what they cost.
    """
    vectors = f"rag.vectors_{space.space_id}" if space else None
    before = connection.isolation_level, connection.read_only
    # What a search finds is there when its text is fetched. Said with BEGIN, it costs no statement of its own.
    connection.isolation_level, connection.read_only = IsolationLevel.REPEATABLE_READ, True
    try:
        # In a pipeline, what nobody waits for travels with what comes next: BEGIN and the settings with the first
        # question, COMMIT with nothing to wait for but itself.
        with connection.pipeline(), connection.transaction():
            connection.execute(
                queries("search")["enter"],
                {
                    "tenant": tenant, "scopes": list(scopes), "vectors": vectors,
                    "neighbours": max(_LEAST_NEIGHBOURS, neighbours),
                    "plans": "force_custom_plan" if filtered else "auto",
                },
            )  # fmt: skip
            yield
    finally:
        if not connection.closed:
            connection.isolation_level, connection.read_only = before
