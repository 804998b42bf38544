"""Who may come in, and how often: by key, or without one where that is allowed."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from rag_pipeline.index.api_keys import key_of, looks_like_key
from rag_pipeline.index.pool import PATIENCE_S, Connections
from rag_pipeline.serving.caller import Caller
from rag_pipeline.serving.errors import refusal
from rag_pipeline.serving.quotas import Quotas, until_next_month
from rag_pipeline.serving.rates import Allowance, RateLimits
from rag_pipeline.settings import Settings

_LOCAL: Final = re.compile(r"(localhost|127\.0\.0\.1|\[::1\])(:\d{1,5})?", re.IGNORECASE | re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """What a request shows of who sent it."""

    key: str | None
    """As it was sent, whatever that is; None: nothing was."""
    host: str
    """Its Host header."""
    is_relayed: bool = False
    """A proxy, or a page of another site, stands behind it: whoever that is, they are not on this machine."""


class Gate:
    """Tells callers apart and counts what they ask; may be used from several threads."""

    def __init__(
        self, settings: Settings, *, is_local: bool, pool: Connections, quotas: Quotas, clock: Callable[[], datetime]
    ) -> None:
        self._settings = settings
        self._anonymous = is_local and settings.serving.anonymous == "loopback"
        self._pool = pool
        self._quotas = quotas
        self._clock = clock
        self._rates = RateLimits(
            per_minute=settings.serving.requests_per_minute, clock=lambda: clock().timestamp()
        )  # fmt: skip

    @property
    def lets_anonymous_in(self) -> bool:
        """Whether anybody on this machine may read without a key."""
        return self._anonymous

    def admits_anonymously(self, shown: Credentials) -> bool:
        """Whether this request needs no key, because of where it comes from. Does not block.

        The Host header tells a browser that was led here by a foreign name (DNS rebinding) from people of this machine.
        """
        local = self._anonymous and not shown.is_relayed and _LOCAL.fullmatch(shown.host) is not None
        return local and shown.key is None

    def blocks(self, shown: Credentials) -> bool:
        """Whether `admit` and `count` may have to ask the database."""
        if shown.key is not None:
            # What is no key at all takes no place from those who have one.
            return looks_like_key(shown.key)
        return self._quotas.is_limited

    def who(self, shown: Credentials, *, patience_s: float = PATIENCE_S) -> Caller | None:
        """Who asks; None: nobody who is known. Counts nothing. `patience_s`: as long the database is waited for.

        Raises:
            DatabaseUnavailable: a key cannot be looked up.
        """
        if self.admits_anonymously(shown):
            return Caller(tenant=self._settings.tenant, role="read")
        if shown.key is None or not looks_like_key(shown.key):
            return None
        with self._pool.connection(patience_s=patience_s) as connection:
            key = key_of(connection, shown.key, now=self._clock())
        if key is None:
            return None
        return Caller(tenant=key.tenant, role=key.role, scopes=key.scopes, key_id=key.key_id)

    def admit(self, shown: Credentials, *, patience_s: float = PATIENCE_S) -> tuple[Caller, Allowance]:
        """Who asks, and how much more they may; what is wrong with a key that does not count is not told.

        Raises:
            HTTPException: 401, no key, or one that does not count; 429, too many requests in this minute or month.
            DatabaseUnavailable: a key cannot be looked up.
        """
        caller = self.who(shown, patience_s=patience_s)
        if caller is None:
            raise refusal(
                401, "no valid API key was sent: send `Authorization: Bearer rag_…` with a key of "
                "`rag-pipeline keys create`", headers={"WWW-Authenticate": "Bearer"},
            )  # fmt: skip
        allowance = self._rates.hit(caller.tenant)
        if not allowance.is_granted:
            raise refusal(
                429, f"more than {allowance.limit} requests in a minute: try again in {allowance.reset_s} seconds",
                code="rate_limited", retry_after_s=allowance.reset_s, headers=allowance.headers(),
            )  # fmt: skip
        now = self._clock()
        if not self._quotas.take(caller.tenant, now=now):
            raise refusal(
                429, "the quota of requests of this month (UTC) is used up: a new one begins with the next month",
                code="quota_exhausted", retry_after_s=until_next_month(now).total_seconds(),
                headers=allowance.headers(),
            )  # fmt: skip
        return caller, allowance
