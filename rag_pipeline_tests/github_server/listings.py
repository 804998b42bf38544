"""The listings: which items, in which order, on which page, with the defaults that GitHub documents.

`since` keeps what was updated at that second or later. For the comments of a repository without `sort` the order is
by id, rising, whatever `direction` says; with `sort` and without `direction` GitHub's documentation is silent, here
they rise. The comments of one issue have no order but by id.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeVar
from urllib.parse import urlencode

from rag_pipeline_tests.github_server import pull_shapes, shapes
from rag_pipeline_tests.github_server.access import Caller
from rag_pipeline_tests.github_server.answers import Answer, Call, invalid
from rag_pipeline_tests.github_server.model import Forge
from rag_pipeline_tests.github_server.nouns import Comment, Repository, ReviewComment, Thread
from rag_pipeline_tests.github_server.paging import Limits, Ordered, Page, cursor_page, numbered_page
from rag_pipeline_tests.github_server.shapes import Json, Site

T = TypeVar("T")
Remark = TypeVar("Remark", Comment, ReviewComment)
MOST_FILES = 3000


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A request that has arrived in a repository; `address` is its own in the form by id."""

    forge: Forge
    site: Site
    limits: Limits
    repository: Repository
    call: Call
    caller: Caller
    address: str
    docs: str

    def choice(self, name: str, default: str, *allowed: str) -> str:
        """A parameter that has a few values; raises Refused with 422 for another."""
        value = self.call.query.get(name, default)
        if value not in (default, *allowed):
            raise invalid("Issue", name)
        return value

    def since(self) -> datetime | None:
        """The `since` parameter; raises Refused with 422 when it is no date."""
        text = self.call.query.get("since")
        if not text:
            return None
        try:
            # An unescaped plus sign of an offset arrives as a space, and GitHub does not guess.
            moment = datetime.fromisoformat(text)
        except ValueError:
            raise invalid("Issue", "since") from None
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


def issues(place: Place) -> Answer:
    """Issues and pull requests of a repository."""
    order = place.choice("sort", "created", "updated", "comments")
    falls = place.choice("direction", "desc", "asc") == "desc"
    state, since = place.choice("state", "open", "closed", "all"), place.since()
    found = [
        thread
        for thread in place.repository.everything()
        if state in ("all", thread.state) and (since is None or thread.updated_at >= since)
    ]
    keys: dict[str, Callable[[Thread], tuple[str | int, ...]]] = {
        "created": lambda thread: (thread.created_at.isoformat(), thread.id),
        "updated": lambda thread: (thread.updated_at.isoformat(), thread.id),
        "comments": lambda thread: (len(thread.comments), thread.id),
    }
    found.sort(key=keys[order], reverse=falls)
    if place.limits.cursors:
        ordered = Ordered(items=found, key=keys[order], falls=falls)
        page = cursor_page(ordered, place.call.query, place.address)
    else:
        page = numbered_page(found, place.call.query, place.address)
    return _page(page, lambda thread: shapes.issue(place.site, thread))


def pulls(place: Place) -> Answer:
    """Pull requests of a repository; the direction's default depends on the sort."""
    order = place.choice("sort", "created", "updated", "popularity", "long-running")
    falls = place.choice("direction", "desc" if order == "created" else "asc", "asc", "desc") == "desc"
    state, base = place.choice("state", "open", "closed", "all"), place.call.query.get("base")
    found = [
        thread
        for thread in place.repository.pulls()
        if state in ("all", thread.state) and (base is None or thread.the_pull().base_ref == base)
    ]
    keys: dict[str, Callable[[Thread], tuple[datetime | int, int]]] = {
        "updated": lambda thread: (thread.updated_at, thread.id),
        "popularity": lambda thread: (len(thread.comments), thread.id),
    }
    found.sort(key=keys.get(order, lambda thread: (thread.created_at, thread.id)), reverse=falls)
    page = numbered_page(found, place.call.query, place.address)
    return _page(page, lambda thread: pull_shapes.pull(place.site, thread))


def comments(place: Place, found: Sequence[Comment], *, whole: bool = False) -> Answer:
    """Conversation comments of one issue or pull request, or of the `whole` repository."""
    page = _remarks(place, found, whole=whole, sortable=whole)
    return _page(page, lambda comment: shapes.comment(place.site, comment))


def review_comments(place: Place, found: Sequence[ReviewComment], *, whole: bool = False) -> Answer:
    """Review comments of one pull request, or of the `whole` repository."""
    page = _remarks(place, found, whole=whole, sortable=True)
    return _page(page, lambda comment: pull_shapes.review_comment(place.site, comment))


def reviews(place: Place, thread: Thread) -> Answer:
    """Reviews of a pull request, oldest first."""
    found = sorted(thread.the_pull().shown_reviews(), key=lambda review: (review.submitted_at, review.id))
    page = numbered_page(found, place.call.query, place.address)
    return _page(page, lambda review: pull_shapes.review(place.site, review))


def files(place: Place, thread: Thread) -> Answer:
    """Changed files of a pull request, by name, at most 3,000."""
    found = sorted(thread.the_pull().files, key=lambda changed: changed.filename)[:MOST_FILES]
    page = numbered_page(found, place.call.query, place.address)
    return _page(page, lambda changed: pull_shapes.file(place.site, thread, changed))


def query_of(call: Call) -> str:
    """The query string, for the address that a redirect names."""
    return f"?{urlencode(call.query)}" if call.query else ""


def _remarks(place: Place, found: Sequence[Remark], *, whole: bool, sortable: bool) -> Page[Remark]:
    since = place.since()
    kept = [remark for remark in found if since is None or remark.updated_at >= since]
    kept.sort(key=lambda remark: remark.id)
    order = place.choice("sort", "", "created", "updated", "created_at") if sortable else ""
    if order:
        falls = place.choice("direction", "asc", "desc") == "desc"
        kept.sort(
            key=lambda remark: (remark.updated_at if order == "updated" else remark.created_at, remark.id),
            reverse=falls,
        )
    return numbered_page(kept, place.call.query, place.address, most=place.limits.pages if whole else None)


def _page(page: Page[T], shape: Callable[[T], Json]) -> Answer:
    headers = {"Link": page.link} if page.link else {}
    return Answer(body=[shape(item) for item in page.items], headers=headers)
