"""What is one link away from the hits of a search: it follows them, and takes the place of none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rag_pipeline.index.database import Connection
from rag_pipeline.index.sql_files import queries
from rag_pipeline.model import SearchHit


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
    return [_hit(rank, row) for rank, row in enumerate(rows, start=len(hits) + 1)]


def _hit(rank: int, row: Sequence[Any]) -> SearchHit:
    (linked_from, chunk_id, document_id, title, text, url, anchor, path, repository, source_type, source_id,
     language, heading_path, start, end, updated, tokens, section, reference) = row  # fmt: skip
    fragment = section if section is not None else anchor.format(start=start, end=end) if anchor else ""
    return SearchHit(
        rank=rank, score=0.0, title=title or source_id, text=text, url=f"{url or ''}{fragment}",
        location=reference if reference and not path else f"{path or source_id}:{start}-{end}",
        repository=repository, source_type=source_type, source_id=source_id, language=language,
        heading_path=tuple(heading_path), start_line=start, end_line=end, document_id=document_id, chunk_id=chunk_id,
        source_updated_at=updated, tokens=tokens, linked_from=linked_from,
    )  # fmt: skip
