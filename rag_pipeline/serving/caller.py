"""Who asks: a tenant, what it may do, and in whose name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from starlette.exceptions import HTTPException

Role = Literal["read", "write"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Whoever sent a request, once it is known who that is."""

    tenant: str
    role: Role
    """Who may write may read, too."""
    scopes: Sequence[str] = ()
    """That its requests may name; `user:*` is every one that begins so."""
    key_id: str | None = None
    """None: it asked without a key."""

    def scoped(self, wanted: Sequence[str]) -> tuple[str, ...]:
        """The scopes that a request names, all of which this caller may name.

        Raises:
            HTTPException: 403, one of them is not this caller's.
        """
        for scope in wanted:
            if not any(_covers(allowed, scope) for allowed in self.scopes):
                raise HTTPException(403, f"this key may not name the scope {scope[:100]!r}")
        return tuple(dict.fromkeys(wanted))


def _covers(allowed: str, scope: str) -> bool:
    if allowed.endswith("*"):
        return len(scope) >= len(allowed) and scope.startswith(allowed[:-1])
    return scope == allowed
