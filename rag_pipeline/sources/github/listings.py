"""Reading GitHub's listings page by page into the store: what is new since a moment, or all of it.

Each page and what it held are one transaction, so that a reading that is cut off goes on where it was.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any, TypeVar
from urllib.parse import urlencode

from rag_pipeline.errors import ItemError, ResourceGone, TransientError
from rag_pipeline.sources.github import resources
from rag_pipeline.sources.github.client import GitHubClient, Page
from rag_pipeline.sources.github.removals import Withheld
from rag_pipeline.sources.github.resources import EPOCH, Resource, instant, moment, precise
from rag_pipeline.sources.github.store import Change, RememberedPage, Store

T = TypeVar("T")

PER_PAGE = 100
# GitHub answers no page of a repository's comments beyond the 400th; so many can be asked for by time only.
_MOST_BY_PAGE = 350 * PER_PAGE
# GitHub may show a change a little later than its time says; so much is read again.
_OVERLAP = timedelta(seconds=60)


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """A listing of the whole repository that can be asked for what changed since a moment."""

    kind: str
    """Of the resources in it."""
    path: str
    """Below the repository's."""
    params: Mapping[str, str]
    read: Callable[[Any], Resource]


ISSUES = Listing(kind="issue", path="/issues", params={"state": "all"}, read=resources.issue)
COMMENTS = Listing(kind="comment", path="/issues/comments", params={}, read=resources.comment)
REVIEW_COMMENTS = Listing(kind="review_comment", path="/pulls/comments", params={}, read=resources.review_comment)
PULLS = Listing(kind="pull", path="/pulls", params={"state": "all"}, read=resources.pull)
SINCE_LISTINGS = (ISSUES, COMMENTS, REVIEW_COMMENTS)


@dataclass(slots=True, kw_only=True)
class FetchReport:
    """What asking GitHub gave."""

    pages: int = 0
    unchanged_pages: int = 0
    """Of these, known by their ETag to be as before."""
    changed_resources: int = 0
    settled: int = 0
    """Threads whose state is another than before."""
    removed_threads: list[int] = field(default_factory=list)
    """Numbers of the issues and pull requests found to be gone."""
    removed_comments: int = 0
    """Comments and reviews found to be gone, without those that went with their threads."""
    withheld: list[Withheld] = field(default_factory=list)
    """What seems to be gone and is too much to be removed without confirmation."""
    waiting: int = 0
    """Threads that were touched and could not be read wholly yet."""
    stopped: str = ""
    """Why the reading ended early; the next one goes on from there."""
    malformed: list[tuple[str, str]] = field(default_factory=list)
    """(resource, reason) of what could not be used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    """What GitHub said when a page was asked for."""

    asked: str
    page: Page
    known: RememberedPage | None
    """What is remembered of it; GitHub was asked whether that has changed."""

    @property
    def etag(self) -> str | None:
        return self.known.etag if self.known and self.page.status == 304 else self.page.etag


@dataclass(frozen=True, slots=True, kw_only=True)
class _Held:
    """What a page held, whether GitHub sent it or said that it is as before."""

    ids: Sequence[int]
    versions: Sequence[str]
    """In the page's order."""
    next: str | None


class Reader:
    """Asks for listings and keeps what they hold."""

    def __init__(
        self, store: Store, client: GitHubClient, *, repository: str, now: datetime, report: FetchReport
    ) -> None:
        self.store = store
        self.client = client
        self.repository = repository
        self.now = now
        self.report = report

    @property
    def seen_at(self) -> str:
        """When what is read now was seen, as text."""
        return precise(self.now)

    def read_since(self, listing: Listing) -> dict[int, str]:
        """Keep everything that changed since the last reading.

        Gives back what this listing should have shown and did not: version by id of what changed since then by what is
        kept here. It is gone, or GitHub has gone back to an earlier state.

        Pages are asked for by time, not by number: an item that changes meanwhile moves to the end, and by number
        the one behind it would slip onto a page that was read already.
        """
        self._begin(listing)
        name, cursor = f"since:{listing.kind}", self.store.note(f"cursor:{listing.kind}")
        since, newest = cursor, cursor or EPOCH
        expected = self.store.newer_than(listing.kind, cursor) if cursor else {}
        url: str | None = None
        before: _Answer | None = None
        asked: list[str] = []
        while True:
            answer = self._get(url or self._address(listing, since=since, sort="updated", direction="asc"))
            if before is not None and self._has_changed(before):
                # Something may have slipped from this page onto that one: the moment is read again from its begin.
                url = before = None
                continue
            asked.append(answer.asked)
            with self.store.transaction():
                held = self._keep(answer, listing, name=name)
                for id_ in held.ids:
                    expected.pop(id_, None)
                newest = max([newest, *held.versions])
                since, url = _step(since, held)
                if url is None and held.next is not None:
                    self.store.set_note(f"cursor:{listing.kind}", since)
            before = answer if url is not None else None
            if held.next is None:
                break
        with self.store.transaction():
            # Where the newest change is not far behind, the same address will be asked again, and answered with 304.
            done = instant((moment(newest) - _OVERLAP).timestamp())
            self.store.set_note(f"cursor:{listing.kind}", max(done, cursor or "") or None)
            self.store.forget_pages(name, keep=asked)
        return expected

    def start_over(self) -> None:
        """Let the next reading of each listing begin with the oldest change."""
        with self.store.transaction():
            for listing in (*SINCE_LISTINGS, PULLS):
                self.store.set_note(f"cursor:{listing.kind}", None)
            self.store.set_note("loaded:pull", None)

    def begun(self, listing: Listing) -> str:
        """By GitHub's clock: all that a listing holds was read at this moment or later; "" when that is not known."""
        return self.store.note(f"begun:{listing.kind}") or ""

    def read_pulls(self) -> None:
        """Keep what pull requests have beyond issues: all of them once, oldest first; then those that changed last."""
        if self.store.note("loaded:pull") is None:
            self._load_pulls()
        else:
            self._read_newest_pulls(self.store.note("cursor:pull") or EPOCH)

    def _begin(self, listing: Listing) -> None:
        if not self.begun(listing):
            # The issues were listed before: what changes from now on is newer than they are.
            self.store.set_note(f"begun:{listing.kind}", self.store.note("cursor:issue") or EPOCH)

    def _load_pulls(self) -> None:
        self._begin(PULLS)
        number = int(self.store.note("page:pull") or 1)
        url: str | None = self._address(PULLS, sort="created", direction="asc", page=str(number))
        while url is not None:
            answer = self._get(url)
            with self.store.transaction():
                url = self._keep(answer, PULLS, name="").next
                self.store.set_note("page:pull", str(number))
                number += 1
        with self.store.transaction():
            self.store.set_note("loaded:pull", "1")
            self.store.set_note("cursor:pull", self.begun(PULLS))
            self.store.set_note("page:pull", None)

    def _read_newest_pulls(self, cursor: str) -> None:
        until = instant((moment(cursor) - _OVERLAP).timestamp())
        url: str | None = self._address(PULLS, sort="updated", direction="desc")
        first, newest = url, cursor
        while url is not None:
            answer = self._get(url)
            if answer.page.status == 304:
                break
            with self.store.transaction():
                held = self._keep(answer, PULLS, name="pulls" if url == first else "")
                newest = max([newest, *held.versions])
                url = held.next if min(held.versions, default="") >= until else None
                if url is not None:
                    # That the first page is as before shall not hide that the others were never read.
                    self.store.forget_pages("pulls")
        self.store.set_note("cursor:pull", newest)

    def read_all(self, listing: Listing) -> set[int]:
        """Keep everything there is, and return the ids.

        In the order of creation, in which an edit changes one page only; very long listings in the order of change.
        """
        by_time = listing in SINCE_LISTINGS and len(self.store.living(listing.kind)) > _MOST_BY_PAGE
        name, ids, asked, since = f"all:{listing.kind}", set[int](), list[str](), None
        url: str | None = self._address(listing, sort="updated" if by_time else "created", direction="asc")
        while url is not None:
            answer = self._get(url)
            asked.append(answer.asked)
            with self.store.transaction():
                held = self._keep(answer, listing, name=name)
            ids.update(held.ids)
            url = held.next
            if by_time and url is not None:
                since, following = _step(since, held)
                url = following or self._address(listing, since=since, sort="updated", direction="asc")
            elif url is not None and listing in SINCE_LISTINGS and len(ids) >= _MOST_BY_PAGE:
                by_time, url = True, self._address(listing, sort="updated", direction="asc")
        self.store.forget_pages(name, keep=asked)
        return ids

    def read_of_thread(
        self, path: str, *, kind: str, number: int, read: Callable[[Any], Resource], single: str,
        said: object = None,
    ) -> None:  # fmt: skip
        """Keep all of one thread's comments or reviews, and find those that are gone.

        Args:
            single: the path below which each can be asked for by itself.
            said: how many there are, where GitHub says so.
        """
        url: str | None = f"/repos/{self.repository}{path}?per_page={PER_PAGE}"
        name, listed, asked = f"{kind}:{number}", set[int](), list[str]()
        listing = Listing(kind=kind, path=path, params={}, read=read)
        while url is not None:
            answer = self._get(url)
            asked.append(answer.asked)
            with self.store.transaction():
                held = self._keep(answer, listing, name=name)
            listed.update(held.ids)
            url = held.next
        missing = [
            id_
            for id_ in self.store.living_of(kind, number)
            if id_ not in listed and self.store.suspected_at(kind, id_) != self.seen_at
        ]
        # A page that slipped or broke looks the same as a deletion; only the count that GitHub knows tells them apart.
        gone = [id_ for id_ in missing if len(listed) == said or not self.exists(single, id_)]
        with self.store.transaction():
            for id_ in gone:
                self.remove(kind, id_, number=number)
            self.store.forget_pages(name, keep=asked)

    def read_files(self, number: int, *, head: str, base: str) -> None:
        """Keep the list of files that a pull request changes, as they are between these commits."""
        files = []
        url: str | None = f"/repos/{self.repository}/pulls/{number}/files?per_page={PER_PAGE}"
        while url is not None:
            page = self.client.get(url)
            self.report.pages += 1
            files += self._read_entries(page, resources.changed_file, kind="file")
            url = page.next
        body: resources.Body = {"files": files, "head": head, "base": base}
        with self.store.transaction():
            # Of two lists the one read last is right, whatever the clock says: they all have the same version.
            listed = Resource(kind="files", id=number, number=number, version="", body=body)
            self.store.put(listed, seen_at=self.seen_at)
            self.store.clear_problem(f"files {number}")

    def exists(self, path: str, id_: int) -> bool:
        """Whether GitHub has the comment or review of this id, below this path of the repository."""
        return self.find(path, id_) is not None

    def find(self, path: str, id_: int) -> Mapping[str, Any] | None:
        """The comment or review of this id, below this path of the repository; None: there is none."""
        try:
            page = self.client.get(f"/repos/{self.repository}{path}/{id_}")
        except ResourceGone:
            return None
        if not isinstance(page.data, dict) or page.data.get("id") != id_:
            raise TransientError(f"{page.url} should be what has this id, but GitHub sent something else: try again")
        return page.data

    def keep(self, resource: Resource) -> Change:
        """Keep what GitHub shows, and note which thread it touches; what that changed."""
        self.see_alive(resource.kind, [resource.id])
        change = self.store.put(resource, seen_at=self.seen_at)
        if change:
            self.report.changed_resources += 1
            self.store.touch(resource.number, change=change)
        return change

    def see_alive(self, kind: str, ids: Sequence[int]) -> None:
        """What GitHub shows is not gone, whatever it seemed before."""
        self.store.touch(*self.store.clear(kind, ids))

    def remove(self, kind: str, id_: int, *, number: int) -> None:
        """Note that a comment or review seems to be gone, and which thread that touches; `removals` judges it."""
        if not self.store.suspected_at(kind, id_):
            self.store.touch(number)
        self.store.suspect(kind, id_, number=number, thread_kind="", at=self.seen_at)

    def note_problem(self, name: str, error: Exception) -> None:
        """Keep what could not be used, until it can."""
        self.report.malformed.append((name, str(error)))
        self.store.set_problem(name, str(error))

    def _get(self, url: str) -> _Answer:
        """One page, conditionally when it is remembered."""
        known = self.store.page(url)
        page = self.client.get(url, etag=known.etag if known else None)
        self.report.pages += 1
        self.report.unchanged_pages += page.status == 304
        return _Answer(asked=url, page=page, known=known)

    def _has_changed(self, answer: _Answer) -> bool:
        """Whether a page that was read a moment ago is another one now."""
        if answer.etag is None:
            return False
        self.report.pages += 1
        return self.client.get(answer.asked, etag=answer.etag).status != 304

    def _keep(self, answer: _Answer, listing: Listing, *, name: str) -> _Held:
        """Keep a page's resources, and remember the page under the listing's name, if that is not empty."""
        if answer.page.status == 304 and answer.known is not None:
            ids = answer.known.ids
            self.see_alive(listing.kind, ids)
            return _Held(ids=ids, versions=self.store.versions(listing.kind, ids), next=answer.known.next)
        found = self._read_entries(answer.page, listing.read, kind=listing.kind)
        problems = {problem for problem, _ in self.store.problems()}
        for resource in found:
            self.keep(resource)
            if f"{listing.kind} {resource.id}" in problems:
                self.store.clear_problem(f"{listing.kind} {resource.id}")
        held = _Held(ids=[one.id for one in found], versions=[one.version for one in found], next=answer.page.next)
        # A last page that is full stays as it is when another one comes after it.
        if name and not (held.next is None and len(answer.page.data) >= PER_PAGE):
            self.store.remember_page(
                answer.asked, listing=name, etag=answer.page.etag, next_url=held.next, kind=listing.kind, ids=held.ids
            )
        return held

    def _read_entries(self, page: Page, read: Callable[[Any], T], *, kind: str) -> list[T]:
        if not isinstance(page.data, list):
            raise TransientError(f"{page.url} should be a list, but GitHub sent {type(page.data).__name__}: try again")
        found = []
        for entry in page.data:
            try:
                found.append(read(entry))
            except ItemError as error:
                id_ = entry.get("id") if isinstance(entry, dict) else None
                self.note_problem(f"{kind} {id_ if isinstance(id_, int) else '?'}", error)
        return found

    def _address(self, listing: Listing, **params: str | None) -> str:
        chosen = {key: value for key, value in {**listing.params, **params}.items() if value}
        return f"/repos/{self.repository}{listing.path}?{urlencode({**chosen, 'per_page': str(PER_PAGE)})}"


def _step(since: str | None, held: _Held) -> tuple[str | None, str | None]:
    """The moment and, where pages cannot be told apart by time, the address to ask for next."""
    if held.next is None:
        return since, None
    # One second earlier: whether a listing includes the moment itself shall not matter.
    reached = instant((moment(held.versions[-1]) - timedelta(seconds=1)).timestamp()) if held.versions else ""
    in_order = all(one <= other for one, other in pairwise(held.versions))
    if in_order and reached > (since or EPOCH):
        return reached, None
    return since, held.next
