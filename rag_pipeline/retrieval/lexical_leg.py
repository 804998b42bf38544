"""The lexical leg over our own postings: reads what the question's terms need, and lets BM25 rank it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Generic, Protocol, TypeVar

import numpy as np

from rag_pipeline.index.database import Connection
from rag_pipeline.index.migrations import has_trigrams
from rag_pipeline.index.sql_files import queries
from rag_pipeline.lexical.bm25 import Instead, Numbers, Parameters, Ranking, Scores, Statistics, Term
from rag_pipeline.lexical.postings import Entries, read_entries, read_members
from rag_pipeline.lexical.questions import other_spellings
from rag_pipeline.retrieval.term_cache import SHARED, TermCache

V = TypeVar("V")
_MOST_REMEMBERED: Final = 2_000


class _Remembered(Generic[V]):
    """What was found out of some segments; it stays true, see `TermCache`. Begins anew when it is full."""

    def __init__(self) -> None:
        self._found: dict[Hashable, V] = {}

    def get(self, key: Hashable, find: Callable[[], V]) -> V:
        """What is remembered, or what is found now."""
        known = self._found.get(key)
        if known is None:
            known = find()
            if len(self._found) >= _MOST_REMEMBERED:
                self._found = {}
            self._found[key] = known
        return known


_ACCENTS: Final[_Remembered[bool]] = _Remembered()
_SIMILAR: Final[_Remembered[list[str]]] = _Remembered()
_FEW_CHUNKS: Final = 20_000
_MOST_COMPARED: Final = 300_000
_LONGER: Final = 2
"""By so many letters a misspelt word may be longer or shorter."""


class LexicalRanking(Protocol):
    """The chunks that hold the words of one question; see `Ranking`."""

    statistics: Statistics
    held: frozenset[str]
    """The question's terms that some chunk holds in some spelling."""

    def best(self, limit: int) -> list[tuple[int, float]]:
        """Numbers and BM25 scores of the best, best first, equal ones by number."""

    def scores(self, numbers: Numbers) -> Scores:
        """The scores of these chunks, in their order; 0 for one that holds no term."""

    def matches(self, numbers: Sequence[int]) -> Mapping[int, Sequence[str]]:
        """The terms that each chunk holds, those that say the most first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VisibleSegments:
    """The segments of one tenant that the asker may see, as a transaction sees them."""

    ids: Sequence[int]
    statistics: Statistics
    key: Hashable
    """The same for the same segments, and for no others."""
    removed: Numbers
    """Chunks that are gone though some segment still holds them, ascending."""


def visible_segments(connection: Connection, *, tenant: str, scopes: Sequence[str]) -> VisibleSegments:
    """Read inside the transaction of a search, as the reader."""
    with connection.cursor(binary=True) as cursor:
        values = {"tenant": tenant, "scopes": list(scopes)}
        rows = cursor.execute(queries("segments")["visible"], values).fetchall()
    return VisibleSegments(
        ids=[row[0] for row in rows],
        # Another database, or one made again, may number its segments alike.
        key=(_place(connection), tuple((row[0], row[6]) for row in rows)),
        statistics=Statistics(chunks=sum(row[1] - row[3] for row in rows), terms=sum(row[2] - row[4] for row in rows)),
        removed=read_members(row[5] for row in rows)["number"],
    )


def _place(connection: Connection) -> Hashable:
    """Which database it is; `info.dsn` says it, too, and takes a tenth of a search for it."""
    server = connection.pgconn
    return server.host, server.port, server.db


def lexical_ranking(
    connection: Connection,
    asked: Mapping[str, float],
    *,
    segments: VisibleSegments,
    parameters: Parameters,
    allowed: Numbers | None = None,
    cache: TermCache = SHARED,
    meant: Sequence[Instead] = (),
) -> Ranking:
    """BM25 of weighted terms over these segments, whichever way they are spelt, and of what may have been `meant`.

    `allowed` (ascending): only these chunks are ranked. How rare a term is does not depend on it, but on all that the
    asker may see.
    """
    instead = [*spelt_otherwise(asked, has_accents=has_accents(connection, segments)), *meant]
    wanted = dict.fromkeys([*asked, *(one.term for one in instead)])
    terms = _terms(connection, wanted, segments=segments, cache=cache)
    if allowed is not None:
        terms = [replace(term, entries=_only(term, allowed)) for term in terms]
    return Ranking(terms, asked, segments.statistics, parameters, instead=instead)


def spelt_otherwise(asked: Iterable[str], *, has_accents: bool) -> list[Instead]:
    """Other spellings of a question's terms; of a word without accents there are none where no text has any."""
    return [
        Instead(term=spelling, asked=term, factor=factor)
        for term in asked
        if has_accents or not term.isascii()
        for spelling, factor in other_spellings(term).items()
    ]


def has_accents(connection: Connection, segments: VisibleSegments) -> bool:
    """Whether any word in these segments is written with accents."""

    def ask() -> bool:
        row = connection.execute(queries("segments")["has_accents"], {"segments": list(segments.ids)}).fetchone()
        return bool(row and row[0])

    return _ACCENTS.get((segments.key,), ask)


def _terms(connection: Connection, asked: Iterable[str], *, segments: VisibleSegments, cache: TermCache) -> list[Term]:
    """The terms, from memory where they were looked for before; one that occurs nowhere is held by no chunk."""
    known = {text: term for text in asked if (term := cache.get(segments.key, text)) is not None}
    unknown = [text for text in asked if text not in known]
    values = {"segments": list(segments.ids), "terms": unknown}
    parts: defaultdict[str, list[bytes]] = defaultdict(list)
    holding: Counter[str] = Counter()
    if unknown:
        with connection.cursor(binary=True) as cursor:
            for text, added, removed, entries in cursor.execute(queries("segments")["entries"], values):
                parts[text].append(entries)
                holding[text] += added - removed
    for text in unknown:
        entries = read_entries(parts[text], removed=segments.removed)
        known[text] = Term(text=text, holding=holding[text], entries=entries)
        cache.put(segments.key, known[text])
    return list(known.values())


def holding_of(connection: Connection, asked: Iterable[str], *, segments: VisibleSegments) -> dict[str, int]:
    """In how many living chunks of these segments each term occurs, as far as it occurs at all."""
    values = {"segments": list(segments.ids), "terms": list(asked)}
    rows = connection.execute(queries("segments")["holding"], values)
    return {term: added - removed for term, added, removed in rows}


def _only(term: Term, allowed: Numbers) -> Entries:
    """The entries of chunks that are allowed, of which there are few."""
    if not len(term.entries):
        return term.entries
    at = np.minimum(np.searchsorted(term.numbers, allowed), len(term.entries) - 1)
    found: Entries = term.entries[at[term.numbers[at] == allowed]]
    return found


def similar_terms(connection: Connection, term: str, *, segments: VisibleSegments) -> list[str]:
    """Terms of chunks that the asker may see, similar to one that none of them holds, the most similar ones first.

    None where the database has no pg_trgm. Of a large index only those with the same first letter are compared, and of
    those as many as take half a second.
    """
    return _SIMILAR.get((segments.key, term), lambda: _similar_terms(connection, term, segments))


def _similar_terms(connection: Connection, term: str, segments: VisibleSegments) -> list[str]:
    if not has_trigrams(connection):
        return []
    values = {
        "segments": list(segments.ids), "term": term, "least": len(term) - _LONGER, "most": len(term) + _LONGER,
        "everywhere": segments.statistics.chunks <= _FEW_CHUNKS, "first": term[0], "after": chr(ord(term[0]) + 1),
        "compared": _MOST_COMPARED,
    }  # fmt: skip
    return [row[0] for row in connection.execute(queries("segments")["similar_terms"], values)]
