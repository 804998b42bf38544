"""The vector leg: a question to the chunks nearest to it, inside one tenant.

Exact over the matching chunks while they are few, the HNSW graph with an iterative scan when they are many; a graph
scan that finds fewer than k is repeated exactly, so that k rows come back whenever k exist.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector
from psycopg import sql

from rag_pipeline.errors import ConfigError
from rag_pipeline.index.database import Connection
from rag_pipeline.index.sql_files import queries
from rag_pipeline.model import EmbeddingSpace, SearchHit

_EXACT_UP_TO = 10_000  # chunks; DESIGN §6: exact over 2,000 rows takes 2 ms, the graph with a 1 % filter 14 ms
MAX_K = 200
_UNSTORABLE = re.compile(r"[\x00\ud800-\udfff]")  # PostgreSQL refuses such text


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchQuery:
    """A question and where to look for its answer; None: everywhere."""

    text: str
    tenant: str
    k: int = 5
    repository: str | None = None
    source_type: str | None = None
    language: str | None = None
    path_prefix: str | None = None
    scopes: Sequence[str] = field(default=())


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
    _check(query)
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


def _check(query: SearchQuery) -> None:
    if not query.text.strip():
        raise ConfigError("the question is empty: say what you are looking for")
    if not query.tenant:
        raise ConfigError("a search needs a tenant: name one with --tenant")
    if not 1 <= query.k <= MAX_K:
        raise ConfigError(f"k is {query.k}: choose a number of hits from 1 to {MAX_K}")
    words = (query.tenant, query.repository, query.source_type, query.language, query.path_prefix, *query.scopes)
    for word in words:
        if word and _UNSTORABLE.search(word):
            raise ConfigError(f"{word!r} holds a character that no name in the index has: look for something else")


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
     language, heading_path, start, end, updated, section, reference) = row  # fmt: skip
    fragment = section if section is not None else anchor.format(start=start, end=end) if anchor else ""
    location = reference if reference and not path else f"{path or source_id}:{start}-{end}"
    return SearchHit(
        rank=rank, score=score, title=title or source_id, text=text, url=f"{url or ''}{fragment}",
        location=location, repository=repository, source_type=source_type,
        source_id=source_id, language=language, heading_path=tuple(heading_path), start_line=start, end_line=end,
        document_id=document_id, chunk_id=chunk_id, source_updated_at=updated,
    )  # fmt: skip
