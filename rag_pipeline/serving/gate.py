"""Who may come in: by key, or without one where that is allowed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from rag_pipeline.serving.caller import Caller
from rag_pipeline.serving.errors import refusal
from rag_pipeline.settings import Settings

_LOCAL: Final = re.compile(r"(localhost|127\.0\.0\.1|\[::1\])(:\d{1,5})?", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """What a request shows of who sent it."""

    key: str | None
    host: str
    """Its Host header."""
    is_relayed: bool = False
    """A proxy or a page of another site is behind it."""


class Gate:
    """Tells callers apart; may be used from several threads."""

    def __init__(self, settings: Settings, *, is_local: bool) -> None:
        self._settings = settings
        self._anonymous = is_local and settings.serving.anonymous == "loopback"

    @property
    def lets_anonymous_in(self) -> bool:
        """Whether anybody may read without a key."""
        return self._anonymous

    def admit(self, shown: Credentials) -> Caller:
        """Who asks; blocks on the database where a key has to be looked up.

        Raises:
            HTTPException: 401, no key, or one that does not count.
        """
        if shown.key is None and self._anonymous and not shown.is_relayed and _LOCAL.fullmatch(shown.host):
            return Caller(tenant=self._settings.tenant, role="read")
        raise refusal(
            401, "no valid API key was sent: send `Authorization: Bearer rag_…`, a key of `rag-pipeline keys create`",
            headers={"WWW-Authenticate": "Bearer"},
        )  # fmt: skip
