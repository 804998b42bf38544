"""Reading GitHub's listings page by page into the store: what is new since a moment, or all of it.

Each page and what it held are one transaction, so that a reading that is cut off goes on where it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any
from urllib.parse import urlencode

from rag_pipeline.errors import ItemError, TransientError
from rag_pipeline.sources.github import resources
from rag_pipeline.sources.github.client import GitHubClient, Page
from rag_pipeline.sources.github.resources import EPOCH, Resource, instant, moment
from rag_pipeline.sources.github.store import Store

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
    removed: int = 0
    """Resources found to be gone."""
    waiting: int = 0
    """Threads that were touched and could not be read wholly yet."""
    stopped: str = ""
    """Why the reading ended early; the next one goes on from there."""
    malformed: list[tuple[str, str]] = field(default_factory=list)
    """(resource, reason) of what could not be used."""


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
        return instant(self.now.timestamp())

    def read_since(self, listing: Listing) -> None:
        """Keep everything that changed since the last reading.

        Pages are asked for by time, not by number: an item that changes meanwhile moves to the end, and by number
        the one behind it would slip onto a page that was read already.
        """
        cursor = self.store.note(f"cursor:{listing.kind}")
        since, url, newest = cursor, None, cursor or EPOCH
        asked: list[str] = []
        while True:
            url = url or self._address(listing, since=since, sort="updated", direction="asc")
            asked.append(url)
            page = self.get(url, listing=f"since:{listing.kind}")
            with self.store.transaction():
                versions = self._keep(page, listing, url, name=f"since:{listing.kind}")
                newest = max([newest, *versions])
                following = _next_of(page, self.store, url)
                since, url = _step(since, versions, following)
                if url is None and following is not None:
                    self.store.set_note(f"cursor:{listing.kind}", since)
            if following is None:
                break
        with self.store.transaction():
            # Where the newest change is not far behind, the same address will be asked again, and answered with 304.
            done = instant((moment(newest) - _OVERLAP).timestamp()) if newest > EPOCH else None
            self.store.set_note(f"cursor:{listing.kind}", max(done, cursor or EPOCH) if done else cursor)
            self.store.forget_pages(f"since:{listing.kind}", keep=asked)

    def read_pulls(self) -> None:
        """Keep what pull requests have beyond issues: all of them once, oldest first; then those that changed last."""
        if self.store.note("loaded:pull") is None:
            page_number = int(self.store.note("page:pull") or 1)
            url: str | None = self._address(PULLS, sort="created", direction="asc", page=str(page_number))
            started = self.store.note("started:pull") or self.seen_at
            while url is not None:
                page = self.get(url, listing="")
                with self.store.transaction():
                    self._keep(page, PULLS, url, name="")
                    url = page.next
                    self.store.set_note("started:pull", started)
                    self.store.set_note("page:pull", str(page_number))
                    page_number += 1
            with self.store.transaction():
                self.store.set_note("loaded:pull", "1")
                self.store.set_note("cursor:pull", started)
                self.store.set_note("page:pull", None)
            return
        self._read_newest_pulls(self.store.note("cursor:pull") or EPOCH)

    def _read_newest_pulls(self, cursor: str) -> None:
        url: str | None = self._address(PULLS, sort="updated", direction="desc")
        newest, first = cursor, url
        while url is not None:
            page = self.get(url, listing="pulls")
            if page.status == 304:
                break
            with self.store.transaction():
                versions = self._keep(page, PULLS, url, name="pulls" if url == first else "")
                newest = max([newest, *versions])
            oldest = min(versions, default="")
            url = page.next if oldest >= instant((moment(cursor) - _OVERLAP).timestamp()) else None
        self.store.set_note("cursor:pull", newest)

    def read_all(self, listing: Listing) -> set[int]:
        """Keep everything there is, and return the ids.

        In the order of creation, in which an edit changes one page only; very long listings in the order of change.
        """
        by_time = len(self.store.living(listing.kind)) > _MOST_BY_PAGE
        order = {"sort": "updated" if by_time else "created", "direction": "asc"}
        ids: set[int] = set()
        url: str | None = self._address(listing, **order)
        name, asked, since = f"all:{listing.kind}", [], None
        while url is not None:
            asked.append(url)
            page = self.get(url, listing=name)
            with self.store.transaction():
                versions = self._keep(page, listing, url, name=name, revive=True)
                remembered = self.store.page(url)
                ids.update(remembered.ids if page.status == 304 and remembered else _ids(page, listing))
                url = _next_of(page, self.store, url)
            if by_time and url is not None:
                since, following = _step(since, versions, url)
                url = following or self._address(listing, since=since, **order)
        self.store.forget_pages(name, keep=asked)
        return ids

    def read_of_thread(self, path: str, *, kind: str, number: int, read: Callable[[Any], Resource]) -> None:
        """Keep all of one thread's comments or reviews; those that are no longer listed are gone."""
        url: str | None = f"/repos/{self.repository}{path}?per_page={PER_PAGE}"
        name, listed, asked = f"{kind}:{number}", set[int](), []
        listing = Listing(kind=kind, path=path, params={}, read=read)
        while url is not None:
            asked.append(url)
            page = self.get(url, listing=name)
            with self.store.transaction():
                self._keep(page, listing, url, name=name)
                remembered = self.store.page(url)
                listed.update(remembered.ids if page.status == 304 and remembered else _ids(page, listing))
                url = _next_of(page, self.store, url)
        with self.store.transaction():
            for id_ in self.store.living_of(kind, number):
                if id_ not in listed and self.store.delete(kind, id_, number=number, at=self.seen_at):
                    self.report.removed += 1
                    self.store.touch("thread", [number])
            self.store.forget_pages(name, keep=asked)

    def read_files(self, number: int, head: Mapping[str, Any], base: Mapping[str, Any]) -> None:
        """Keep the list of files that a pull request changes."""
        files, url = [], f"/repos/{self.repository}/pulls/{number}/files?per_page={PER_PAGE}"
        following: str | None = url
        while following is not None:
            page = self.get(following, listing="")
            files += [resources.changed_file(entry) for entry in _entries(page)]
            following = page.next
        body: resources.Body = {"files": files, "head": str(head.get("sha", "")), "base": str(base.get("ref", ""))}
        found = Resource(kind="files", id=number, number=number, version=self.seen_at, body=body)
        with self.store.transaction():
            self.store.put(found, seen_at=self.seen_at)
            self.store.done("files", number)

    def get(self, url: str, *, listing: str) -> Page:
        """One page, conditionally when it is remembered."""
        known = self.store.page(url) if listing else None
        page = self.client.get(url, etag=known.etag if known else None)
        self.report.pages += 1
        self.report.unchanged_pages += page.status == 304
        return page

    def keep(self, resource: Resource, *, revive: bool = False, newer_only: bool = False) -> bool:
        """Keep a resource and note which thread it touches; whether it changed anything."""
        changed = self.store.put(resource, seen_at=self.seen_at, revive=revive, newer_only=newer_only)
        if changed:
            self.report.changed_resources += 1
            self.store.touch("thread", [resource.number])
        return changed

    def _keep(self, page: Page, listing: Listing, url: str, *, name: str, revive: bool = False) -> list[str]:
        """Keep a page's resources; their versions, in the page's order."""
        if page.status == 304:
            return []
        found = []
        for entry in _entries(page):
            try:
                found.append(listing.read(entry))
            except ItemError as error:
                id_ = entry.get("id") if isinstance(entry, dict) else None
                self.report.malformed.append((f"{listing.kind} {id_ or '?'}", str(error)))
        for resource in found:
            self.keep(resource, revive=revive)
        if name:
            self.store.remember_page(
                url, listing=name, etag=page.etag, next_url=page.next, ids=[resource.id for resource in found]
            )
        return [resource.version for resource in found]

    def _address(self, listing: Listing, **params: str | None) -> str:
        chosen = {key: value for key, value in {**listing.params, **params}.items() if value}
        return f"/repos/{self.repository}{listing.path}?{urlencode({**chosen, 'per_page': str(PER_PAGE)})}"


def _step(since: str | None, versions: Sequence[str], following: str | None) -> tuple[str | None, str | None]:
    """The moment and, where pages cannot be told apart by time, the address to ask for next."""
    if following is None:
        return since, None
    # One second earlier: whether a listing includes the moment itself shall not matter.
    reached = instant((moment(versions[-1]) - timedelta(seconds=1)).timestamp()) if versions else ""
    in_order = all(one <= other for one, other in pairwise(versions))
    if in_order and reached > (since or EPOCH):
        return reached, None
    return since, following


def _next_of(page: Page, store: Store, url: str) -> str | None:
    if page.status != 304:
        following: str | None = page.next
        return following
    remembered = store.page(url)
    return remembered.next if remembered else None


def _ids(page: Page, listing: Listing) -> Iterator[int]:
    for entry in _entries(page):
        try:
            yield listing.read(entry).id
        except ItemError:
            continue


def _entries(page: Page) -> list[Any]:
    if page.status == 304:
        return []
    if not isinstance(page.data, list):
        raise TransientError(f"{page.url} should be a list, but GitHub sent {type(page.data).__name__}: try again")
    return page.data
