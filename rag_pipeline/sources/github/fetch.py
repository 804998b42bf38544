"""Bringing a mirror up to date: what changed since the last time, and exactly the threads it touches.

The listings of the whole repository come first; a pull request that was touched is then asked for its reviews and, when
its head moved, for its files. A thread is settled once all of it has been read. Whatever ends the reading early, the
next one goes on from there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime

from rag_pipeline.errors import PermanentError, QuotaExhausted, ResourceGone, TransientError
from rag_pipeline.sources.github import resources
from rag_pipeline.sources.github.client import GitHubClient, Page
from rag_pipeline.sources.github.listings import REVIEW_COMMENTS, SINCE_LISTINGS, FetchReport, Reader
from rag_pipeline.sources.github.mirror import GitHubMirror
from rag_pipeline.sources.github.store import Store
from rag_pipeline.sources.github.threads import Identity, bury, kind_of, settle

_SAID = ("comment", "review", "review_comment")
_MOST_FAILURES = 3
"""Of threads in a row, for reasons that may pass by themselves: more mean that it is not the thread's fault."""


def fetch(mirror: GitHubMirror, client: GitHubClient, *, now: datetime) -> FetchReport:
    """Read what changed on GitHub into the mirror.

    An exhausted quota, and errors that may pass by themselves, end the reading; the report says so. A thread that
    cannot be read stops no other: it is noted as a problem, and the next reading tries it again.

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
                update.finish()
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
    report.waiting = len(store.touched())
    store.set_note("stopped", report.stopped or None)


class ThreadUpdate:
    """Completes and settles threads that were touched."""

    def __init__(self, reader: Reader, identity: Identity, *, now: datetime) -> None:
        self._reader = reader
        self._store = reader.store
        self._identity = identity
        self._now = now

    def finish(self) -> None:
        """Read what the touched threads lack, and settle them: issues first, which mostly lack nothing."""
        self._follow_rename()
        touched = self._store.touched()
        pulls = [number for number in touched if self._head(number).get("is_pull_request")]
        failures = 0
        for number in [*(number for number in touched if number not in set(pulls)), *pulls]:
            failure = self.attempt(number, self._finish)
            failures = failures + 1 if isinstance(failure, TransientError) else 0
            if failures == _MOST_FAILURES:
                raise TransientError(f"{failures} threads in a row could not be read: {failure}")

    def attempt(self, number: int, read: Callable[[int], None]) -> Exception | None:
        """Read something of a thread; what went wrong is noted and given back, unless it ends all reading."""
        try:
            read(number)
        except QuotaExhausted:
            raise
        except (TransientError, PermanentError) as error:
            if isinstance(error, ResourceGone) and not self.exists(number):
                self.bury(number)
                return None
            self._reader.note_problem(f"thread {number}", error)
            return error
        return None

    def read_whole(self, number: int) -> None:
        """Everything of one thread, from the API; one that is gone is buried."""
        page = self._head_page(number)
        if page is None:
            self.bury(number)
            return
        head = resources.issue(page.data)
        with self._store.transaction():
            self._reader.keep(head)
            self._store.touch(number)
        if head.body["comments"] != 0 or self._store.living_of("comment", number):
            self._read_comments(number, said=head.body["comments"])
        if head.body["is_pull_request"]:
            self._finish_pull(number, whole=True)
        else:
            self._settle("issue", number)

    def bury(self, number: int, *, kind: str = "") -> None:
        """A thread is gone; `kind` says of which kind it was, if it was never seen here."""
        known = [each for each in ("issue", "pull_request") if self._store.thread(each, number)]
        with self._store.transaction():
            for each in known or [kind or kind_of(self._head(number))]:
                if bury(self._store, each, number, now=self._now):
                    self._reader.report.removed_threads.append(number)
            self._store.done(number)

    def exists(self, number: int) -> bool:
        """Whether GitHub still has this issue or pull request here."""
        return self._head_page(number) is not None

    def read_reviews(self, number: int) -> None:
        """All reviews of a pull request; those that are no longer listed are gone."""
        version, path = str(self._head(number).get("updated_at", "")), f"/pulls/{number}/reviews"
        self._reader.read_of_thread(
            path, kind="review", number=number, single=path,
            read=lambda data: resources.review(data, number=number, version=version),
        )  # fmt: skip

    def _follow_rename(self) -> None:
        """Bring the repository's new name into the threads that show the former one; nothing is asked for."""
        shown = f"{self._identity.full_name} {self._identity.html_url}"
        if self._store.note("shown_as") == shown:
            return
        waiting = set(self._store.touched())
        with self._store.transaction():
            for thread in self._store.threads():
                if not thread.deleted and thread.number not in waiting:
                    self._settle(thread.kind, thread.number)
            self._store.set_note("shown_as", shown)

    def _finish(self, number: int) -> None:
        head = self._head(number)
        if head.get("is_pull_request"):
            self._finish_pull(number)
        elif head:
            self._count_comments(number, head)
            self._settle("issue", number)
        elif self._store.is_deleted("issue", number) or not any(self._store.living_of(k, number) for k in _SAID):
            self._store.done(number)
        # Else something was said in a thread that is not known yet: it waits for it.

    def _finish_pull(self, number: int, *, whole: bool = False) -> None:
        """Read what a pull request lacks, or with `whole` what may have changed, and settle it."""
        said = None
        if whole or self._store.body("pull", number) is None:  # It may have been opened after the listing was read.
            said = self._read_pull(number)
        if not whole:
            self._count_comments(number, self._head(number))
        known = self._store.thread("pull_request", number)
        is_old = known or str(self._head(number).get("updated_at")) > self._reader.begun(REVIEW_COMMENTS)
        # Nothing else tells that one was deleted.
        may_lack = is_old and bool(self._store.living_of("review_comment", number))
        if (whole and said != 0) or may_lack or (known and known.deleted):
            self._read_review_comments(number, said=said)
        self.read_reviews(number)
        self._read_files(number)
        self._settle("pull_request", number)

    def _count_comments(self, number: int, head: resources.Body) -> None:
        """GitHub says how many comments there are: another number than we know means that one was deleted."""
        said = head.get("comments")
        if isinstance(said, int) and said != len(self._store.living_of("comment", number)):
            self._read_comments(number, said=said)

    def _read_comments(self, number: int, *, said: object) -> None:
        self._reader.read_of_thread(
            f"/issues/{number}/comments", kind="comment", number=number, single="/issues/comments", said=said,
            read=lambda data: resources.comment(data, number=number),
        )  # fmt: skip

    def _read_review_comments(self, number: int, *, said: object) -> None:
        self._reader.read_of_thread(
            f"/pulls/{number}/comments", kind="review_comment", number=number, single="/pulls/comments", said=said,
            read=lambda data: resources.review_comment(data, number=number),
        )  # fmt: skip

    def _read_pull(self, number: int) -> object:
        """What a pull request has beyond an issue; how many review comments GitHub says that it has."""
        data = self._reader.client.get(self._path(f"/pulls/{number}")).data
        self._reader.keep(resources.pull(data))
        return _mapping(data).get("review_comments")

    def _read_files(self, number: int) -> None:
        """The list of files, when the head or the base is another one than it was read for."""
        pull, known = self._store.body("pull", number) or {}, self._store.body("files", number)
        head, base = str(_mapping(pull.get("head")).get("sha", "")), str(_mapping(pull.get("base")).get("ref", ""))
        if known is not None and (known.get("head"), known.get("base")) == (head, base):
            return
        try:
            self._reader.read_files(number, head=head, base=base)
        except ResourceGone:
            raise
        except PermanentError as error:
            # GitHub refuses to list the files of some very large changes; the conversation is worth having without.
            self._reader.note_problem(f"files {number}", error)

    def _settle(self, kind: str, number: int) -> None:
        with self._store.transaction():
            self._reader.report.settled += settle(self._store, kind, number, identity=self._identity, now=self._now)
            self._store.done(number)
            self._store.clear_problem(f"thread {number}")

    def _head(self, number: int) -> resources.Body:
        return self._store.body("issue", number) or {}

    def _head_page(self, number: int) -> Page | None:
        """The issue's answer; None when it was deleted, transferred or made a discussion."""
        try:
            page = self._reader.client.get(self._path(f"/issues/{number}"))
        except ResourceGone:
            return None
        about, identity = _mapping(page.data), self._identity
        if not isinstance(about.get("number"), int):
            raise TransientError(f"{page.url} should be an issue, but GitHub sent something else: try again")
        where = str(about.get("repository_url", "")).lower()
        # A repository that is renamed while it is read redirects to its number, a transferred issue to another one's.
        is_here = where.endswith(f"/repos/{identity.full_name.lower()}") or f"/repositories/{identity.id}/" in page.url
        return page if about.get("number") == number and (is_here or not where) else None

    def _path(self, path: str) -> str:
        return f"/repos/{self._identity.full_name}{path}"


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}
