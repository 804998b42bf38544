"""Pages of a listing and the `Link` header that leads through them.

Three behaviours of GitHub that a crawler meets only on large repositories are here, to be switched on or made small:
`Limits.pages` (comments of a whole repository end at page 400: 422 beyond, and `rel="last"` stops there),
`Limits.cursors` (issues of large repositories are paged by `after`, without `rel="last"`; a bare `page` is refused
with 422), and `per_page` above 100, which silently means 100.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar
from urllib.parse import urlencode

from rag_pipeline_tests.github_server.answers import refused

T = TypeVar("T")
Key = tuple[str | int, ...]
_PAGING = ("page", "after", "before")


@dataclass(slots=True)
class Limits:
    """How large listings are paged; tests change the fields as they like."""

    pages: int = 400
    cursors: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Ordered(Generic[T]):
    """The whole of a listing, in order; `key` is what it is sorted by, falling where `falls`."""

    items: Sequence[T]
    key: Callable[[T], Key]
    falls: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Page(Generic[T]):
    """One page, with its `Link` header, which is empty when there is no other page."""

    items: Sequence[T]
    link: str


def numbered_page(items: Sequence[T], query: Mapping[str, str], address: str, *, most: int | None = None) -> Page[T]:
    """The page that `page` and `per_page` ask for."""
    size, number = page_size(query), max(1, _number(query.get("page"), 1))
    if most is not None and number > most:
        raise refused(422, _TOO_FAR, docs="https://docs.github.com/v3/#pagination")
    last = max(1, -(-len(items) // size))
    last = last if most is None else min(last, most)
    return Page(items=items[(number - 1) * size : number * size], link=_link(query, address, number, last))


def cursor_page(ordered: Ordered[T], query: Mapping[str, str], address: str) -> Page[T]:
    """The page after (or before) a cursor; the first page without one."""
    if "page" in query and "after" not in query and "before" not in query and query["page"] != "1":
        raise refused(422, _NO_PAGES)
    size, items, key = page_size(query), ordered.items, ordered.key
    first, end = 0, size
    if "after" in query:
        at = _key(query["after"])
        first = sum((key(item) >= at) if ordered.falls else (key(item) <= at) for item in items)
        end = first + size
    elif "before" in query:
        at = _key(query["before"])
        end = sum((key(item) > at) if ordered.falls else (key(item) < at) for item in items)
        first = max(0, end - size)
    found = items[first:end]
    number, links = _number(query.get("page"), 1), []
    if found and first > 0:
        links.append(_to(query, address, "prev", before=_cursor(key(found[0])), page=str(max(1, number - 1))))
    if found and end < len(items):
        links.append(_to(query, address, "next", after=_cursor(key(found[-1])), page=str(number + 1)))
    return Page(items=found, link=", ".join(links))


def page_size(query: Mapping[str, str]) -> int:
    """How many a page holds: 30 unless told, never more than 100."""
    asked = _number(query.get("per_page"), 30)
    return min(asked, 100) if asked > 0 else 30


def _link(query: Mapping[str, str], address: str, number: int, last: int) -> str:
    wanted: list[tuple[str, int]] = []
    if number > 1:
        wanted.append(("prev", number - 1))
    if number < last:
        wanted += [("next", number + 1), ("last", last)]
    if number > 1:
        wanted.append(("first", 1))
    return ", ".join(_to(query, address, relation, page=str(page)) for relation, page in wanted)


def _to(query: Mapping[str, str], address: str, relation: str, **paging: str) -> str:
    kept = {name: value for name, value in query.items() if name not in _PAGING}
    return f'<{address}?{urlencode({**kept, **paging})}>; rel="{relation}"'


def _cursor(key: Key) -> str:
    return base64.urlsafe_b64encode(b"cursor:v2:" + json.dumps(key).encode()).decode()


def _key(cursor: str) -> Key:
    try:
        return tuple(json.loads(base64.urlsafe_b64decode(cursor).removeprefix(b"cursor:v2:")))
    except ValueError as error:
        raise refused(422, "Invalid cursor") from error


def _number(text: str | None, default: int) -> int:
    return int(text) if text and text.lstrip("-").isdecimal() else default


_TOO_FAR = (
    "In order to keep the API fast for everyone, pagination is limited for this resource. "
    "Check the rel=last link relation in the Link response header to see how far back you can traverse."
)
_NO_PAGES = (
    "Pagination with the page parameter is not supported for large datasets, "
    "please use cursor based pagination (after/before)"
)
