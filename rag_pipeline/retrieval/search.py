"""The vector leg: a question to the chunks nearest to it, inside one tenant.

Exact over the matching chunks while they are few, the HNSW graph with an iterative scan when they are many; a graph
scan that finds fewer than k is repeated exactly, so that k rows come back whenever k exist.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector
from psycopg import sql

from rag_pipeline.index.database import Connection
from rag_pipeline.index.sql_files import queries
from rag_pipeline.model import EmbeddingSpace, LegResult, SearchHit
from rag_pipeline.retrieval.query import SearchQuery

_EXACT_UP_TO = 10_000  # chunks; DESIGN §6: exact over 2,000 rows takes 2 ms, the graph with a 1 % filter 14 ms


def search(
    connection: Connection,
    query: SearchQuery,
    *,
    space: EmbeddingSpace,
    embed_query: Callable[[str], NDArray[np.float32]],
) -> list[SearchHit]:
    """At most `k` hits, best first.

    Raises:
        ConfigError: the question or the tenant is empty, or k is out of range.
    """
    query.check()
    vector = embed_query(query.text)
    values = {
        "tenant": query.tenant, "repository": query.repository, "source_type": query.source_type,
        "language": query.language, "path_prefix": query.path_prefix, "k": query.k, "enough": _EXACT_UP_TO,
        "query": HalfVector(np.asarray(vector, dtype=np.float16)),
    }  # fmt: skip
    statements = queries("search")
    with connection.transaction():
        connection.execute(statements["snapshot"])
        connection.execute(
            statements["enter"],
            {"tenant": query.tenant, "scopes": list(query.scopes), "ef_search": str(max(40, 2 * query.k))},
        )
        nearest = _nearest(connection, values, space)
        rows = {row[0]: row for row in connection.execute(statements["hits"], {"ids": [id_ for id_, _ in nearest]})}
    return [_hit(rank, 1.0 - distance, rows[id_]) for rank, (id_, distance) in enumerate(nearest, start=1)]


def _nearest(connection: Connection, values: dict[str, Any], space: EmbeddingSpace) -> list[tuple[UUID, float]]:
    counted = connection.execute(queries("search")["count_matching"], values).fetchone()
    if counted and counted[0] >= _EXACT_UP_TO:
        found = connection.execute(_on(space, "graph"), values).fetchall()
        if len(found) == values["k"]:
            # A relaxed scan returns the right rows only roughly in order.
            return sorted(((row[0], row[1]) for row in found), key=lambda row: (row[1], row[0]))
    return [(row[0], row[1]) for row in connection.execute(_on(space, "exact"), values)]


def _on(space: EmbeddingSpace, name: str) -> sql.Composed:
    return sql.SQL(queries("search")[name]).format(vectors=sql.Identifier(f"vectors_{space.space_id}"))


def _hit(rank: int, score: float, row: Sequence[Any]) -> SearchHit:
    (chunk_id, document_id, title, text, url, anchor, path, repository, source_type, source_id,
     language, heading_path, start, end, updated, tokens, section, reference) = row  # fmt: skip
    fragment = section if section is not None else anchor.format(start=start, end=end) if anchor else ""
    location = reference if reference and not path else f"{path or source_id}:{start}-{end}"
    return SearchHit(
        rank=rank, score=score, title=title or source_id, text=text, url=f"{url or ''}{fragment}",
        location=location, repository=repository, source_type=source_type,
        source_id=source_id, language=language, heading_path=tuple(heading_path), start_line=start, end_line=end,
        document_id=document_id, chunk_id=chunk_id, source_updated_at=updated, tokens=tokens,
        legs=(LegResult(leg="vector", rank=rank, score=score),),
    )  # fmt: skip
