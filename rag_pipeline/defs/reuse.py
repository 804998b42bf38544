"""What runs said of the reuse of vectors, read from Dagster's own records: the embeddings asset notes it every time."""

from datetime import UTC, datetime

import dagster as dg

from rag_pipeline.reporting import Reuse

_PAGE = 500
_MOST_PAGES = 20


def reuse_history(instance: dg.DagsterInstance, *, since: datetime) -> list[Reuse]:
    """One entry per run since then, newest first; at most 10,000 materializations are looked at."""
    filters = dg.AssetRecordsFilter(asset_key=dg.AssetKey("embeddings"), after_timestamp=since.timestamp())
    found: list[Reuse] = []
    cursor: str | None = None
    for _ in range(_MOST_PAGES):
        page = instance.fetch_materializations(filters, limit=_PAGE, cursor=cursor)
        for record in page.records:
            noted = record.asset_materialization.metadata if record.asset_materialization else {}
            # Of a range, only the last partition holds what the run did.
            if "embedded" in noted and "reused" in noted:
                at = datetime.fromtimestamp(record.timestamp, UTC)
                embedded, reused = (int(str(noted[name].value)) for name in ("embedded", "reused"))
                found.append(Reuse(at=at, embedded=embedded, reused=reused))
        if not page.has_more:
            break
        cursor = page.cursor
    return found
