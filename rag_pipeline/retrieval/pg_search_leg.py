"""The lexical leg on ParadeDB's pg_search: BM25 over the same terms as our own postings, by another index.

What differs: k1 is 1.2 and b is 0.75, whatever the settings say; a chunk's length is rounded to one of 256 steps; the
statistics are of the tenant (`index.pg_search`), the rows of scopes that the asker may not see and rows removed lately
among them.

Filters are applied to its answer, not by it: pg_search counts some of them into the score. As long as they leave too
few, more is asked for, so that `limit` come back whenever so many exist.
"""

from __future__ import annotations

from collections.abc import Sequence

from rag_pipeline.errors import DatabaseUnavailable
from rag_pipeline.index.database import Connection
from rag_pipeline.index.pg_search import is_whole, on_tenant


class PgSearchLeg:
    """Answers from the index of `index.pg_search`; inside a search's transaction, as its reader."""

    def is_ready(self, connection: Connection, *, tenant: str) -> bool:
        """Whether there is an index of the tenant that can be trusted; if not, the other leg answers."""
        return is_whole(connection, tenant=tenant)

    def search(
        self,
        connection: Connection,
        terms: Sequence[str],
        *,
        tenant: str,
        limit: int,
        allowed: Sequence[int] | None = None,
    ) -> list[tuple[int, float]]:
        """Numbers of the best `limit` chunks that hold any of the terms, with their scores, best first, then by number.

        A term that is asked twice counts twice. `allowed`: only these chunks; None: all that the reader sees.

        Raises:
            DatabaseUnavailable: the tenant has no index, or a crash may have cost it rows; the transaction goes on.
        """
        if not terms or limit < 1 or (allowed is not None and not allowed):
            return []
        if not self.is_ready(connection, tenant=tenant):
            raise DatabaseUnavailable(
                f"the pg_search index of tenant {tenant!r} is missing, or not whole since the server crashed: "
                "run `rag-pipeline materialize`, which makes it again"
            )
        most = limit if allowed is None else 4 * limit
        while True:
            rows = _best(connection, terms, tenant=tenant, most=most, allowed=allowed)
            found = [(number, float(score)) for number, score in rows if number is not None]
            if len(found) >= limit or len(rows) < most:
                return found[:limit]
            most *= 8


def _best(
    connection: Connection, terms: Sequence[str], *, tenant: str, most: int, allowed: Sequence[int] | None
) -> list[tuple[int | None, float]]:
    """The best `most` of the tenant; those that are hidden from the reader or not allowed have no number."""
    values = {"terms": list(terms), "most": most, "allowed": None if allowed is None else list(allowed)}
    return connection.execute(on_tenant("best", tenant), values).fetchall()
