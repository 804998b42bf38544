"""Bringing a mirror up to date: what changed since the last time, and exactly the threads it touches.

The listings of the whole repository come first; a pull request that was touched is then asked for its reviews and, when
its head moved, for its files. A thread is settled once all of it has been read. Whatever ends the reading early, the
next one goes on from there.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from rag_pipeline.errors import QuotaExhausted, ResourceGone, TransientError
from rag_pipeline.sources.github import resources
from rag_pipeline.sources.github.client import GitHubClient, Page
from rag_pipeline.sources.github.listings import SINCE_LISTINGS, FetchReport, Reader
from rag_pipeline.sources.github.mirror import GitHubMirror
from rag_pipeline.sources.github.store import Store
from rag_pipeline.sources.github.threads import Identity, bury, kind_of, settle


def fetch(mirror: GitHubMirror, client: GitHubClient, *, now: datetime) -> FetchReport:
    """Read what changed on GitHub into the mirror.

    An exhausted quota, and errors that may pass by themselves, end the reading; the report says so.

    Raises:
        SourceNotFound: there is no such repository, or the token may not read it.
        ConfigError: the token is refused.
    """
    report = FetchReport()
    with mirror.locked():
        identity = mirror.recognise(client)
        with mirror.open() as store:
            reader = Reader(store, client, repository=identity.full_name, now=now, report=report)
            update = ThreadUpdate(reader, identity, now=now)
            try:
                for listing in SINCE_LISTINGS:
                    reader.read_since(listing)
                reader.read_pulls()
                update.finish(store.touched("thread"))
            except (QuotaExhausted, TransientError) as error:
                report.stopped = str(error)
            note_outcome(store, report)
    return report


def fetch_threads(mirror: GitHubMirror, client: GitHubClient, numbers: Iterable[int], *, now: datetime) -> FetchReport:
    """Read single threads whole, as deliveries ask for; raises as `fetch` does, and what may pass by itself too."""
    report = FetchReport()
    with mirror.locked():
        identity = mirror.recognise(client)
        with mirror.open() as store:
            reader = Reader(store, client, repository=identity.full_name, now=now, report=report)
            update = ThreadUpdate(reader, identity, now=now)
            for number in sorted(set(numbers)):
                update.read_whole(number)
    return report


def note_outcome(store: Store, report: FetchReport) -> None:
    """Keep how the reading ended, for whoever looks at the mirror next."""
    report.waiting = len(store.touched("thread"))
    with store.transaction():
        store.set_note("stopped", report.stopped or None)
        for name, reason in report.malformed:
            store.set_problem(name, reason)


class ThreadUpdate:
    """Completes and settles threads that were touched."""

    def __init__(self, reader: Reader, identity: Identity, *, now: datetime) -> None:
        self._reader = reader
        self._store = reader.store
        self._identity = identity
        self._now = now

    def finish(self, numbers: Iterable[int]) -> None:
        """Read what these threads lack, and settle them."""
        pulls = []
        for number in numbers:
            head = self._store.body("issue", number)
            if head is None:
                # A comment that came before its thread; or a thread of a kind that has no listing, settled elsewhere.
                self._settle_gone(number)
            elif head.get("is_pull_request"):
                pulls.append(number)
            else:
                self._count_comments(number, head)
                self._settle("issue", number)
        for number in pulls:
            self._finish_pull(number)

    def read_whole(self, number: int) -> None:
        """Everything of one thread, from the API; one that is gone is buried."""
        page = self._head_page(number)
        if page is None:
            self.bury(number)
            return
        head = resources.issue(page.data)
        with self._store.transaction():
            self._reader.keep(head, revive=True)
            self._store.touch("thread", [number])
        self._read_comments(number)
        if head.body.get("is_pull_request"):
            self._reader.keep(resources.pull(self._reader.client.get(self._path(f"/pulls/{number}")).data))
            self._read_review_comments(number)
            self._finish_pull(number)
        else:
            self._settle("issue", number)

    def bury(self, number: int) -> None:
        """A thread is gone."""
        head = self._store.body("issue", number)
        known = [kind for kind in ("issue", "pull_request") if self._store.thread(kind, number)]
        with self._store.transaction():
            for kind in known or [kind_of(head or {})]:
                self._reader.report.removed += bury(self._store, kind, number, now=self._now)
            self._store.done("thread", number)

    def exists(self, number: int) -> bool:
        """Whether GitHub still has this issue or pull request here."""
        return self._head_page(number) is not None

    def read_reviews(self, number: int) -> None:
        """All reviews of a pull request; those that are no longer listed are gone."""
        self._reader.read_of_thread(
            f"/pulls/{number}/reviews", kind="review", number=number,
            read=lambda data: resources.review(data, number=number, version=self._reader.seen_at),
        )  # fmt: skip

    def _finish_pull(self, number: int) -> None:
        pull = self._store.body("pull", number)
        if pull is None:
            # It was opened after the listing was read.
            self._reader.keep(resources.pull(self._reader.client.get(self._path(f"/pulls/{number}")).data))
            pull = self._store.body("pull", number) or {}
        head = self._store.body("issue", number) or {}
        self._count_comments(number, head)
        if self._store.thread("pull_request", number) and self._store.living_of("review_comment", number):
            # Nothing else tells that one was deleted.
            self._read_review_comments(number)
        self.read_reviews(number)
        known = self._store.body("files", number)
        pull_head, pull_base = _mapping(pull.get("head")), _mapping(pull.get("base"))
        if known is None or (known.get("head"), known.get("base")) != (pull_head.get("sha"), pull_base.get("ref")):
            self._reader.read_files(number, pull_head, pull_base)
        self._settle("pull_request", number)

    def _count_comments(self, number: int, head: resources.Body) -> None:
        """GitHub says how many comments there are: another number than we know means that one was deleted."""
        said = head.get("comments")
        if isinstance(said, int) and said != len(self._store.living_of("comment", number)):
            self._read_comments(number)

    def _read_comments(self, number: int) -> None:
        self._reader.read_of_thread(
            f"/issues/{number}/comments", kind="comment", number=number,
            read=lambda data: resources.comment(data, number=number),
        )  # fmt: skip

    def _read_review_comments(self, number: int) -> None:
        self._reader.read_of_thread(
            f"/pulls/{number}/comments", kind="review_comment", number=number,
            read=lambda data: resources.review_comment(data, number=number),
        )  # fmt: skip

    def _settle(self, kind: str, number: int) -> None:
        with self._store.transaction():
            self._reader.report.settled += settle(self._store, kind, number, identity=self._identity, now=self._now)
            self._store.done("thread", number)

    def _settle_gone(self, number: int) -> None:
        if self._store.is_deleted("issue", number):
            self._store.done("thread", number)

    def _head_page(self, number: int) -> Page | None:
        """The issue's answer; None when it was deleted, transferred or made a discussion."""
        try:
            page = self._reader.client.get(self._path(f"/issues/{number}"))
        except ResourceGone:
            return None
        about = _mapping(page.data)
        where = str(about.get("repository_url", ""))
        if where and not where.lower().endswith(f"/repos/{self._identity.full_name.lower()}"):
            return None
        return page if about.get("number") == number else None

    def _path(self, path: str) -> str:
        return f"/repos/{self._identity.full_name}{path}"


def _mapping(value: object) -> dict[str, object]:
    return value if isinstance(value, dict) else {}
