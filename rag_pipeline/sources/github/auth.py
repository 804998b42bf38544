"""Whom GitHub is asked as (a token, a GitHub App, or nobody), and the connection that does so, to one origin only.

When to ask, and what answers mean, is the client's. Secrets stay in here: no repr or error shows one.
githubkit does the authentication; it is imported when a connection is opened, since that takes half a second.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from rag_pipeline.errors import ConfigError, PermanentError, ResourceGone, TransientError

if TYPE_CHECKING:
    import httpx
    from githubkit import BaseAuthStrategy, GitHubCore

    from rag_pipeline.settings import GitHub

MOST_BYTES = 200_000_000
"""Of one answer, decompressed."""
USER_AGENT = "rag-pipeline"
API_VERSION = "2022-11-28"
"""Of the REST API: the one that github.com and every supported GitHub Enterprise Server know.

https://docs.github.com/en/rest/about-the-rest-api/api-versions
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """Whom to be for GitHub: an App when `app_id` is set, else the token's owner, else nobody."""

    variable: str
    """The environment variable that holds the secret, or would."""
    token: str = field(default="", repr=False)
    app_id: str = ""
    private_key: str = field(default="", repr=False)

    @property
    def remedy(self) -> str:
        """What to do when GitHub does not believe us."""
        if self.app_id:
            return f"check github.app_id, the private key in {self.variable} and this machine's clock"
        if self.token:
            return f"check the token in the environment variable {self.variable}; it may have expired"
        return f"set {self._somewhere} to a token"

    def lacking(self, headers: Mapping[str, str]) -> str:
        """What to do when GitHub believes us, but will not let us read; `headers` of the answer say what it wants."""
        needed = headers.get("x-accepted-github-permissions") or headers.get("x-accepted-oauth-scopes")
        wanted = f"what it asks for: {needed}" if needed else "read access to metadata, contents, issues, pull requests"
        if headers.get("x-github-sso", "").startswith("required"):
            return f"authorise the token in {self.variable} for the organisation's single sign-on"
        if self.app_id:
            return f"grant GitHub App {self.app_id} {wanted}"
        if self.token:
            return f"give the token in {self.variable} {wanted}"
        return f"set {self._somewhere} to a token with read access"

    @property
    def _somewhere(self) -> str:
        return f"the environment variable {self.variable}" if self.variable else "the variable of github.token_env"


def choose_login(settings: GitHub, *, token_env: str, environ: Mapping[str, str]) -> Login:
    """The login that the configuration asks for: the repository's own token, the App, the general token, or nobody.

    Raises:
        ConfigError: a variable that was named on purpose is not set, or holds no token or key.
    """
    if not token_env and settings.app_id:
        return Login(
            variable=settings.app_private_key_env,
            app_id=settings.app_id,
            private_key=_private_key(settings, environ),
        )
    variable = token_env or settings.token_env
    token = environ.get(variable, "").strip() if variable else ""
    if variable and not token and (token_env or "token_env" in settings.model_fields_set):
        raise ConfigError(f"the environment variable {variable}, named as token_env, is not set: set it to a token")
    if not re.fullmatch(r"[!-~]*", token):
        # The HTTP library would quote the whole header when it refuses it.
        raise ConfigError(f"the environment variable {variable} holds characters that no token has: set it to a token")
    return Login(variable=variable, token=token)


class Connection:
    """githubkit's HTTP client for a login: every request goes to the base URL's origin, authenticated.

    githubkit's cache, retries and redirects are off. `GitHubCore.request` is not used: it reads error bodies of any
    size, fails on a `Retry-After` that is a date, and keeps its connection in a context variable, so that it
    connects anew for every request of another thread.
    """

    def __init__(
        self, login: Login, *, base_url: str, timeout_s: float, installation_id: int | None, as_app: bool = False
    ) -> None:
        """`as_app`: as the App itself, which may ask for its installations and not much else.

        Raises:
            ConfigError: the base URL or the App's key cannot be used.
        """
        from githubkit import AppInstallationAuthStrategy, GitHubCore, TokenAuthStrategy, UnauthAuthStrategy
        from githubkit.cache import MemCacheStrategy

        auth: BaseAuthStrategy = UnauthAuthStrategy()
        if login.app_id and installation_id is not None:
            auth = AppInstallationAuthStrategy(login.app_id, login.private_key, installation_id)
        elif login.token:
            auth = TokenAuthStrategy(login.token)
        # githubkit's default is one cache for the whole process, whose keys do not tell one GitHub from another.
        self._tokens = MemCacheStrategy()
        github = GitHubCore(
            auth,
            base_url=_checked(base_url),
            user_agent=USER_AGENT,
            timeout=timeout_s,
            ssl_verify=_certificates(),
            follow_redirects=False,
            cache_strategy=self._tokens,
            http_cache=False,
            auto_retry=False,
        )
        jwt = _jwt(login, github) if login.app_id else ""
        self._renewable = bool(login.app_id) and not as_app
        self._timeout_s = timeout_s
        self._open = ExitStack()
        self._http: httpx.Client = self._open.enter_context(github.get_sync_client())
        self._http.headers["X-GitHub-Api-Version"] = API_VERSION
        if as_app:
            # Not by githubkit's own strategy: it knows an App's paths by name, and not where they are redirected to.
            self._http.headers["Authorization"] = f"Bearer {jwt}"

    def address(self, path: str, params: Mapping[str, str | int] | None) -> httpx.URL:
        """A path below the base URL, or an address of the same origin.

        Raises:
            PermanentError: it is of another origin, which must not get the token.
        """
        import httpx

        try:
            url = self._http.build_request("GET", path).url
            url = url.copy_merge_params(params) if params else url
        except httpx.InvalidURL as error:
            raise PermanentError(f"{path[:200]!r} is no address: {error}") from error
        if not self._is_ours(url):
            raise PermanentError(
                f"{url.copy_with(userinfo=b'')} is not of {self._http.base_url}: it is not asked, since it would get "
                "the token; if both are the same GitHub, change the base URL to match"
            )
        return url

    def redirected(self, response: httpx.Response) -> httpx.URL:
        """Where a redirect leads to.

        Raises:
            ResourceGone: to another origin, which must not get the token.
            PermanentError: to nowhere.
        """
        import httpx

        location = response.headers.get("location", "")
        try:
            target = response.url.join(location)
        except httpx.InvalidURL as error:
            raise PermanentError(f"{response.url} is redirected to something that is no address: {error}") from error
        if not location:
            raise PermanentError(f"{response.url} is redirected, but GitHub does not say where to")
        if not self._is_ours(target):
            raise ResourceGone(f"{response.url} has moved to another host, {target.host}, which is not asked")
        return target

    def send(self, url: httpx.URL, *, etag: str | None) -> tuple[httpx.Response, bytes]:
        """One GET, its answer and the answer's body; or what GitHub answered when it was asked for an App's token.

        Raises:
            TransientError: not reached, too slow, or an answer that broke off.
            PermanentError: an answer of more than MOST_BYTES.
        """
        import httpx
        from githubkit.exception import GitHubException, RequestFailed

        headers = {"If-None-Match": etag} if etag and etag.isascii() else {}
        try:
            response = self._http.send(self._http.build_request("GET", url, headers=headers), stream=True)
            try:
                return response, _body(response)
            finally:
                response.close()
        except RequestFailed as refused:
            answer = refused.response.raw_response
            return answer, answer.content
        except httpx.TimeoutException as error:
            raise TransientError(f"{url} did not answer within {self._timeout_s:g} s") from error
        except httpx.HTTPError as error:
            raise TransientError(f"cannot reach {url}, or its answer broke off: {error}") from error
        except (GitHubException, ValueError):  # of what should have been a token: the errors quote it
            raise TransientError(f"{self._http.base_url} sent something else than a token for the App") from None

    def renew(self) -> bool:
        """Forget an App's token, which may have been revoked; whether the next request will ask for another."""
        self._tokens.cleanup()
        return self._renewable

    def close(self) -> None:
        self._open.close()

    def _is_ours(self, url: httpx.URL) -> bool:
        ours = self._http.base_url
        return (url.scheme, url.host, url.port, url.userinfo) == (ours.scheme, ours.host, ours.port, b"")


def _jwt(login: Login, github: GitHubCore[BaseAuthStrategy]) -> str:
    from githubkit.auth.app import AppAuth

    try:
        return AppAuth(github, login.app_id, login.private_key).get_jwt()
    except Exception:  # of several libraries, and of many kinds; none may quote the key
        raise ConfigError(
            f"the private key in {login.variable} cannot be used: "
            "set it to the PEM file that GitHub made for the App (RSA, without a password)"
        ) from None


def _private_key(settings: GitHub, environ: Mapping[str, str]) -> str:
    """The PEM text that the variable holds, or that is in the file it names."""
    variable = settings.app_private_key_env
    value = environ.get(variable, "").strip() if variable else ""
    if not value:
        raise ConfigError(
            f"github.app_id is set, but the environment variable {variable or 'of github.app_private_key_env'} is not: "
            "set it to the App's private key, or to the path of its PEM file"
        )
    if "-----BEGIN" not in value:
        try:
            value = Path(value).expanduser().read_text(encoding="utf-8")
        except (OSError, ValueError, RuntimeError):
            value = ""
    if "-----BEGIN" not in value:
        # What it holds is not repeated: it may be a key that lost its first line.
        raise ConfigError(f"{variable} holds neither a private key (PEM) nor the path of a readable file with one")
    return value.replace("\\n", "\n")  # as it stands in an .env file


@cache
def _certificates() -> ssl.SSLContext:
    """Once for all connections: reading the certificates takes 30 ms."""
    import httpx

    return httpx.create_ssl_context()


def _checked(base_url: str) -> str:
    import httpx

    try:
        url = httpx.URL(base_url)
        if url.scheme in ("http", "https") and url.host and not (url.userinfo or url.query or url.fragment):
            return base_url
    except httpx.InvalidURL:
        pass
    # Not repeated: it may hold a password.
    raise ConfigError("the base URL of GitHub's API must be an http(s) address without credentials, query or fragment")


def _body(response: httpx.Response) -> bytes:
    """The body, decompressed.

    Raises:
        PermanentError: it is longer than MOST_BYTES; the rest is not read.
    """
    declared = response.headers.get("content-length", "")
    too_long = PermanentError(f"{response.url} sends more than {MOST_BYTES:,} bytes: no answer that is of use")
    if re.fullmatch(r"[0-9]{1,15}", declared) and int(declared) > MOST_BYTES:
        raise too_long
    parts, size = [], 0
    for part in response.iter_bytes():
        parts.append(part)
        size += len(part)
        if size > MOST_BYTES:
            raise too_long
    return b"".join(parts)
