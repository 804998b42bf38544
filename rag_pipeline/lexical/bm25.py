"""BM25 as Lucene computes it, and the best chunks of some postings without scoring all of them.

The score of a chunk is the sum over the question's terms of `idf * f / (f + k1 * (1 - b + b * length / mean length))`
with `idf = ln(1 + (chunks - holding + 0.5) / (holding + 0.5))` (Robertson and Zaragoza 2009; as in Lucene since 8.0
without the constant factor `k1 + 1`, which changes no order).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from rag_pipeline.lexical.postings import Entries, among

Numbers: TypeAlias = NDArray[np.uint32]
Scores: TypeAlias = NDArray[np.float64]
Amount = TypeVar("Amount", float, NDArray[np.float64])
"""Of one chunk, or of several."""

_DENSE_SPAN: Final = 16_000_000
"""Up to so many numbers from the first to the last, an array with a place for each is faster than sorting."""
_WORTH_SKIPPING: Final = 30_000
"""Shorter postings are scored rather than thought about."""
_ROUNDING: Final = 1e-9
"""Far more than sums of the same numbers differ by, added in another order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """Of all chunks that the asker may see."""

    chunks: int
    terms: int
    """In all of them together."""

    @property
    def mean_length(self) -> float:
        """Terms per chunk; 1 when there is nothing to find."""
        return self.terms / self.chunks if self.chunks and self.terms else 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """Of the formula."""

    k1: float = 1.5
    b: float = 0.75


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """A term and the living chunks that hold it."""

    text: str
    holding: int
    """How many chunks hold it."""
    entries: Entries
    """By number, ascending."""
    numbers: Numbers = field(init=False)
    """Of the entries, beside each other in memory: they are searched again and again."""
    _earned: tuple[float, Parameters, Scores] | None = field(init=False, default=None, compare=False)
    """What the entries earned the last time, and with which mean length."""
    _most: float = field(init=False, default=0.0, compare=False)
    """The most of it."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "numbers", np.ascontiguousarray(self.entries["number"]))

    @property
    def nbytes(self) -> int:
        """Of memory, about, once it was ranked by."""
        return self.entries.nbytes + self.numbers.nbytes + 8 * len(self.entries) + 200

    def earned(self, statistics: Statistics, parameters: Parameters) -> Scores:
        """How much of the term's weight each entry earns, 0 to 1; worked out once, as long as the chunks stay."""
        mean = statistics.mean_length
        if self._earned is not None and self._earned[:2] == (mean, parameters):
            return self._earned[2]
        occurrences, lengths = (self.entries[name].astype(np.float64) for name in ("occurrences", "length"))
        scores = saturation(occurrences, lengths, statistics=statistics, parameters=parameters)
        object.__setattr__(self, "_earned", (mean, parameters, scores))
        object.__setattr__(self, "_most", float(scores.max(initial=0.0)))
        return scores

    def most_earned(self, statistics: Statistics, parameters: Parameters) -> float:
        """What no entry earns more than: about half of what the formula allows, as few chunks repeat a word often."""
        self.earned(statistics, parameters)
        return self._most


def idf(holding: int, statistics: Statistics) -> float:
    """How much a term says that so many chunks hold, from 0."""
    return math.log(1 + (statistics.chunks - holding + 0.5) / (holding + 0.5))


def saturation(occurrences: Amount, length: Amount, *, statistics: Statistics, parameters: Parameters) -> Amount:
    """How much of a term's weight a chunk of this length earns that holds it so often, 0 to 1."""
    k1, b = parameters.k1, parameters.b
    return occurrences / (occurrences + k1 * (1 - b) + (k1 * b / statistics.mean_length) * length)


@dataclass(frozen=True, slots=True, kw_only=True)
class Instead:
    """A term that may stand where another one is asked for, such as the word without its accents."""

    term: str
    asked: str
    factor: float
    """What it counts where the other one is held, too."""
    is_spelling: bool = True
    """Whether it is the same word, or one that may have been meant."""


def weigh(
    asked: Mapping[str, float], holding: Mapping[str, int], statistics: Statistics, *, instead: Sequence[Instead] = ()
) -> dict[str, float]:
    """The weight of each term that some chunk holds: its factor times its idf.

    A term that stands in for another says as much as it is rare, but no more than its factor of what the other one
    says, where that one is held at all: what is written as it was asked for comes first.
    """
    weights = {term: factor * idf(holding[term], statistics) for term, factor in asked.items() if holding.get(term)}
    exact = dict(weights)
    for one in instead:
        if holding.get(one.term) and one.term not in exact:
            weight = asked[one.asked] * idf(holding[one.term], statistics)
            most = one.factor * exact[one.asked] if one.asked in exact else weight
            weights[one.term] = max(weights.get(one.term, 0.0), min(weight, most))
    return weights


class Ranking:
    """Scores chunks for one question: its terms, each with its factor in the sum (`asked`, above 0).

    `instead`: see `weigh`.
    """

    def __init__(
        self, terms: Sequence[Term], asked: Mapping[str, float], statistics: Statistics, parameters: Parameters, *,
        instead: Sequence[Instead] = (),
    ) -> None:  # fmt: skip
        self.statistics = statistics
        self._parameters = parameters
        weights = weigh(asked, {term.text: term.holding for term in terms}, statistics, instead=instead)
        self._named = {one.term: one.asked for one in reversed(instead) if one.is_spelling and one.term not in asked}
        self.held = frozenset(self._named.get(term, term) for term in weights)
        # The rarest first: what has none of them can hardly be among the best.
        weighted = [(weights[term.text], term) for term in terms if term.text in weights]
        weighted.sort(key=lambda pair: (-pair[0], pair[1].text))
        self.terms = [term for _, term in weighted]
        self.weights = [weight for weight, _ in weighted]

    def scores(self, numbers: Numbers) -> Scores:
        """The scores of these chunks, in their order; 0 for one that holds no term."""
        total = np.zeros(len(numbers))
        for weight, term in zip(self.weights, self.terms, strict=True):
            self._add(total, numbers, weight, term)
        return total

    def matches(self, numbers: Sequence[int]) -> dict[int, list[str]]:
        """The question's terms that each chunk holds in some spelling, those that say the most first."""
        wanted = np.array(numbers, dtype=np.uint32)  # of another type, all numbers would be converted
        found: dict[int, list[str]] = {number: [] for number in numbers}
        for term in self.terms:
            for at in np.flatnonzero(among(wanted, term.numbers)).tolist():
                name = self._named.get(term.text, term.text)
                if name not in found[numbers[at]]:
                    found[numbers[at]].append(name)
        return found

    def best(self, limit: int) -> list[tuple[int, float]]:
        """The `limit` chunks with the highest scores and their scores, best first; equal ones by number.

        Exact, though not everything is scored (Turtle and Flood 1995, MaxScore): once the terms that are left could not
        lift a chunk that holds none of the others among the best, only chunks that are known already are looked up.
        """
        if not self.terms or limit < 1:
            return []
        essential = 0
        numbers, total = np.empty(0, dtype=np.uint32), np.empty(0)
        while essential < len(self.terms):
            size = self._batch(essential)
            numbers, total = self._with_terms(numbers, total, essential, essential + size)
            essential += size
            if len(total) >= limit and self._rest(essential) < _nth_best(total, limit):
                break
        for at in range(essential, len(self.terms)):
            if len(total) > limit:
                kept = total + self._rest(at) >= _nth_best(total, limit)
                numbers, total = numbers[kept], total[kept]
            self._add(total, numbers, self.weights[at], self.terms[at])
        return _first(numbers, total, limit)

    def _rest(self, start: int) -> float:
        """What the terms from `start` on can add to a chunk at most; no rounding makes it less."""
        terms = zip(self.weights[start:], self.terms[start:], strict=True)
        return sum(w * term.most_earned(self.statistics, self._parameters) for w, term in terms) * (1 + _ROUNDING)

    def _batch(self, start: int) -> int:
        """How many terms to score at once before looking whether the rest can be skipped."""
        size = 0
        for term in self.terms[start:]:
            if size and len(term.entries) > _WORTH_SKIPPING:
                break
            size += 1
        return size

    def _with_terms(self, numbers: Numbers, total: Scores, start: int, end: int) -> tuple[Numbers, Scores]:
        """The chunks and those that hold the terms from `start` to `end`, with what these add."""
        terms = self.terms[start:end]
        lists = [term.numbers for term in terms]
        parts = [part for part in (numbers, *lists) if len(part)]
        if not parts:
            return numbers, total
        first = int(min(part[0] for part in parts))
        span = int(max(part[-1] for part in parts)) - first + 1
        if span > max(_DENSE_SPAN, 64 * sum(map(len, parts))):
            return self._with_terms_sorted(numbers, total, start, end)
        scores = [
            total,
            *(weight * self._earned(term) for weight, term in zip(self.weights[start:end], terms, strict=True)),
        ]
        # Several times faster than adding to them term by term; the order of additions, and so the sum, is the same.
        at = np.concatenate([numbers, *lists]) - np.uint32(first)
        places = np.bincount(at, np.concatenate(scores)).astype(np.float64, copy=False)
        found = np.flatnonzero(places > 0)  # many times faster than on the numbers themselves
        return (found + first).astype(np.uint32), places[found]

    def _with_terms_sorted(self, numbers: Numbers, total: Scores, start: int, end: int) -> tuple[Numbers, Scores]:
        merged = np.unique(np.concatenate([numbers, *(term.numbers for term in self.terms[start:end])]))
        scores = np.zeros(len(merged))
        scores[np.searchsorted(merged, numbers)] = total
        for weight, term in zip(self.weights[start:end], self.terms[start:end], strict=True):
            scores[np.searchsorted(merged, term.numbers)] += weight * self._earned(term)
        return merged, scores

    def _add(self, total: Scores, numbers: Numbers, weight: float, term: Term) -> None:
        """Add what a term gives to these chunks."""
        held = term.numbers
        if not len(held) or not len(numbers):
            return
        at = np.minimum(np.searchsorted(held, numbers), len(held) - 1)
        holds = held[at] == numbers
        total[holds] += weight * self._earned(term)[at[holds]]

    def _earned(self, term: Term) -> Scores:
        return term.earned(self.statistics, self._parameters)


def _nth_best(scores: Scores, n: int) -> float:
    return float(np.partition(scores, len(scores) - n)[len(scores) - n])


def _first(numbers: Numbers, scores: Scores, limit: int) -> list[tuple[int, float]]:
    if len(scores) > limit:
        # All that are as good as the last one stay, so that equal ones are ordered by number alone.
        kept = scores >= _nth_best(scores, limit)
        numbers, scores = numbers[kept], scores[kept]
    order = np.lexsort((numbers, -scores))[:limit]
    return [(int(numbers[at]), float(scores[at])) for at in order]
