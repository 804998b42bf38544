"""`rag-pipeline keys …`: who may ask the HTTP service."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from rag_pipeline.cli.console import err, out, rows_table
from rag_pipeline.cli.session import AsJson, print_json, settings_of_process
from rag_pipeline.errors import ConfigError

if TYPE_CHECKING:
    from rag_pipeline.index.database import Connection
    from rag_pipeline.settings import Settings

keys = typer.Typer(
    name="keys", no_args_is_help=True, rich_markup_mode=None,
    help="API keys of the HTTP service: each belongs to a tenant, and reads, or reads and writes.",
)  # fmt: skip


class Role(StrEnum):
    """What a key opens."""

    read = "read"
    write = "write"


@keys.command(short_help="Make a key.")
def create(
    name: Annotated[str, typer.Option(help="Who or what it is for; shown by `keys list`.")],
    tenant: Annotated[str, typer.Option(help="Whose knowledge it opens; by default the configured tenant.")] = "",
    role: Annotated[Role, typer.Option(help="write: may also put and delete documents.")] = Role.read,
    scope: Annotated[
        list[str] | None, typer.Option(help="That its requests may name, such as user:ann or user:*; repeatable.")
    ] = None,
    expires: Annotated[str, typer.Option(help="A day (YYYY-MM-DD, UTC) or so many days from now (90d).")] = "",
    as_json: AsJson = False,
) -> None:
    """Make a key and show it, this once: only its hash is kept."""
    from rag_pipeline.index.api_keys import create_key

    now = datetime.now(UTC)
    with _opened() as (settings, connection):
        key, text = create_key(
            connection, tenant=tenant or settings.tenant, name=name, role=role.value, scopes=tuple(scope or ()),
            expires_at=expiry(expires, now=now), now=now,
        )  # fmt: skip
    if as_json:
        print_json({**asdict(key), "key": text})
        return
    print(text)
    err.print(f"This is the only time that it is shown. `rag-pipeline keys revoke {key.key_id}` takes it back.")


@keys.command("list", short_help="Show all keys.")
def list_keys(
    tenant: Annotated[str, typer.Option(help="Only those of this tenant.")] = "", as_json: AsJson = False
) -> None:
    """Show every key there ever was, without its secret."""
    from rag_pipeline.index.api_keys import keys as all_keys

    now = datetime.now(UTC)
    with _opened() as (_, connection):
        found = [key for key in all_keys(connection) if tenant in ("", key.tenant)]
    if as_json:
        print_json([asdict(key) | {"state": key.state(now)} for key in found])
        return
    if not found:
        whose = f" of tenant {tenant!r}" if tenant else ""
        out.print(f"there is no key{whose}: `rag-pipeline keys create --name …` makes one", markup=False)
        return
    rows = [
        (k.key_id, k.tenant, k.name, k.role, " ".join(k.scopes), k.state(now), _day(k.created_at), _day(k.expires_at),
         f"{k.last_used_at:%Y-%m-%d %H:%M}" if k.last_used_at else "-")
        for k in found
    ]  # fmt: skip
    headers = ("key", "tenant", "name", "role", "scopes", "state", "created", "expires", "last used (UTC)")
    out.print(rows_table("", headers, rows))


@keys.command(short_help="Take a key back.")
def revoke(
    key_id: Annotated[str, typer.Argument(metavar="KEY_ID", help="As `keys list` shows it.")], as_json: AsJson = False
) -> None:
    """Let a key open nothing from the next request on."""
    from rag_pipeline.index.api_keys import revoke_key

    with _opened() as (_, connection):
        was_open = revoke_key(connection, key_id, now=datetime.now(UTC))
    if as_json:
        print_json({"key_id": key_id, "revoked_now": was_open})
    else:
        out.print(f"{key_id} is revoked" if was_open else f"{key_id} was revoked before", markup=False)


def expiry(text: str, *, now: datetime) -> datetime | None:
    """The moment from which a key counts no more: the end of a day, or so many days from now; empty: never.

    Raises:
        ConfigError: it is neither.
    """
    if not text:
        return None
    if days := re.fullmatch(r"(\d{1,5})d", text, re.ASCII):
        return now + timedelta(days=int(days[1]))
    try:
        return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC) + timedelta(days=1)
    except ValueError:
        raise ConfigError(f"--expires {text!r} is no time: write a day, YYYY-MM-DD, or days from now, 90d") from None


@contextmanager
def _opened() -> Iterator[tuple[Settings, Connection]]:
    from rag_pipeline.embedded import database_url
    from rag_pipeline.index.database import connected

    settings = settings_of_process()
    with connected(database_url(settings)) as connection:
        yield settings, connection


def _day(moment: datetime | None) -> str:
    return f"{moment:%Y-%m-%d}" if moment else "-"
