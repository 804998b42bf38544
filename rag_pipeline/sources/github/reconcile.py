"""Reconciliation: what exists on GitHub against what the mirror and the index hold.

Deletions, transfers and edits that moved no time leave no trace in what changed lately, so everything is listed. What a
listing lacks is only a suspicion, since a page may slip while it is read: each is asked for by itself before it is
removed. Where too much is missing, nothing of that is removed until somebody confirms it (`removals`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from rag_pipeline.errors import QuotaExhausted, TransientError
from rag_pipeline.settings import GitHub
from rag_pipeline.sources.github.client import GitHubClient
from rag_pipeline.sources.github.fetch import ThreadUpdate, note_outcome
from rag_pipeline.sources.github.listings import COMMENTS, ISSUES, PULLS, REVIEW_COMMENTS, FetchReport, Listing, Reader
from rag_pipeline.sources.github.mirror import GitHubMirror
from rag_pipeline.sources.github.removals import Guard, Withheld
from rag_pipeline.sources.github.threads import bury


@dataclass(slots=True, kw_only=True)
class ReconcileReport:
    """What a comparison with GitHub found."""

    fetched: FetchReport = field(default_factory=FetchReport)
    listed: dict[str, int] = field(default_factory=dict)
    """By kind: how many GitHub has."""

    @property
    def withheld(self) -> list[Withheld]:
        """What seems to be gone and is too much to be removed without confirmation."""
        return self.fetched.withheld

    @property
    def removed_threads(self) -> list[int]:
        """Numbers of the issues and pull requests that are gone."""
        return sorted(self.fetched.removed_threads)

    @property
    def removed_comments(self) -> int:
        """Comments and reviews that are gone, without those that went with their threads."""
        return self.fetched.removed_comments


def reconcile(
    mirror: GitHubMirror,
    client: GitHubClient,
    *,
    limits: GitHub,
    indexed: Collection[tuple[str, int]],
    confirmed: bool,
    now: datetime,
) -> ReconcileReport:
    """List everything that exists, and mark what does not any more as gone.

    Args:
        indexed: (kind, number) of the threads that the index shows, for those that this mirror never saw.
        confirmed: remove even more than the threshold; each removal is still asked for by itself.

    Raises:
        SourceNotFound, ConfigError: as `fetch` does.
    """
    report = ReconcileReport()
    with mirror.locked():
        identity = mirror.recognise(client)
        with mirror.open() as store:
            reader = Reader(store, client, repository=identity.full_name, now=now, report=report.fetched)
            update = ThreadUpdate(reader, identity, now=now)
            guard = Guard(store, limits, now=now, confirmed=confirmed)
            try:
                _Comparison(reader, update, report, guard).run(indexed=indexed)
                update.conclude(mirror, limits=limits, confirmed=confirmed)
            except (QuotaExhausted, TransientError) as error:
                report.fetched.stopped = str(error)
            note_outcome(store, report.fetched)
    return report


class _Comparison:
    """One run over all listings of a repository."""

    def __init__(self, reader: Reader, update: ThreadUpdate, report: ReconcileReport, guard: Guard) -> None:
        self._reader = reader
        self._store = reader.store
        self._update = update
        self._report = report
        self._guard = guard

    def run(self, *, indexed: Collection[tuple[str, int]]) -> None:
        self._try_again()
        # Known before the first page is asked for: what is created meanwhile cannot be missed.
        known = {kind: self._store.living(kind) for kind in ("issue", "comment", "review_comment")}
        strangers = self._strangers(indexed, known["issue"])
        listed = {listing.kind: self._reader.read_all(listing) for listing in (ISSUES, COMMENTS, REVIEW_COMMENTS)}
        self._report.listed = {kind: len(ids) for kind, ids in listed.items()}
        self._reader.read_all(PULLS)
        missing = {*known["issue"], *strangers} - listed["issue"]
        self._look_for_threads(sorted(missing), strangers)
        # Of many comments a thread's own count tells that they are gone.
        self._update.finish()
        for listing in (COMMENTS, REVIEW_COMMENTS):
            # Those of a thread that is missing too stay or go with it.
            living = self._store.living(listing.kind).items()
            numbers = {id_: number for id_, number in living if id_ in known[listing.kind] and number not in missing}
            lacking = sorted(numbers.keys() - listed[listing.kind])
            self._look_for_comments(listing, {id_: numbers[id_] for id_ in lacking})
        self._update.finish()
        self._sweep_reviews()

    def _try_again(self) -> None:
        """Forget the problems, which are met again if they are still there; files are asked for only when touched."""
        with self._store.transaction():
            self._store.touch(*(int(n[6:]) for n, _ in self._store.problems() if n.startswith("files ")))
            self._store.clear_problems()

    def _strangers(self, indexed: Collection[tuple[str, int]], known: Collection[int]) -> dict[int, str]:
        """Kind by number of the threads that the index shows and the mirror does not."""
        strangers = {}
        for kind, number in indexed:
            if number in known:
                continue
            thread = self._store.thread(kind, number)
            if thread is None or not thread.deleted:
                strangers[number] = kind
            else:
                # The index was not told that it is gone, or has forgotten.
                with self._store.transaction():
                    bury(self._store, kind, number, now=self._reader.now, again=True)
        return strangers

    def _look_for_threads(self, numbers: Collection[int], strangers: Mapping[int, str]) -> None:
        """Ask for each thread that the listing lacks; of too many, it is enough to know that they are too many."""
        is_asked = not self._guard.exceeds("issue", numbers)
        for number in numbers:
            if not is_asked or not self._update.exists(number):
                self._update.bury(number, kind=strangers.get(number, ""))

    def _look_for_comments(self, listing: Listing, numbers: Mapping[int, int]) -> None:
        """As `_look_for_threads`, for comments with the numbers of their threads."""
        found = {i: n for i, n in numbers.items() if self._store.suspected_at(listing.kind, i) != self._reader.seen_at}
        is_asked = not self._guard.exceeds(listing.kind, found)
        for id_, number in found.items():
            if not is_asked or not self._reader.exists(listing.path, id_):
                with self._store.transaction():
                    self._reader.remove(listing.kind, id_, number=number)

    def _sweep_reviews(self) -> None:
        """Reviews have no listing: every pull request is asked, most answer that nothing changed."""
        threads = self._store.threads()
        pulls = sorted(found.number for found in threads if found.kind == "pull_request" and not found.deleted)
        begin = int(self._store.note("swept") or 0)
        for number in [n for n in pulls if n > begin and not self._store.suspected_at("issue", n)]:
            self._update.attempt(number, self._update.read_reviews)
            self._store.set_note("swept", str(number))
        self._store.set_note("swept", None)
        self._update.finish()
