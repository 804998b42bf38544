"""One guard over everything that seems to be gone from GitHub: few removals are carried out, many wait.

Listings, single answers, redirects and deliveries only note what they miss (`Store.suspect`). What was noted is judged
together, at the end of a reading, a reconciliation or a batch of deliveries. What is too much waits in the mirror until
a reconciliation is told to go on, or until it is seen alive.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from rag_pipeline.settings import GitHub
from rag_pipeline.sources.github.resources import precise
from rag_pipeline.sources.github.store import Store
from rag_pipeline.sources.github.suspects import Suspect
from rag_pipeline.sources.github.threads import bury, kind_of

CONFIRM: Final = "if that is right, run `rag-pipeline reconcile --confirm-removals`"
# A removal in many small portions counts as the one that it is.
_WINDOW: Final = timedelta(days=1)
_HEADS: Final = ("issue", "discussion", "release")
_NAMES: Final = {
    "issue": "issues and pull requests",
    "comment": "comments",
    "review": "reviews",
    "review_comment": "review comments",
    "discussion": "discussions",
    "discussion_comment": "comments on discussions",
    "release": "releases",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Withheld:
    """A removal that was too large to be believed."""

    kind: str
    missing: int
    known: int

    def __str__(self) -> str:
        return f"{self.missing} of {self.known} {_NAMES[self.kind]} are missing from GitHub's listing"


@dataclass(slots=True, kw_only=True)
class Removed:
    """What carrying out removals did."""

    threads: list[int]
    """Numbers of the issues and pull requests that are gone."""
    comments: int = 0
    """Comments and reviews that are gone, without those that went with their threads."""


class Guard:
    """Judges what seems to be gone; `confirmed` lets more go than the limits allow."""

    def __init__(self, store: Store, limits: GitHub, *, now: datetime, confirmed: bool = False) -> None:
        self._store = store
        self._limits = limits
        self._now = now
        self._confirmed = confirmed

    def exceeds(self, kind: str, ids: Collection[int]) -> bool:
        """Whether these would be too many of a kind, with those that seem to be gone already."""
        waiting = {suspect.id for suspect in self._store.suspects() if suspect.kind == kind}
        return not self._confirmed and self._judge(kind, len(waiting | set(ids))) is not None

    def withheld(self) -> list[Withheld]:
        """The kinds of which too much seems to be gone; what a thread holds counts with the thread."""
        if self._confirmed:
            return []
        heads, suspects = self._heads(), self._store.suspects()
        missing = Counter(s.kind for s in suspects if s.kind in _HEADS or s.number not in heads)
        return [found for kind in sorted(missing) if (found := self._judge(kind, missing[kind]))]

    def due(self) -> list[Suspect]:
        """What may be removed now: threads first, with which everything goes that was said in them."""
        withheld = {found.kind for found in self.withheld()}
        heads = self._heads() if "issue" in withheld else set()
        due = [
            suspect
            for suspect in self._store.suspects()
            if suspect.kind not in withheld and (suspect.kind in _HEADS or suspect.number not in heads)
        ]
        return sorted(due, key=lambda suspect: (suspect.kind not in _HEADS, suspect.kind, suspect.id))

    def carry_out(self, suspect: Suspect, removed: Removed) -> None:
        """Remove it from the mirror for good, and note which thread that touches."""
        store, at = self._store, precise(self._now)
        with store.transaction():
            store.forget_removals(precise(self._now - _WINDOW))
            if suspect.kind in _HEADS:
                gone = [bury(store, kind, suspect.number, now=self._now) for kind in self._kinds(suspect)]
                if any(gone) and suspect.kind == "issue":
                    removed.threads.append(suspect.number)
                store.done(suspect.number)
            elif store.delete(suspect.kind, suspect.id, number=suspect.number, at=at):
                removed.comments += 1
                store.touch(suspect.number)
            else:  # It went with its thread.
                store.clear(suspect.kind, [suspect.id])
            if self._confirmed:
                store.clear(suspect.kind, [suspect.id])
            else:
                store.removed(suspect, at=at)

    def _judge(self, kind: str, missing: int) -> Withheld | None:
        removed = self._store.removed_since(precise(self._now - _WINDOW)).get(kind, 0)
        missing, known = missing + removed, len(self._store.living(kind)) + removed
        items, share = self._limits.max_removed_items, self._limits.max_removed_share
        too_many = missing > items and missing > share * max(known, 1)
        return Withheld(kind=kind, missing=missing, known=known) if too_many else None

    def _heads(self) -> set[int]:
        return {suspect.number for suspect in self._store.suspects() if suspect.kind == "issue"}

    def _kinds(self, suspect: Suspect) -> list[str]:
        if suspect.kind != "issue":
            return [suspect.kind]
        known = [each for each in ("issue", "pull_request") if self._store.thread(each, suspect.number)]
        return known or [suspect.thread_kind or kind_of(self._store.body("issue", suspect.number) or {})]
