"""GETs of GitHub's REST API, one after the other: what each answer means, when to ask again, and when to stop.

Nothing here knows what the JSON is about. How long to wait is decided in `limits`, whom to be in `auth`.
Everything leaves as a `Page` or as one of our errors.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urljoin, urlsplit

from rag_pipeline.bounded_json import parse_json
from rag_pipeline.errors import ConfigError, PermanentError, QuotaExhausted, ResourceGone, TransientError
from rag_pipeline.progress import Progress, silent
from rag_pipeline.sources.github import limits
from rag_pipeline.sources.github.auth import Connection, Login, choose_login

if TYPE_CHECKING:
    import httpx

    from rag_pipeline.settings import GitHub

_SPOKEN = "asking GitHub"
QUOTA_REACHED = "GitHub's rate limit is reached"
"""How the reason begins for which a reading ends well: the next run goes on from there."""
_SHORTEST_TOLD_S = 1.0
MOST_REDIRECTS = 5
MOST_REFUSALS = 5
"""Of one request by rate limits, each waited for."""
_REDIRECTS = frozenset({301, 302, 307, 308})
_GONE = frozenset({404, 410, 451})
_TRANSIENT = frozenset({202, 408})
"""202: GitHub still computes the answer; 408: our request did not reach it in time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One answer: a page of a listing, or a single thing."""

    status: int
    """200, or 304: as it was when it had the ETag."""
    data: Any
    """Parsed JSON; None for 304."""
    etag: str | None
    next: str | None
    """Address of the next page; None at the end, and for 304."""
    url: str
    """Where it really came from, after redirects."""
    pages: int = 1
    """How many the listing has, where GitHub says so: of one entry each, that is how many entries it has."""


@dataclass(slots=True, kw_only=True)
class Usage:
    """What one client has asked for so far."""

    requests: int = 0
    not_modified: int = 0
    retries: int = 0
    waited_s: float = 0.0
    limit: int | None = None
    """This and what follows: as GitHub last said."""
    remaining: int | None = None
    resets_at: datetime | None = None


def make_client(
    settings: GitHub,
    *,
    base_url: str = "",
    token_env: str = "",
    repository: str,
    environ: Mapping[str, str],
    clock: Callable[[], datetime],
    sleep: Callable[[float], None] = time.sleep,
    progress: Progress = silent,
) -> GitHubClient:
    """A client for one repository (`owner/name`); `base_url` and `token_env` are the repository's own, if it has any.

    Asks GitHub for the installation of the App, when the settings name an App and not its installation.

    Raises:
        ConfigError: a secret is missing or unusable, or the App is not installed on the repository.
        TransientError: GitHub could not be asked.
    """
    login = choose_login(settings, token_env=token_env, environ=environ)
    base_url, usage = base_url or settings.base_url, Usage()

    def connect(*, installation_id: int | None, as_app: bool = False) -> GitHubClient:
        connection = Connection(
            login, base_url=base_url, timeout_s=settings.timeout_s, installation_id=installation_id, as_app=as_app
        )
        return GitHubClient(
            connection, login=login, settings=settings, clock=clock, sleep=sleep, usage=usage, progress=progress
        )

    installation_id = settings.app_installation_id
    if login.app_id and installation_id is None:
        with connect(installation_id=None, as_app=True) as app:
            installation_id = _installation_id(app, repository, app_id=login.app_id)
    return connect(installation_id=installation_id)


class GitHubClient:
    """Asks GitHub; not thread-safe, since GitHub wants requests to follow each other."""

    def __init__(
        self,
        connection: Connection,
        *,
        login: Login,
        settings: GitHub,
        clock: Callable[[], datetime],
        sleep: Callable[[float], None],
        usage: Usage,
        progress: Progress = silent,
    ) -> None:
        self.usage = usage
        self._connection = connection
        self._login = login
        self._settings = settings
        self._clock = clock
        self._sleep = sleep
        self._progress = progress
        self._quota: limits.Quota | None = None

    def __enter__(self) -> GitHubClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._connection.close()

    def get(self, path: str, *, params: Mapping[str, str | int] | None = None, etag: str | None = None) -> Page:
        """The answer to one GET, or 304 when it still has this `etag`.

        `path` is relative to the base URL (`/repos/o/r/issues`), or an address from a `Link` header.

        Raises:
            ConfigError: the login is refused (401), or may not read this (403).
            ResourceGone: it is not there (404, 410, 451), or has moved to another host.
            QuotaExhausted: a rate limit lasts longer than `github.max_wait_s`.
            TransientError: no usable answer after `github.max_retries` retries.
            PermanentError: another refusal, an answer of more than 200 MB, or a path that leads to another host.
        """
        url = self._connection.address(path, params)
        for _ in range(MOST_REDIRECTS + 1):
            response, data = self._ask(url, etag)
            if response.status_code not in _REDIRECTS:
                return self._page(response, data)
            url = self._connection.redirected(response)
        raise PermanentError(f"{path} is redirected more than {MOST_REDIRECTS} times, at last to {url}")

    def _page(self, response: httpx.Response, data: Any) -> Page:
        if response.status_code == 304:
            self.usage.not_modified += 1
            data, following, pages = None, None, 1
        else:
            following = response.links.get("next", {}).get("url")
            pages = _last_page(response.links.get("last", {}).get("url"))
        url = str(response.url)
        etag = response.headers.get("etag")
        next_url = urljoin(url, following) if following else None
        return Page(status=response.status_code, data=data, etag=etag, next=next_url, url=url, pages=pages)

    def _ask(self, url: httpx.URL, etag: str | None) -> tuple[httpx.Response, Any]:
        """An answer that can be used (200, 304 or a redirect) and its JSON, after as many tries as are allowed."""
        failures = refusals = renewals = 0
        while True:
            self._leave_quota_to_others()
            try:
                self.usage.requests += 1
                self._progress(_SPOKEN, done=self.usage.requests, total=None, unit="requests")
                response, body = self._connection.send(url, etag=etag)
                self._remember_quota(response)
                data = self._read(response, body)
            except TransientError as error:
                failures += 1
                self._back_off(error, failures=failures)
            else:
                wait_s = self._refusal_wait_s(response, data, refusals=refusals)
                if wait_s is not None:
                    refusals += 1
                    self._wait_out(wait_s, reason=self._said(response, data), hopeless=refusals > MOST_REFUSALS)
                elif response.status_code == 401 and not renewals and self._connection.renew():
                    renewals += 1
                else:
                    if wrong := self._meaning(response, data, conditional=bool(etag)):
                        raise wrong
                    return response, data
            self.usage.retries += 1

    def _read(self, response: httpx.Response, body: bytes) -> Any:
        """The body's JSON; text when an answer that is no success has none."""
        status = response.status_code
        try:
            data = parse_json(body) if body else None
        except ValueError as error:
            if status == 200:
                raise TransientError(f"{response.url} sent an answer that is no JSON: {_short(error)}") from None
            data = body[:10_000].decode(errors="replace")
        if status == 200 and not body:
            raise TransientError(f"{response.url} sent an empty answer")
        if status in _TRANSIENT or status >= 500:
            asked_s = limits.retry_after_s(response.headers, now=self._clock())
            raise TransientError(self._said(response, data), retry_after_s=asked_s)
        return data

    def _meaning(self, response: httpx.Response, data: Any, *, conditional: bool) -> Exception | None:
        """The error that an answer stands for; None for one that can be used."""
        status = response.status_code
        if status == 200 or status in _REDIRECTS or (status == 304 and conditional):
            return None
        said = self._said(response, data)
        if status == 401:
            return ConfigError(f"{said}: {self._login.remedy}")
        if response.request.method != "GET":  # when githubkit asked for an App's token
            return ConfigError(f"{said}: check github.app_id, github.app_installation_id and that it is not suspended")
        if status == 403:
            return ConfigError(f"{said}: {self._login.lacking(response.headers)}")
        return ResourceGone(said) if status in _GONE else PermanentError(said)

    def _refusal_wait_s(self, response: httpx.Response, data: Any, *, refusals: int) -> float | None:
        status, message = response.status_code, _message(data) if response.is_error else ""
        return limits.refusal_wait_s(status, response.headers, message, refusals=refusals, now=self._clock())

    def _said(self, response: httpx.Response, data: Any) -> str:
        text = _message(data) or response.reason_phrase
        # A server that repeats what it refuses must not get a secret into a log or the table of failures.
        secret = response.request.headers.get("authorization", "").rpartition(" ")[2]
        text = _short(text.replace(secret, "***") if secret else text)
        return f"{response.url} answered {response.status_code}: {text}"

    def _remember_quota(self, response: httpx.Response) -> None:
        quota = limits.read_quota(response.headers, now=self._clock())
        if quota and response.request.method == "GET":  # an App's own quota, for its tokens, is another
            self._quota = quota
            self.usage.limit, self.usage.remaining = quota.limit, quota.remaining
            self.usage.resets_at = quota.resets_at

    def _leave_quota_to_others(self) -> None:
        if self._quota is None:
            return
        left = f"{self._quota.remaining} of {self._quota.limit} requests an hour are left"
        share = self._settings.quota_share_left
        wait_s = limits.pause_s(self._quota, share_left=share, now=self._clock())
        if wait_s:
            self._wait_out(wait_s, reason=f"{left}, and github.quota_share_left keeps {share:.0%} of them for others")

    def _wait_out(self, wait_s: float, *, reason: str, hopeless: bool = False) -> None:
        longest_s = self._settings.max_wait_s
        if wait_s > longest_s or hopeless:
            until = self._clock() + timedelta(seconds=wait_s)
            why = "it was waited for often enough" if hopeless else f"github.max_wait_s allows {longest_s:g} s"
            raise QuotaExhausted(
                f"{QUOTA_REACHED} until {until:%Y-%m-%d %H:%M:%S %Z}, for {wait_s:.0f} s, and {why}; "
                f"the next run goes on from here. {reason}",
                retry_after_s=wait_s,
            )
        self._wait(wait_s, why="waiting for its rate limit")
        self._quota = None  # what was said before the wait no longer holds; the next answer says anew

    def _back_off(self, error: TransientError, *, failures: int) -> None:
        asked_s = error.retry_after_s
        if failures > self._settings.max_retries or (asked_s or 0.0) > self._settings.max_wait_s:
            raise error
        wait_s = limits.backoff_s(failures, jitter=random.random) if asked_s is None else asked_s
        self._wait(wait_s, why=f"waiting to ask again, after {_short(error)}")

    def _wait(self, wait_s: float, *, why: str) -> None:
        if wait_s >= _SHORTEST_TOLD_S:
            self._progress(f"{_SPOKEN}: {why}", done=0, total=math.ceil(wait_s), unit="seconds")
        self._sleep(wait_s)
        self.usage.waited_s += wait_s


def _installation_id(app: GitHubClient, repository: str, *, app_id: str) -> int:
    try:
        page = app.get(f"/repos/{repository}/installation")
    except ResourceGone as error:
        raise ConfigError(
            f"GitHub App {app_id} is not installed on {repository}, or there is no such repository: "
            f"install it there, or correct the repository's `github` ({error})"
        ) from error
    found = page.data.get("id") if isinstance(page.data, dict) else None
    if not isinstance(found, int):
        raise TransientError(f"{page.url} does not say which installation of GitHub App {app_id} it is")
    return found


def _message(data: Any) -> str:
    """What GitHub says of an answer that is no success."""
    if not isinstance(data, dict):
        return "" if data is None else str(data)
    return " ".join(str(data[key]) for key in ("message", "errors") if data.get(key))


def _short(value: object) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= 300 else f"{text[:300]}…"


def _last_page(address: str | None) -> int:
    numbers = parse_qs(urlsplit(address or "").query).get("page", ["1"])
    return int(numbers[0]) if numbers[0].isdigit() else 1
