"""Faults to script: which requests go wrong, how, how often, and after how many that went well.

    server.faults.add(Fault(match=r"/issues\\?.*&page=2", kind="status", status=502, times=2))
    server.faults.add(Fault(match="/pulls/", kind="secondary", retry_after=3))
    server.faults.add(Fault(match="/issues", kind="act", after=1, action=lambda: forge.delete_issue(thread)))

The kinds:

status      that status, with GitHub's JSON error body
secondary   403 (or `status=429`), the secondary rate limit; `retry_after=None` leaves the header out
primary     403 (or 429), the quota used up until `seconds` from now
close       the connection closes before a byte of the answer
cut         the connection closes in the middle of the body
truncated   half of the JSON, with a Content-Length that agrees
html        an HTML page (502 unless `status` says otherwise)
body        any `body` with any `status`: an empty list where there was a full one
slow        the true answer, after `seconds`
act         `action()` first, then the true answer: a change in the middle of a crawl
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Literal
from urllib.parse import urlencode

from rag_pipeline_tests.github_server.answers import Call, refused
from rag_pipeline_tests.github_server.quota import Quota

Kind = Literal["status", "secondary", "primary", "close", "cut", "truncated", "html", "body", "slow", "act"]
_SECONDARY = (
    "You have exceeded a secondary rate limit. Please wait a few minutes before you try again. "
    "If you reach out to GitHub Support for help, please include the request ID 0685:5DDC:10B68F9:25FA1BE:62D6354D."
)
_SECONDARY_DOCS = "https://docs.github.com/rest/overview/rate-limits-for-the-rest-api#about-secondary-rate-limits"
_PRIMARY_DOCS = "https://docs.github.com/rest/overview/rate-limits-for-the-rest-api"
_PRIMARY = "API rate limit exceeded for user ID 31898046."
_MESSAGES = {
    401: "Bad credentials",
    403: "Resource not accessible by integration",
    404: "Not Found",
    410: "Issues are disabled for this repo",
    422: "Validation Failed",
    451: "Repository access blocked",
    503: "Service Unavailable",
}
_UNICORN = b"<!DOCTYPE html>\n<html><head><title>Unicorn! &middot; GitHub</title></head><body>502</body></html>\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """An answer as it goes onto the wire; `ending` says whether the connection breaks, and where."""

    status: int
    headers: dict[str, str]
    body: bytes = b""
    ending: Literal["whole", "before", "middle"] = "whole"


@dataclass(slots=True, kw_only=True)
class Fault:
    """What goes wrong: for requests whose `path?query` matches, after `after` of them, `times` times (None: always)."""

    match: str | Callable[[Call], bool]
    kind: Kind
    times: int | None = 1
    after: int = 0
    status: int | None = None
    seconds: float = 60
    retry_after: int | None = 60
    body: bytes = b"[]"
    action: Callable[[], object] | None = None
    hits: int = 0

    def fits(self, call: Call) -> bool:
        """Whether the request is one of those."""
        if callable(self.match):
            return self.match(call)
        return re.search(self.match, line_of(call)) is not None

    def instead(self, now: datetime, quota: Quota) -> Reply | None:
        """The reply that stands in for the true one; None for the kinds that only spoil or delay that."""
        if self.kind == "close":
            return Reply(status=0, headers={}, ending="before")
        if self.kind == "secondary":
            headers = {} if self.retry_after is None else {"Retry-After": str(self.retry_after)}
            return error_reply(self.status or 403, _SECONDARY, headers | quota.headers(), docs=_SECONDARY_DOCS)
        if self.kind == "primary":
            return exhausted(replace(quota, remaining=0, resets_at=now + timedelta(seconds=self.seconds)), self.status)
        if self.kind == "html":
            return Reply(status=self.status or 502, headers={"Content-Type": "text/html"}, body=_UNICORN)
        if self.kind == "body":
            return Reply(status=self.status or 200, headers=quota.headers() | _JSON, body=self.body)
        if self.kind == "status":
            status = self.status or 500
            return error_reply(status, _MESSAGES.get(status, "Server Error"), quota.headers())
        return None

    def spoil(self, reply: Reply) -> Reply:
        """What becomes of the true reply."""
        if self.kind == "cut":
            return replace(reply, ending="middle")
        if self.kind == "truncated":
            return replace(reply, body=reply.body[: len(reply.body) // 2])
        return reply


@dataclass(slots=True)
class Faults:
    """The faults that are due; the first that fits a request takes it."""

    pending: list[Fault] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, fault: Fault) -> Fault:
        """Script one more; its `hits` tells later how often it struck."""
        with self._lock:
            self.pending.append(fault)
        return fault

    def clear(self) -> None:
        """All goes well again."""
        with self._lock:
            self.pending.clear()

    def take(self, call: Call) -> Fault | None:
        """The fault that strikes this request."""
        with self._lock:
            for fault in self.pending:
                if not fault.fits(call) or fault.times == fault.hits:
                    continue
                if fault.after > 0:
                    fault.after -= 1
                    continue
                fault.hits += 1
                return fault
        return None


def line_of(call: Call) -> str:
    """The path, with the query when there is one: what patterns are matched with."""
    return f"{call.path}?{urlencode(call.query)}" if call.query else call.path


def error_reply(status: int, message: str, headers: dict[str, str], *, docs: str = _PRIMARY_DOCS) -> Reply:
    """An error with GitHub's JSON body."""
    body = json.dumps(refused(status, message, docs=docs).answer.body).encode()
    return Reply(status=status, headers=headers | _JSON, body=body)


def exhausted(quota: Quota, status: int | None = None) -> Reply:
    """The primary rate limit, reached."""
    return error_reply(status or 403, _PRIMARY, quota.headers())


_JSON = {"Content-Type": "application/json; charset=utf-8"}
