"""Postings of terms that were read before, for as long as the segments that they were read from are all there is.

Segments are immutable, so what was read of them stays true; any write adds a segment, and with it another key. What a
key holds is only ever asked for by who was shown the same segments by row-level security.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from threading import Lock
from typing import Final

from rag_pipeline.lexical.bm25 import Term

_MOST_BYTES: Final = 128 * 1024 * 1024


class TermCache:
    """Terms by the segments they were read from, those that were used last; safe to share between threads."""

    def __init__(self, *, most_bytes: int = _MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._terms: OrderedDict[tuple[Hashable, str], Term] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    def get(self, segments: Hashable, term: str) -> Term | None:
        """What is known of a term in these segments."""
        with self._lock:
            found = self._terms.get((segments, term))
            if found is not None:
                self._terms.move_to_end((segments, term))
            return found

    def put(self, segments: Hashable, term: Term) -> None:
        """Remember a term; what was not used for longest makes room for it."""
        with self._lock:
            known = self._terms.pop((segments, term.text), None)
            self._bytes += term.nbytes - (known.nbytes if known else 0)
            self._terms[segments, term.text] = term
            while self._bytes > self._most_bytes:
                _, dropped = self._terms.popitem(last=False)
                self._bytes -= dropped.nbytes


SHARED: Final = TermCache()
"""Of this process."""
