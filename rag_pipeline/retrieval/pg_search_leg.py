"""The lexical leg on ParadeDB's pg_search: BM25 over the same terms as our own postings, by another index.

What differs: k1 is 1.2 and b is 0.75, whatever the settings say; a chunk's length is rounded to one of 256 steps; the
statistics are of the tenant (`index.pg_search`), the rows of scopes that the asker may not see and rows removed lately
among them.

Filters are applied to its answer, not by it: pg_search counts some of them into the score. As long as they leave too
few, more is asked for, so that `limit` come back whenever so many exist.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from rag_pipeline.errors import DatabaseUnavailable
from rag_pipeline.index.database import Connection
from rag_pipeline.index.pg_search import is_whole, on_tenant
from rag_pipeline.index.segments import Worded, lexical_text
from rag_pipeline.index.sql_files import queries
from rag_pipeline.lexical.analyzer import count_terms
from rag_pipeline.lexical.bm25 import Instead, Numbers, Parameters, Scores, saturation, weigh
from rag_pipeline.retrieval.lexical_leg import VisibleSegments, has_accents, holding_of, spelt_otherwise

_CHOICE: Final = 2
"""Candidates per chunk that is asked for: the extension's order differs a little from ours."""


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


class PgSearchRanking:
    """Ranks as `Ranking` does: pg_search names the candidates, and what they score is computed from their texts.

    So scores, and with them the fusion, are those of our formula over what the asker may see, whatever the extension
    rounds and counts.
    """

    def __init__(
        self, connection: Connection, asked: Mapping[str, float], *, tenant: str, segments: VisibleSegments,
        parameters: Parameters, allowed: Numbers | None,
        meant: Sequence[Instead] = (),
    ) -> None:  # fmt: skip
        self._connection = connection
        self._tenant = tenant
        self._allowed = None if allowed is None else allowed.tolist()
        self._parameters = parameters
        self.statistics = segments.statistics
        instead = [*spelt_otherwise(asked, has_accents=has_accents(connection, segments)), *meant]
        wanted = dict.fromkeys([*asked, *(one.term for one in instead)])
        holding = holding_of(connection, wanted, segments=segments)
        self._weights = weigh(asked, holding, self.statistics, instead=instead)
        self._named = {one.term: one.asked for one in reversed(instead) if one.is_spelling and one.term not in asked}
        self.held = frozenset(self._named.get(term, term) for term in self._weights)
        self._counts: dict[int, Counter[str]] = {}

    def best(self, limit: int) -> list[tuple[int, float]]:
        """The best chunks among those that pg_search ranks highest, twice as many as are asked for."""
        found = PgSearchLeg().search(
            self._connection, list(self._weights), tenant=self._tenant, limit=_CHOICE * limit, allowed=self._allowed
        )
        numbers = np.array([number for number, _ in found], dtype=np.uint32)
        scored = zip(numbers.tolist(), self.scores(numbers).tolist(), strict=True)
        return sorted(((n, score) for n, score in scored if score > 0), key=lambda pair: (-pair[1], pair[0]))[:limit]

    def scores(self, numbers: Numbers) -> Scores:
        """The scores of these chunks, in their order; 0 for one that holds no term."""
        self._count([number for number in numbers.tolist() if number not in self._counts])
        return np.array(
            [self._score(self._counts.get(number, Counter())) for number in numbers.tolist()], dtype=np.float64
        )

    def matches(self, numbers: Sequence[int]) -> dict[int, list[str]]:
        """The terms that each chunk holds, those that say the most first."""
        terms = sorted(self._weights, key=lambda term: (-self._weights[term], term))
        return {
            number: list(dict.fromkeys(self._named.get(t, t) for t in terms if t in self._counts.get(number, ())))
            for number in numbers
        }

    def _score(self, counts: Counter[str]) -> float:
        length = float(counts.total())
        return sum(
            weight * saturation(float(counts[term]), length, statistics=self.statistics, parameters=self._parameters)
            for term, weight in self._weights.items()
            if term in counts
        )

    def _count(self, numbers: list[int]) -> None:
        values = {"numbers": numbers, "tenant": self._tenant}
        for row in self._connection.execute(queries("pg_search")["worded"], values):
            worded = Worded._make(row)
            self._counts[worded.number] = count_terms(lexical_text(worded))


def _best(
    connection: Connection, terms: Sequence[str], *, tenant: str, most: int, allowed: Sequence[int] | None
) -> list[tuple[int | None, float]]:
    """The best `most` of the tenant; those that are hidden from the reader or not allowed have no number."""
    values = {"terms": list(terms), "most": most, "allowed": None if allowed is None else list(allowed)}
    return connection.execute(on_tenant("best", tenant), values).fetchall()
