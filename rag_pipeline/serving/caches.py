"""What was found and answered before, for as long as the index has not changed since.

An entry is good only in the state of the index that was read before it was made, so whatever was written since then
makes it another question. Whose it is and what they may see is part of its key: nobody is given what was made for
others. What came about in trouble is not kept.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from threading import Lock
from typing import Final, Generic, Literal, TypeVar

from rag_pipeline.answering.answerer import Looked, Question
from rag_pipeline.index.changes import IndexState
from rag_pipeline.model import Answer, SearchHit
from rag_pipeline.retrieval.known_sources import KnownSource
from rag_pipeline.retrieval.query import SearchQuery
from rag_pipeline.retrieval.retriever import Found

V = TypeVar("V")
_MOST_CHARS: Final = 50_000_000
"""Of texts in one cache, however few its entries are."""
_HIT_CHARS: Final = 1_000  # of a hit without its text, roughly


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """Who asks, and all that decides what the answer is."""

    tenant: str
    asked: Hashable


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """An answer, and what it was made from."""

    looked: Looked | None
    """None: nothing was looked up for it."""
    answer: Answer


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry(Generic[V]):
    value: V
    state: IndexState
    made_at: float
    chars: int


class Cache(Generic[V]):
    """The last values by their keys; safe to share between threads.

    `most` of them (0: none), for `ttl_s` seconds of `monotonic` at most, and of no more than `most_chars` together, as
    `size` counts them. `looked` is told of each look whether something was there.
    """

    def __init__(
        self, *, most: int, ttl_s: float, monotonic: Callable[[], float], size: Callable[[V], int] = lambda _: 0,
        most_chars: int = _MOST_CHARS, looked: Callable[[bool], object] = lambda hit: None,
    ) -> None:  # fmt: skip
        self._most = most
        self._looked = looked
        self._ttl_s = ttl_s
        self._monotonic = monotonic
        self._size = size
        self._most_chars = most_chars
        self._entries: OrderedDict[Key, _Entry[V]] = OrderedDict()
        self._chars = 0
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: Key, state: IndexState) -> V | None:
        """What was kept for this key in this state of the index."""
        with self._lock:
            found = self._entries.get(key)
            is_good = found is not None and self._is_good(found, state)
            if is_good:
                self._entries.move_to_end(key)
        self._looked(is_good)
        return found.value if found is not None and is_good else None

    def put(self, key: Key, state: IndexState, value: V) -> None:
        """Keep a value that was made after `state` was read; what this tenant had in other states goes."""
        entry = _Entry(value=value, state=state, made_at=self._monotonic(), chars=self._size(value))
        with self._lock:
            mine = [k for k, e in self._entries.items() if k.tenant == key.tenant and not self._is_good(e, state)]
            for old in mine:
                self._remove(old)
            if not self._most or entry.chars > self._most_chars:
                return
            self._remove(key)
            self._entries[key] = entry
            self._chars += entry.chars
            while len(self._entries) > self._most or self._chars > self._most_chars:
                self._remove(next(iter(self._entries)))

    def _is_good(self, entry: _Entry[V], state: IndexState) -> bool:
        return entry.state == state and self._monotonic() - entry.made_at < self._ttl_s

    def _remove(self, key: Key) -> None:
        gone = self._entries.pop(key, None)
        self._chars -= gone.chars if gone else 0


class Caches:
    """The caches of a service; `looked` is told of each look which cache it was, and whether something was there."""

    def __init__(
        self, *, most: int, ttl_s: float, monotonic: Callable[[], float],
        looked: Callable[[Literal["results", "answers"], bool], object] = lambda cache, hit: None,
    ) -> None:  # fmt: skip
        self.results: Cache[Found] = Cache(
            most=most, ttl_s=ttl_s, monotonic=monotonic, size=lambda found: _chars_of(found.hits),
            looked=lambda hit: looked("results", hit),
        )  # fmt: skip
        self.answers: Cache[Answered] = Cache(
            most=most, ttl_s=ttl_s, monotonic=monotonic, size=_chars_of_answer,
            looked=lambda hit: looked("answers", hit),
        )  # fmt: skip
        self.sources: Cache[Sequence[KnownSource]] = Cache(most=most, ttl_s=ttl_s, monotonic=monotonic)


def query_key(query: SearchQuery, *, settings: str) -> Key:
    """The key of a search: all that the query says, whatever it may come to say, and the fingerprint of `settings`."""
    return Key(tenant=query.tenant, asked=(settings, _of_query(query)))


def question_key(question: Question, *, settings: str) -> Key:
    """The key of an answer."""
    return Key(tenant=question.query.tenant, asked=(settings, _of_query(question.query), _frozen(question.history)))


def sources_key(tenant: str, scopes: Sequence[str]) -> Key:
    """The key of a list of sources."""
    return Key(tenant=tenant, asked=tuple(sorted(set(scopes))))


def _of_query(query: SearchQuery) -> Hashable:
    # In which order somebody names their scopes does not matter; of all else it might.
    parts = {field.name: getattr(query, field.name) for field in fields(query)}
    return _frozen(parts | {"scopes": sorted(set(query.scopes))})


def _frozen(value: object) -> Hashable:
    """A value to look up; equal ones are equal in kind, too, as `1` and `True` are not."""
    if isinstance(value, str):
        return value
    if is_dataclass(value) and not isinstance(value, type):
        return (type(value).__name__, *(_frozen(getattr(value, field.name)) for field in fields(value)))
    if isinstance(value, Mapping):
        return ("{}", *sorted((str(key), _frozen(item)) for key, item in value.items()))
    if isinstance(value, Sequence):
        return ("[]", *(_frozen(item) for item in value))
    return (type(value).__name__, value)


def _chars_of(hits: Sequence[SearchHit]) -> int:
    return sum(len(hit.text) + _HIT_CHARS for hit in hits)


def _chars_of_answer(answered: Answered) -> int:
    # Hits that an answer cites are those that were looked at.
    return len(answered.answer.text) + (_chars_of(answered.looked.hits) if answered.looked else 0)
