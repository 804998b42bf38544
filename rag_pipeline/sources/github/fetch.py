"""Bringing a mirror up to date: what changed since the last time, and exactly the threads it touches.

The listings of the whole repository come first; a pull request that was touched is then asked for its reviews and, when
its head moved, for its files. A thread is settled once all of it has been read. Whatever ends the reading early, the
next one goes on from there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from rag_pipeline.errors import PermanentError, QuotaExhausted, ResourceGone, TransientError
from rag_pipeline.settings import GitHub
from rag_pipeline.sources.github import resources
from rag_pipeline.sources.github.client import GitHubClient, Page
from rag_pipeline.sources.github.listings import (
    COMMENTS,
    ISSUES,
    REVIEW_COMMENTS,
    SINCE_LISTINGS,
    FetchReport,
    Listing,
    Reader,
)
from rag_pipeline.sources.github.mirror import GitHubMirror
from rag_pipeline.sources.github.removals import Guard, Removed
from rag_pipeline.sources.github.resources import Resource
from rag_pipeline.sources.github.store import Store
from rag_pipeline.sources.github.suspects import Suspect
from rag_pipeline.sources.github.threads import Identity, bury, kind_of, settle

_SAID = ("comment", "review", "review_comment")
_MOST_ASKED = 10
"""Single things that a listing lacks, before all of it is left to reconciliation."""
_MOST_FAILURES = 3
"""Of threads in a row, for reasons that may pass by themselves: more mean that it is not the thread's fault."""


def fetch(mirror: GitHubMirror, client: GitHubClient, *, now: datetime) -> FetchReport:
    """Read what changed on GitHub into the mirror.

    An exhausted quota, and errors that may pass by themselves, end the reading; the report says so. A thread that
    cannot be read stops no other: it is noted as a problem, and the next reading tries it again. What turns out to be
    gone is removed, unless it is too much.

    Raises:
        SourceNotFound: there is no such repository, or the token may not read it.
        ConfigError: the token is refused.
    """
    report = FetchReport()
    with mirror.locked():
        try:
            identity = mirror.recognise(client)
        except QuotaExhausted as error:
            if not mirror.exists():
                raise
            report.stopped = str(error)
            with mirror.open() as store:
                note_outcome(store, report)
            return report
        with mirror.open() as store:
            reader = Reader(store, client, repository=identity.full_name, now=now, report=report)
            update = ThreadUpdate(reader, identity, now=now)
            try:
                update.read_listings()
                update.finish()
                update.conclude(mirror)
                store.set_note("complete", "1")
            except (QuotaExhausted, TransientError) as error:
                report.stopped = str(error)
            note_outcome(store, report)
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
        self._waiting: set[int] = set()
        """Threads of which something seems to be gone: they are settled when that is judged."""

    def read_listings(self) -> None:
        """Read the listings of the repository: what changed since the last time, or all, where GitHub went back."""
        loaded = self._store.note("loaded:pull") is not None
        lacking = [(listing, self._reader.read_since(listing)) for listing in SINCE_LISTINGS]
        self._reader.read_pulls()
        if loaded and self._went_back(lacking):
            # A restored server: what changed after the backup has an earlier change now, which no moment finds.
            self._reader.start_over()
            for listing in SINCE_LISTINGS:
                self._reader.read_since(listing)
            self._reader.read_pulls()

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
        """Everything of one thread, from the API; one that is gone is noted as such."""
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

    def complete(self, number: int, *, remarks: int | None) -> None:
        """Read what a thread lacks that a delivery told of, and settle it; `remarks`: its review comments, if known."""
        try:
            if not self._head(number):
                self.read_whole(number)
            elif self._head(number).get("is_pull_request"):
                self._finish_pull(number, remarks=remarks)
            else:
                self._finish(number)
        except ResourceGone:
            if self.exists(number):
                raise
            self.bury(number)

    def listed_requests(self, number: int) -> int:
        """How many requests completing a thread takes that the listings of the repository would answer as well."""
        head = self._head(number)
        lacks_pull = bool(head.get("is_pull_request")) and self._store.body("pull", number) is None
        return 2 * (not head) + self._lacks_comments(number) + lacks_pull

    def bury(self, number: int, *, kind: str = "") -> None:
        """Note that a thread seems to be gone; `kind` says of which kind it was, if it was never seen here."""
        head = self._head(number)
        with self._store.transaction():
            if head or kind:
                self._store.suspect("issue", number, number=number, thread_kind=kind, at=self._reader.seen_at)
            else:  # Nothing of it is shown anywhere; only late news must not bring it in.
                bury(self._store, kind_of(head), number, now=self._now)
            self._store.done(number)

    def conclude(self, mirror: GitHubMirror, *, limits: GitHub | None = None, confirmed: bool = False) -> None:
        """Remove what turned out to be gone, unless it is too much, and settle the threads which that touches.

        Raises:
            SourceNotFound: the whole repository is gone, or hidden: then nothing is removed.
        """
        report = self._reader.report
        guard = Guard(self._store, limits or mirror.limits, now=self._now, confirmed=confirmed)
        report.withheld = guard.withheld()
        due = [s for s in guard.due() if s.at == self._reader.seen_at or self._is_still_gone(s)]
        if any(suspect.kind == "issue" for suspect in due):
            mirror.recognise(self._reader.client)
        removed = Removed(threads=report.removed_threads)
        for suspect in due:
            guard.carry_out(suspect, removed)
        report.removed_comments += removed.comments
        discussions = {("discussion", suspect.number) for suspect in due if suspect.kind == "discussion_comment"}
        numbers = self._waiting | {suspect.number for suspect in due}
        heads = {(kind_of(head), number) for number in numbers if (head := self._head(number))}
        for kind, number in sorted(discussions | heads):
            self._settle(kind, number, finally_=True)

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
            self._count_comments(number)
            self._settle("issue", number)
        elif self._store.is_deleted("issue", number) or not any(self._store.living_of(k, number) for k in _SAID):
            self._store.done(number)
        # Else something was said in a thread that is not known yet: it waits for it.

    def _finish_pull(self, number: int, *, whole: bool = False, remarks: object = None) -> None:
        """Read what a pull request lacks, or with `whole` what may have changed, and settle it.

        `remarks` is how many review comments GitHub says that it has.
        """
        if whole or self._store.body("pull", number) is None:  # It may have been opened after the listing was read.
            remarks = self._read_pull(number)
        if not whole:
            self._count_comments(number)
        self.read_reviews(number)
        if (whole and remarks != 0) or (not whole and self._may_lack_remarks(number, remarks)):
            self._read_review_comments(number, said=remarks)
        self._read_files(number)
        self._settle("pull_request", number)

    def _may_lack_remarks(self, number: int, said: object) -> bool:
        """Whether review comments may be gone that are still kept here; new ones are in the repository's listing.

        Where GitHub does not say how many there are: when something happened that nothing else here shows, or while the
        repository was read for the first time.
        """
        held, known = len(self._living_of("review_comment", number)), self._store.thread("pull_request", number)
        if known and known.deleted:
            return True
        if isinstance(said, int) or not held:
            return isinstance(said, int) and said != held
        changed_at, begun = str(self._head(number).get("updated_at")), self._reader.begun(REVIEW_COMMENTS)
        while_loading = self._store.note("complete") is None and changed_at > begun
        return while_loading or self._store.only_moved(number)

    def _count_comments(self, number: int) -> None:
        """GitHub says how many comments there are: another number than we know means that one was deleted."""
        if self._lacks_comments(number):
            self._read_comments(number, said=self._head(number).get("comments"))

    def _lacks_comments(self, number: int) -> bool:
        said = self._head(number).get("comments")
        return isinstance(said, int) and said != len(self._living_of("comment", number))

    def _living_of(self, kind: str, number: int) -> list[int]:
        """Ids of what is kept of a thread and does not seem to be gone."""
        return [id_ for id_ in self._store.living_of(kind, number) if not self._store.suspected_at(kind, id_)]

    def _went_back(self, lacking: Sequence[tuple[Listing, Mapping[int, str]]]) -> bool:
        """Whether GitHub shows an earlier state than before; what the listings lack is asked for by itself.

        A few tell: of many that are gone, reconciliation finds the rest.
        """
        asked = 0
        for listing, versions in lacking:
            numbers = self._store.living(listing.kind)
            for id_, version in versions.items():
                number = numbers.get(id_)
                # A thread's own count tells that its comments are gone, with a request for all of them.
                told = number is None or (listing.kind == "comment" and self._lacks_comments(number))
                if told or asked == _MOST_ASKED or self._store.suspected_at(listing.kind, id_):
                    continue
                asked += 1
                if (found := self._find(listing, id_, number=number or 0)) and found.version < version:
                    return True
        return False

    def _find(self, listing: Listing, id_: int, *, number: int) -> Resource | None:
        """Ask for one thing of a listing by itself and keep it; one that is gone is noted as such."""
        is_head = listing is ISSUES
        page = self._head_page(id_) if is_head else None
        data = page.data if page else None if is_head else self._reader.find(listing.path, id_)
        with self._store.transaction():
            if data is not None:
                found = listing.read(data)
                self._reader.keep(found)
                return found
            if not is_head:
                self._reader.remove(listing.kind, id_, number=number)
        if is_head:
            self.bury(number)
        return None

    def _is_still_gone(self, suspect: Suspect) -> bool:
        """Whether what seemed to be gone in an earlier reading is gone now; what has no address of its own is."""
        kind, id_, number = suspect.kind, suspect.id, suspect.number
        paths = {"comment": COMMENTS.path, "review_comment": REVIEW_COMMENTS.path, "review": f"/pulls/{number}/reviews"}
        is_there = self.exists(number) if kind == "issue" else kind in paths and self._reader.exists(paths[kind], id_)
        if is_there:
            with self._store.transaction():
                self._reader.see_alive(kind, [id_])
        return not is_there

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

    def _settle(self, kind: str, number: int, *, finally_: bool = False) -> None:
        if not finally_ and self._store.has_suspects(number, at=self._reader.seen_at):
            self._waiting.add(number)
            return
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
