"""Chunks to postings and postings to bytes: a segment, which holds what one batch of changes added and took away.

Segments are never edited. Taking a chunk away writes its number and, per term, how often it is gone; so the counts of
what is alive are sums over segments, and merging segments is adding them up.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rag_pipeline.lexical.analyzer import count_terms, expand_token, tokens_of

ENTRY: Final = np.dtype([("number", "<u4"), ("occurrences", "<u2"), ("length", "<u2")])
"""A chunk that holds a term: its number, how often it holds it, and its length in terms."""
Entries: TypeAlias = NDArray[np.void]
"""Of dtype `ENTRY`, by number, ascending."""
MEMBER: Final = np.dtype([("number", "<u4"), ("length", "<u2")])
"""A chunk that a segment adds or takes away: its number, and its length in terms."""
Members: TypeAlias = NDArray[np.void]
"""Of dtype `MEMBER`, by number, ascending."""
_MOST_REMEMBERED: Final = 300_000
"""Tokens: 60 MB, and all words but a few of most corpora."""
_MOST: Final = 65_535
"""No more occurrences and no greater length are told apart: no model embeds a chunk of so many words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Posting:
    """What a segment says of one term."""

    removed: int = 0
    """How many of the chunks that the segment takes away hold it."""
    entries: bytes = b""
    """Of the chunks that the segment adds; see `ENTRY`."""

    @property
    def chunks(self) -> int:
        """How many chunks the segment adds that hold it."""
        return len(self.entries) // ENTRY.itemsize


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """One batch of changes to the chunks of one tenant and scope."""

    added: Members
    removed: Members
    postings: Mapping[str, Posting]


class Vocabulary:
    """Tokens that were met before, and the terms that they have: each is taken apart once for many segments.

    Grows with the corpus up to a limit, beyond which it begins anew. For the use of one thread.
    """

    def __init__(self) -> None:
        self.begin_anew()

    def begin_anew(self) -> None:
        """Remember nothing."""
        self.tokens = _Tokens()

    def for_a_batch(self) -> _Tokens:
        """What is remembered, to which a batch of texts may add what it holds."""
        if len(self.tokens) > _MOST_REMEMBERED:
            self.begin_anew()
        return self.tokens


def make_segment(
    added: Sequence[tuple[int, str]], removed: Sequence[tuple[int, str]] = (), *, vocabulary: Vocabulary | None = None
) -> Segment:
    """The segment of chunks, each a number and the text that the lexical leg sees of it.

    `vocabulary`: that of segments made before, which spares taking their words apart again.
    """
    gone: Counter[str] = Counter()
    lengths = []
    for _, text in removed:
        counts = count_terms(text)
        lengths.append(counts.total())
        gone.update(counts.keys())
    entries, members = _entries(sorted(added), (vocabulary or Vocabulary()).for_a_batch())
    return Segment(
        added=members,
        removed=np.sort(_members([number for number, _ in removed], lengths), order="number"),
        postings={
            term: Posting(removed=gone.get(term, 0), entries=entries.get(term, b""))
            for term in sorted(entries.keys() | gone.keys())
        },
    )


class _Tokens(dict[str, int]):
    """Numbers of tokens, and of the terms that they have: each token is taken apart once, however often it comes."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []
        """Of the terms, by number."""
        self._numbers: dict[str, int] = {}
        self._terms = array("q")
        self._ends = array("q", [0])

    def __missing__(self, token: str) -> int:
        number = len(self)
        for term in expand_token(token):
            of_term = self._numbers.get(term)
            if of_term is None:
                of_term = self._numbers[term] = len(self.names)
                self.names.append(term)
            self._terms.append(of_term)
        self._ends.append(len(self._terms))
        self[token] = number
        return number

    def terms(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Numbers of terms of all tokens, one after the other, and where those of each token begin, with the end."""
        return np.array(self._terms, dtype=np.int64), np.array(self._ends, dtype=np.int64)


def _members(numbers: Sequence[int], lengths: Sequence[int] | NDArray[np.int64]) -> Members:
    members = np.empty(len(numbers), dtype=MEMBER)
    members["number"] = numbers
    members["length"] = np.minimum(np.asarray(lengths, dtype=np.int64), _MOST)
    return members


def _entries(added: Sequence[tuple[int, str]], tokens: _Tokens) -> tuple[dict[str, bytes], Members]:
    """The entries of each term as bytes, and the chunks with their lengths.

    Chunks are counted together: as (term, chunk), sorted, of which equal ones follow each other.
    """
    found, counts = array("q"), array("q")
    for _, text in added:
        before = len(found)
        found.extend(map(tokens.__getitem__, tokens_of(text)))
        counts.append(len(found) - before)
    token = np.array(found, dtype=np.int64)
    terms, ends = tokens.terms()
    of_token = ends[token + 1] - ends[token]
    chunk = np.repeat(np.repeat(np.arange(len(added)), counts), of_token)
    members = _members([number for number, _ in added], np.bincount(chunk, minlength=len(added)).astype(np.int64))
    # Of each token the places of its terms, one after the other.
    before = np.cumsum(of_token) - of_token
    place = np.arange(len(chunk)) + np.repeat(ends[token] - before, of_token)
    pair, occurrences = np.unique(terms[place] * len(added) + chunk, return_counts=True)
    term, chunk = np.divmod(pair, max(1, len(added)))
    table = np.empty(len(pair), dtype=ENTRY)
    table["number"] = members["number"][chunk]
    table["length"] = members["length"][chunk]
    table["occurrences"] = np.minimum(occurrences, _MOST)
    content = table.tobytes()
    first = np.flatnonzero(np.diff(term, prepend=-1))
    cuts = (np.append(first, len(term)) * ENTRY.itemsize).tolist()
    of_term = zip(term[first].tolist(), cuts[:-1], cuts[1:], strict=True)
    return {tokens.names[number]: content[start:end] for number, start, end in of_term}, members


def read_entries(parts: Sequence[bytes], *, removed: NDArray[np.uint32]) -> Entries:
    """What several segments hold of one term, without the chunks that are gone (`removed`, ascending)."""
    entries = np.frombuffer(b"".join(parts), dtype=ENTRY)
    numbers = np.ascontiguousarray(entries["number"])
    if len(parts) > 1 and len(numbers) > 1 and np.any(numbers[1:] < numbers[:-1]):
        order = np.argsort(numbers, kind="stable")
        entries, numbers = entries[order], numbers[order]
    # The few that are gone are looked up among the many that are there, and not the other way round.
    first, after = (np.searchsorted(numbers, removed, side=side) for side in ("left", "right"))
    held = after - first
    if not held.any():
        return entries
    kept = np.ones(len(entries), dtype=np.bool_)
    kept[np.repeat(after - np.cumsum(held), held) + np.arange(held.sum())] = False
    # As numbers: records are copied one by one.
    return entries.view(np.uint64)[kept].view(ENTRY)


def read_members(parts: Iterable[bytes]) -> Members:
    """What several segments add, or take away."""
    members = np.frombuffer(b"".join(parts), dtype=MEMBER)
    return members[np.argsort(members["number"], kind="stable")]


def among(numbers: NDArray[np.uint32], wanted: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """Which numbers are among the wanted ones, which are ascending."""
    if not len(wanted):
        return np.zeros(len(numbers), dtype=np.bool_)
    at = np.minimum(np.searchsorted(wanted, numbers), len(wanted) - 1)
    found: NDArray[np.bool_] = wanted[at] == numbers
    return found
