"""What is one link away from the hits of a search: it follows them, and takes the place of none."""

from __future__ import annotations

from collections.abc import Sequence

from rag_pipeline.index.database import Connection
from rag_pipeline.index.sql_files import queries
from rag_pipeline.model import SearchHit
from rag_pipeline.retrieval.hits import hit_of


def linked_hits(connection: Connection, hits: Sequence[SearchHit], *, limit: int) -> list[SearchHit]:
    """The first chunks of what the hits' documents are linked to, ranked behind them; `limit` for each hit's document.

    Of a pull request: the issues that it closes, then those that it or its thread mentions. Of an issue: the pull
    requests that close it. Of a file: the pull requests that changed it, the last one first, unless they were closed
    without being merged. No document comes twice, and none that is among the hits. Their score is 0: nothing was
    compared; `linked_from` is the document that leads to them.

    To be called inside the search's transaction, as its reader: what that one may not see is not brought.
    """
    documents = list(dict.fromkeys(hit.document_id for hit in hits))
    if not documents or limit < 1:
        return []
    rows = connection.execute(queries("linked")["linked"], {"documents": documents, "limit": limit})
    return [
        hit_of(row[1:], rank=rank, score=0.0, linked_from=row[0]) for rank, row in enumerate(rows, start=len(hits) + 1)
    ]
