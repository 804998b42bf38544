"""Who may see what: personal tokens, GitHub Apps with their JWT, and the installation tokens that they are given.

A JWT is checked as far as the standard library can: form, algorithm, times, issuer; `verify` may check its signature.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Literal

from rag_pipeline_tests.github_server.answers import refused
from rag_pipeline_tests.github_server.nouns import Repository
from rag_pipeline_tests.github_server.shapes import Json, shown

PERMISSIONS = {"contents": "read", "issues": "read", "metadata": "read", "pull_requests": "read"}
_JWT_LONGEST = timedelta(minutes=10)
_TOKEN_LIFE = timedelta(hours=1)
_CLOCK_SKEW = timedelta(seconds=60)


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who asks; an installation sees its own repositories, a token all of them, nobody only the public ones."""

    kind: Literal["nobody", "token", "installation", "app"]
    installation: int | None = None
    repository_ids: frozenset[int] | None = None

    def sees(self, repository: Repository) -> bool:
        """Whether the repository exists for this caller."""
        if not repository.private or self.kind == "token":
            return True
        is_covered = self.repository_ids is None or repository.id in self.repository_ids
        return self.kind == "installation" and repository.installation == self.installation and is_covered


NOBODY = Caller(kind="nobody")


@dataclass(slots=True)
class Access:
    """The credentials that the server takes; tests change the fields as they like."""

    tokens: set[str] = field(default_factory=set)
    app_ids: set[str] = field(default_factory=set)
    verify: Callable[[str], bool] | None = None
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    issued: dict[str, tuple[datetime, Caller]] = field(default_factory=dict)

    def caller(self, authorization: str | None) -> Caller:
        """Who sends this header; raises Refused with 401 when nobody can have sent it."""
        if authorization is None:
            return NOBODY
        token = secret_of(authorization)
        if token in self.tokens:
            return Caller(kind="token")
        if token in self.issued and self.clock() < self.issued[token][0]:
            return self.issued[token][1]
        if token.count(".") == 2:
            self.check_jwt(authorization)
            return Caller(kind="app")
        raise refused(401, "Bad credentials")

    def check_jwt(self, authorization: str | None) -> None:
        """Take only the JWT of an app; raises Refused with 401, or with 404 for an app that is not known."""
        scheme, _, token = (authorization or "").partition(" ")
        claims = _claims(token) if scheme == "Bearer" else None
        if claims is None or (self.verify is not None and not self.verify(token)):
            raise refused(401, "A JSON web token could not be decoded")
        self._check_times(claims)
        if self.app_ids and str(claims.get("iss")) not in self.app_ids:
            raise refused(404, "Integration not found")

    def issue(self, installation: int, repository_ids: Collection[int] | None, permissions: Json) -> tuple[str, str]:
        """A new installation token, with its end as GitHub shows it."""
        token = f"ghs_{installation}x{len(self.issued) + 1:032d}"
        ids = None if repository_ids is None else frozenset(repository_ids)
        until = self.clock() + _TOKEN_LIFE
        self.issued[token] = until, Caller(kind="installation", installation=installation, repository_ids=ids)
        return token, shown(until.astimezone(UTC)) or ""

    def expire(self) -> None:
        """All installation tokens given so far end now."""
        self.issued.clear()

    def _check_times(self, claims: dict[str, object]) -> None:
        begin, end = claims.get("iat"), claims.get("exp")
        if not isinstance(end, int | float) or _moment(end) <= self.clock():
            why = "must be a numeric value representing the future time at which the assertion expires"
            raise refused(401, f"'Expiration time' claim ('exp') {why}")
        if _moment(end) > self.clock() + _JWT_LONGEST:
            raise refused(401, "'Expiration time' claim ('exp') is too far in the future")
        if not isinstance(begin, int | float) or _moment(begin) > self.clock() + _CLOCK_SKEW:
            why = "must be an Integer representing the time that the assertion was issued"
            raise refused(401, f"'Issued at' claim ('iat') {why}")


def secret_of(authorization: str) -> str:
    """The token in an Authorization header: `Bearer …`, `token …`, or the password of `Basic …`."""
    scheme, _, rest = authorization.partition(" ")
    if scheme.lower() in {"bearer", "token"}:
        return rest.strip()
    if scheme.lower() == "basic":
        try:
            return base64.b64decode(rest, validate=True).decode().partition(":")[2]
        except (binascii.Error, UnicodeDecodeError):
            return ""
    return ""


def _claims(token: str) -> dict[str, object] | None:
    try:
        header, payload = (json.loads(_decoded(part)) for part in token.split(".")[:2])
    except ValueError:
        return None
    is_signed = isinstance(header, dict) and header.get("alg") == "RS256" and len(token.split(".")[-1]) > 0
    return payload if is_signed and isinstance(payload, dict) else None


def _decoded(part: str) -> bytes:
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
