"""API keys: `rag_<key_id>_<secret>`. The secret is shown once, when it is made; only its hash is kept.

A secret is 32 random bytes, so one round of SHA-256 is enough: there is nothing to guess, and nothing to salt.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Literal

import psycopg

from rag_pipeline.errors import ConfigError
from rag_pipeline.index.database import Connection
from rag_pipeline.index.sql_files import queries

_KEY: Final = re.compile(r"rag_([0-9a-f]{12})_([A-Za-z0-9_-]{43})", re.ASCII)
_SCOPE: Final = re.compile(r"[^\x00-\x20\x7f*\ud800-\udfff]{1,200}\*?")
_STORABLE: Final = re.compile(r"[^\x00-\x1f\x7f\ud800-\udfff]{1,200}")
_NO_HASH: Final = bytes(32)
_NOTED_EVERY: Final = timedelta(minutes=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """Everything of a key but its secret."""

    key_id: str
    tenant: str
    name: str
    role: Literal["read", "write"]
    scopes: Sequence[str]
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    last_used_at: datetime | None = None
    """To within a minute."""

    def state(self, now: datetime) -> Literal["valid", "revoked", "expired"]:
        """Whether it opens anything."""
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if self.expires_at is not None and self.expires_at <= now else "valid"


def create_key(
    connection: Connection,
    *,
    tenant: str,
    name: str,
    role: Literal["read", "write"],
    scopes: Sequence[str] = (),
    expires_at: datetime | None = None,
    now: datetime,
) -> tuple[ApiKey, str]:
    """A new key, and the text that its holder sends; nobody can read that text again.

    Raises:
        ConfigError: tenant, name or a scope is empty or cannot be stored, or the key would never be valid.
    """
    for what, text in (("tenant", tenant), ("name", name)):
        if not _STORABLE.fullmatch(text):
            raise ConfigError(f"the {what} {text[:100]!r} cannot be a key's: write 1 to 200 printable characters")
    for scope in scopes:
        if not _SCOPE.fullmatch(scope):
            raise ConfigError(f"{scope[:100]!r} is no scope: write one like user:ann, or user:* for all that begin so")
    if expires_at is not None and expires_at <= now:
        raise ConfigError(f"the key would expire at {expires_at:%Y-%m-%d %H:%M} UTC, which is over: name a later time")
    secret = secrets.token_urlsafe(32)
    key = ApiKey(
        key_id=secrets.token_hex(6), tenant=tenant, name=name, role=role, scopes=tuple(dict.fromkeys(scopes)),
        created_at=now, expires_at=expires_at,
    )  # fmt: skip
    values = {
        "key_id": key.key_id, "tenant": tenant, "name": name, "secret_hash": _hash(secret), "role": role,
        "scopes": list(key.scopes), "now": now, "expires_at": expires_at,
    }  # fmt: skip
    connection.execute(queries("api_keys")["add"], values)
    return key, f"rag_{key.key_id}_{secret}"


def looks_like_key(text: str) -> bool:
    """Whether it is worth looking up."""
    return _KEY.fullmatch(text) is not None


def key_of(connection: Connection, text: str, *, now: datetime) -> ApiKey | None:
    """The key that was sent, if it is one and valid; notes at most once a minute that it was used.

    What is wrong with one that is not, nobody learns, nor by how long it takes.
    """
    written = _KEY.fullmatch(text)
    if written is None:
        return None
    row = connection.execute(queries("api_keys")["one"], {"key_id": written[1]}).fetchone()
    is_right = hmac.compare_digest(_hash(written[2]), bytes(row[9]) if row else _NO_HASH)
    key = _key(row) if row else None
    if key is None or not is_right or key.state(now) != "valid":
        return None
    before = now - _NOTED_EVERY
    if key.last_used_at is None or key.last_used_at <= before:
        # A standby, or a server that takes no writes at the moment, keeps nobody out.
        with suppress(psycopg.errors.ReadOnlySqlTransaction):
            connection.execute(queries("api_keys")["note_use"], {"key_id": key.key_id, "now": now, "before": before})
    return key


def keys(connection: Connection) -> list[ApiKey]:
    """All keys there ever were, revoked ones included."""
    return [_key(row) for row in connection.execute(queries("api_keys")["all"])]


def revoke_key(connection: Connection, key_id: str, *, now: datetime) -> bool:
    """Let a key open nothing from this moment on; False when it was revoked before.

    Raises:
        ConfigError: there is no such key.
    """
    changed = connection.execute(queries("api_keys")["revoke"], {"key_id": key_id, "now": now}).rowcount
    if not changed and connection.execute(queries("api_keys")["one"], {"key_id": key_id}).fetchone() is None:
        raise ConfigError(f"there is no key {key_id[:100]!r}: `rag-pipeline keys list` shows all")
    return bool(changed)


def _hash(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()


def _key(row: Sequence[Any]) -> ApiKey:
    return ApiKey(
        key_id=row[0], tenant=row[1], name=row[2], role=row[3], scopes=tuple(row[4]), created_at=row[5],
        expires_at=row[6], revoked_at=row[7], last_used_at=row[8],
    )  # fmt: skip
