"""Reconciliation: what exists on GitHub against what the mirror and the index hold.

Deletions, transfers and edits that moved no time leave no trace in what changed lately, so everything is listed. What a
listing lacks is only a suspicion, since a page may slip while it is read: each is asked for by itself before it is
removed. A listing that lacks too much is not believed at all.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from datetime import datetime

from rag_pipeline.errors import QuotaExhausted, ResourceGone, TransientError
from rag_pipeline.settings import GitHub
from rag_pipeline.sources.github.client import GitHubClient
from rag_pipeline.sources.github.fetch import ThreadUpdate, note_outcome
from rag_pipeline.sources.github.listings import COMMENTS, ISSUES, PULLS, REVIEW_COMMENTS, FetchReport, Listing, Reader
from rag_pipeline.sources.github.mirror import GitHubMirror
from rag_pipeline.sources.github.threads import bury

_NAMES = {"issue": "issues and pull requests", "comment": "comments", "review_comment": "review comments"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Withheld:
    """A removal that was too large to be believed."""

    kind: str
    missing: int
    known: int

    def __str__(self) -> str:
        return f"{self.missing} of {self.known} {_NAMES[self.kind]} are missing from GitHub's listing"


@dataclass(slots=True, kw_only=True)
class ReconcileReport:
    """What a comparison with GitHub found."""

    fetched: FetchReport = field(default_factory=FetchReport)
    listed: dict[str, int] = field(default_factory=dict)
    """By kind: how many GitHub has."""
    removed_threads: list[int] = field(default_factory=list)
    removed_comments: int = 0
    withheld: list[Withheld] = field(default_factory=list)


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
            comparison = _Comparison(reader, ThreadUpdate(reader, identity, now=now), report)
            try:
                comparison.run(limits=limits, indexed=indexed, confirmed=confirmed)
            except (QuotaExhausted, TransientError) as error:
                report.fetched.stopped = str(error)
            note_outcome(store, report.fetched)
    return report


class _Comparison:
    """One run over all listings of a repository."""

    def __init__(self, reader: Reader, update: ThreadUpdate, report: ReconcileReport) -> None:
        self._reader = reader
        self._store = reader.store
        self._update = update
        self._report = report

    def run(self, *, limits: GitHub, indexed: Collection[tuple[str, int]], confirmed: bool) -> None:
        self._store.clear_problems()
        # Known before the first page is asked for: what is created meanwhile cannot be missed.
        known = {kind: self._store.living(kind) for kind in ("issue", "comment", "review_comment")}
        strangers = {number: kind for kind, number in indexed if number not in known["issue"]}
        missing: dict[str, list[int]] = {}
        for listing in (ISSUES, COMMENTS, REVIEW_COMMENTS):
            listed = self._reader.read_all(listing)
            self._report.listed[listing.kind] = len(listed)
            candidates = {*known[listing.kind], *(strangers if listing is ISSUES else ())} - listed
            if self._is_believed(listing, candidates, len(known[listing.kind]), limits=limits, confirmed=confirmed):
                missing[listing.kind] = sorted(candidates)
        self._reader.read_all(PULLS)
        self._remove_threads(missing.get("issue", ()), strangers)
        gone = set(self._report.removed_threads)
        for listing in (COMMENTS, REVIEW_COMMENTS):
            ids = [id_ for id_ in missing.get(listing.kind, ()) if known[listing.kind][id_] not in gone]
            self._remove_comments(listing, ids)
        self._update.finish(self._store.touched("thread"))
        self._sweep_reviews()

    def _is_believed(
        self, listing: Listing, candidates: Collection[int], known: int, *, limits: GitHub, confirmed: bool
    ) -> bool:
        many = len(candidates) > limits.max_removed_items and len(candidates) > limits.max_removed_share * max(known, 1)
        if many and not confirmed:
            self._report.withheld.append(Withheld(kind=listing.kind, missing=len(candidates), known=known))
            return False
        return True

    def _remove_threads(self, numbers: Iterable[int], strangers: dict[int, str]) -> None:
        for number in numbers:
            if self._update.exists(number):
                continue
            if number in strangers:
                with self._store.transaction():
                    bury(self._store, strangers[number], number, now=self._reader.now)
            else:
                self._update.bury(number)
            self._report.removed_threads.append(number)

    def _remove_comments(self, listing: Listing, ids: Iterable[int]) -> None:
        numbers = self._store.living(listing.kind)
        for id_ in ids:
            if self._comment_exists(listing, id_):
                continue
            number = numbers[id_]
            with self._store.transaction():
                if self._store.delete(listing.kind, id_, number=number, at=self._reader.seen_at):
                    self._report.removed_comments += 1
                    self._store.touch("thread", [number])

    def _comment_exists(self, listing: Listing, id_: int) -> bool:
        try:
            self._reader.client.get(f"/repos/{self._reader.repository}{listing.path}/{id_}")
        except ResourceGone:
            return False
        return True

    def _sweep_reviews(self) -> None:
        """Reviews have no listing: every pull request is asked, most answer that nothing changed."""
        threads = self._store.threads()
        pulls = sorted(found.number for found in threads if found.kind == "pull_request" and not found.deleted)
        begin = int(self._store.note("swept") or 0)
        for number in [n for n in pulls if n > begin]:
            self._update.read_reviews(number)
            self._store.set_note("swept", str(number))
        self._store.set_note("swept", None)
        self._update.finish(self._store.touched("thread"))
