"""A search: both legs over one state of the index, fused, in one transaction of the reader.

Every statement here runs as `rag_reader`, who owns nothing and sees one tenant and the scopes that were named.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector
from psycopg.types.json import Jsonb

from rag_pipeline.embedding.local import MODELS
from rag_pipeline.errors import TransientError
from rag_pipeline.index.database import Connection
from rag_pipeline.index.spaces import ask_active_space
from rag_pipeline.index.sql_files import queries
from rag_pipeline.lexical.bm25 import Instead, Numbers, Parameters
from rag_pipeline.lexical.questions import closest, known_share, unknown_words, weighted_terms
from rag_pipeline.model import EmbeddingSpace, LegResult, SearchHit
from rag_pipeline.retrieval.fusion import Candidate, FusionWeights, QueryShape, fuse
from rag_pipeline.retrieval.hits import hit_of
from rag_pipeline.retrieval.known_sources import refuse_unknown
from rag_pipeline.retrieval.lexical_leg import (
    LexicalRanking,
    VisibleSegments,
    lexical_ranking,
    similar_terms,
    visible_segments,
)
from rag_pipeline.retrieval.observer import NOBODY, Observer, timed
from rag_pipeline.retrieval.pg_search_leg import PgSearchLeg, PgSearchRanking
from rag_pipeline.retrieval.query import SearchQuery
from rag_pipeline.retrieval.reader import reading
from rag_pipeline.retrieval.vector_leg import Way, ask_nearest, ask_similarities, with_filters
from rag_pipeline.settings import Retrieval

EXACT_UP_TO: Final = 10_000
"""Chunks; DESIGN §6: exact over 2,000 rows takes 2 ms, the graph with a 1 % filter 14 ms."""
_MOST_FETCHED: Final = 20_000
"""Chunks of the lexical leg that are looked at for a filter, before the filter is asked first."""


_KNOWN_SHARE: Final = 0.15
"""Of the bytes of a question's words: fewer are held by chance."""
_NOISE_OF_MODELS: Final = dict.fromkeys(MODELS, 0.45)
"""What the best of 130 made-up questions reach in three labelled sets (docs/retrieval.md)."""


class SpaceChanged(TransientError):
    """Another embedding space was promoted while a question was on its way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """A chunk with what each leg says of it."""

    number: int
    score: float
    legs: Sequence[LegResult]


def search(
    connection: Connection,
    query: SearchQuery,
    *,
    space: EmbeddingSpace | None,
    vector: NDArray[np.floating] | None,
    settings: Retrieval,
    depth: int | None = None,
    must_be_active: bool = False,
    observer: Observer = NOBODY,
) -> list[SearchHit]:
    """At most `depth` (by default `k`) hits, best first.

    `vector` of shape (dimensions,) is the question in `space`; None: the lexical leg alone answers. `must_be_active`:
    queries shall use that space at the very moment of the search.

    Raises:
        ConfigError: the query is not answerable as it stands; `UnknownSource`, it names a repository or a source type
            of which the asker may see nothing.
        SpaceChanged: `space` must be active, and another one is by now.
    """
    query.check()
    wanted = depth or query.k
    legs = _Legs(
        connection, query, space=space, vector=vector, settings=settings, wanted=wanted, observer=observer
    )  # fmt: skip
    with timed(observer, "search"), reading(
        connection, tenant=query.tenant, scopes=query.scopes, space=space, neighbours=legs.limit,
        filtered=query.is_filtered,
    ):  # fmt: skip
        active = ask_active_space(connection) if must_be_active else None
        segments = visible_segments(connection, tenant=query.tenant, scopes=query.scopes)
        if space is not None and active is not None and active() != space:
            raise SpaceChanged(f"space {space.space_id} is not the active one any more: ask again")
        scored = legs.scored(segments)[:wanted]
        if not scored and (query.repository is not None or query.source_type is not None):
            refuse_unknown(connection, tenant=query.tenant, repository=query.repository, source_type=query.source_type)
        numbers = [one.number for one in scored]
        rows = connection.execute(queries("search")["hits"], {"numbers": numbers, "tenant": query.tenant})
        # The server reads texts and ends the transaction while we look which words are in them.
        matched = legs.matches(numbers)
        corrections = legs.corrections
    found = {row[0]: row[1:] for row in rows.fetchall()}
    # Row-level security has the last word on what may be shown.
    visible = [one for one in scored if one.number in found]
    hits = [
        hit_of(
            found[one.number], rank=rank, score=one.score, matched_terms=matched[one.number],
            legs=one.legs, corrections=corrections,
        )
        for rank, one in enumerate(visible, start=1)
    ]  # fmt: skip
    return [hit for hit in hits if query.min_score is None or hit.score >= query.min_score]


class _Legs:
    """The legs of one search, inside its transaction."""

    def __init__(
        self, connection: Connection, query: SearchQuery, *, space: EmbeddingSpace | None,
        vector: NDArray[np.floating] | None, settings: Retrieval, wanted: int, observer: Observer,
    ) -> None:  # fmt: skip
        self._connection = connection
        self._query = query
        self._space = space
        self._settings = settings
        self._observer = observer
        self._asked = weighted_terms(query.text, function_words=settings.function_word_weight)
        self._ranking: LexicalRanking | None = None
        self._lacks_a_word = False
        """Whether no chunk holds some term of the question."""
        self.corrections: Mapping[str, Sequence[str]] = {}
        """Words of the question that no document holds, with the terms that were looked for instead."""
        self._wanted = wanted
        # One leg alone need not look further than what is wanted of it.
        self.limit = max(settings.candidates, wanted) if query.legs == "fused" and vector is not None else wanted
        self._values = _values(query, vector) | {"limit": self.limit, "enough": EXACT_UP_TO + 1}

    def scored(self, segments: VisibleSegments) -> list[Scored]:
        """What the legs found, best first."""
        few = self._few_that_match()
        lexical: list[tuple[int, float]] = []
        # The server looks for neighbours while we rank by words.
        started = time.perf_counter()
        asked = self._ask_vector(segments, few) if self._query.legs != "lexical" else None
        if self._query.legs != "vector":
            with timed(self._observer, "lexical"):
                self._ranking, lexical = self._lexical(segments, few)
        ranking = self._ranking
        # Asked of all that the words have found, before it is known which of them the vectors have found, too.
        also = self._ask_similarities([number for number, _ in lexical]) if asked and ranking else None
        vector = asked() if asked else []
        if asked:
            self._observer.took("vector", time.perf_counter() - started)
        if ranking is None:
            return self._alone(vector, "vector")
        if self._is_noise(ranking, vector):
            return []
        if self._query.legs == "lexical" or self._space is None:
            return self._alone(lexical, "lexical")
        return self._fused(lexical, vector, also() if also else {}, ranking)

    def matches(self, numbers: Sequence[int]) -> Mapping[int, Sequence[str]]:
        """The question's terms that each chunk holds, once the legs have scored; none when the vectors alone did."""
        return self._ranking.matches(numbers) if self._ranking else dict.fromkeys(numbers, ())

    def _few_that_match(self) -> Numbers | None:
        """The chunks that match the filters, when they are few enough to be looked at one by one."""
        if not self._query.is_filtered:
            return None
        row = self._connection.cursor(binary=True).execute(
            with_filters("matching_numbers"), self._values
        ).fetchone()  # fmt: skip
        numbers = np.frombuffer(row[0] if row else b"", dtype=">i8").astype(np.uint32)
        return numbers if len(numbers) <= EXACT_UP_TO else None

    def _lexical(
        self, segments: VisibleSegments, few: Numbers | None
    ) -> tuple[LexicalRanking, list[tuple[int, float]]]:
        parameters = Parameters(k1=self._settings.k1, b=self._settings.b)
        tenant = self._query.tenant
        make: Callable[..., LexicalRanking] = lexical_ranking
        if self._settings.lexical == "pg_search" and PgSearchLeg().is_ready(self._connection, tenant=tenant):
            make = partial(PgSearchRanking, tenant=tenant)
        make = partial(make, self._connection, self._asked, segments=segments, parameters=parameters, allowed=few)
        ranking = make()
        self._lacks_a_word = not ranking.held.issuperset(self._asked)
        if self._lacks_a_word and (unknown := unknown_words(self._query.text, ranking.held)):
            meant = self._meant(unknown, segments)
            ranking = make(meant=meant) if meant else ranking
        if few is not None or not self._query.is_filtered:
            return ranking, ranking.best(self.limit)
        return ranking, self._best_that_match(ranking)

    def _meant(self, unknown: Mapping[str, str], segments: VisibleSegments) -> list[Instead]:
        """The known terms that unknown words are closest to."""
        close = {
            word: closest(term, similar_terms(self._connection, term, segments=segments))
            for word, term in unknown.items()
        }
        self.corrections = {word: terms for word, terms in close.items() if terms}
        return [
            Instead(term=term, asked=unknown[word], factor=1.0, is_spelling=False)
            for word, terms in self.corrections.items()
            for term in terms
        ]

    def _is_noise(self, ranking: LexicalRanking, vector: Sequence[tuple[int, float]]) -> bool:
        """Whether nothing says that what was found has to do with the question: no words, and no likeness to speak of.

        Gibberish is like some text by chance; its vectors' nearest are about as near as those of any other.
        """
        if self.corrections or (self._asked and not self._lacks_a_word):
            return False
        share = known_share(self._query.text, ranking.held)
        if share is None or share >= _KNOWN_SHARE:
            return False
        if self._space is None:
            return True
        likeness = self._settings.noise_similarity
        if likeness is None:
            likeness = _NOISE_OF_MODELS.get(self._space.model, 0.0)
        return max((similarity for _, similarity in vector), default=0.0) < likeness

    def _best_that_match(self, ranking: LexicalRanking) -> list[tuple[int, float]]:
        """Down the ranking until enough chunks pass the filters: many do."""
        looked_at = 4 * self.limit
        while True:
            best = ranking.best(looked_at)
            values = self._values | {"numbers": [number for number, _ in best]}
            passing = {row[0] for row in self._connection.execute(with_filters("which_match"), values)}
            if len(passing) >= self.limit or len(best) < looked_at:
                return [pair for pair in best if pair[0] in passing][: self.limit]
            looked_at *= 8

    def _ask_vector(
        self, segments: VisibleSegments, few: Numbers | None
    ) -> Callable[[], list[tuple[int, float]]] | None:
        if self._space is None or self._values["query"] is None:
            return None
        is_small = few is not None or segments.statistics.chunks <= EXACT_UP_TO
        way: Way = "exact" if is_small else "graph"
        if not self._query.is_filtered:
            way = "exact_everywhere" if is_small else "graph_everywhere"
        return ask_nearest(self._connection, self._values, self._space, way=way)

    def _ask_similarities(self, numbers: Sequence[int]) -> Callable[[], Mapping[int, float]] | None:
        if self._space is None or not numbers:
            return None
        return ask_similarities(self._connection, self._values, self._space, numbers)

    def _alone(self, found: Sequence[tuple[int, float]], leg: str) -> list[Scored]:
        results = [LegResult(leg=leg, rank=rank, score=score) for rank, (_, score) in enumerate(found, start=1)]
        return [
            Scored(number=n, score=score, legs=(result,)) for (n, score), result in zip(found, results, strict=True)
        ]

    def _fused(
        self,
        lexical: Sequence[tuple[int, float]],
        vector: Sequence[tuple[int, float]],
        also: Mapping[int, float],
        ranking: LexicalRanking,
    ) -> list[Scored]:
        """Both legs' scores of what either found: a chunk that one leg ranks low is not unknown to it.

        `also`: the similarities of what the lexical leg found.
        """
        cosines, scores = {**also, **dict(vector)}, dict(lexical)
        unscored = np.array([number for number in cosines if number not in scores], dtype=np.uint32)
        scores |= zip(unscored.tolist(), ranking.scores(unscored).tolist(), strict=True)
        vector_ranks = {number: rank for rank, (number, _) in enumerate(vector, start=1)}
        lexical_ranks = {number: rank for rank, (number, _) in enumerate(lexical, start=1)}
        candidates = [Candidate(id=n, cosine=cosines.get(n, 0.0), bm25=scores.get(n, 0.0)) for n in cosines | scores]
        shape = QueryShape(chunks=ranking.statistics.chunks)
        weights = FusionWeights(**self._settings.fusion.model_dump())
        return [
            Scored(
                number=fused.id, score=fused.score,
                legs=(
                    LegResult(leg="lexical", rank=lexical_ranks.get(fused.id), score=scores.get(fused.id, 0.0)),
                    LegResult(leg="vector", rank=vector_ranks.get(fused.id), score=cosines.get(fused.id, 0.0)),
                ),
            )
            for fused in fuse(candidates, query=shape, weights=weights, limit=self._wanted)
        ]  # fmt: skip


def _values(query: SearchQuery, vector: NDArray[np.floating] | None) -> dict[str, Any]:
    metadata = dict(query.metadata)
    metadata |= {key: value for key, value in (("author", query.author), ("state", query.state)) if value is not None}
    if query.labels:
        metadata["labels"] = list(query.labels)
    return {
        "tenant": query.tenant, "repository": query.repository, "source_type": query.source_type,
        "language": query.language, "path_prefix": query.path_prefix, "metadata": Jsonb(metadata) if metadata else None,
        "updated_from": query.updated_from, "updated_to": query.updated_to,
        "query": None if vector is None else HalfVector(np.asarray(vector, dtype=np.float16)),
    }  # fmt: skip
