"""`rag-pipeline forget`: what to forget, a look before anything is removed, and the proof afterwards."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Literal

import typer

from rag_pipeline.cli.console import err, out, rows_table
from rag_pipeline.errors import ConfigError, PermanentError
from rag_pipeline.index.database import Connection, connected
from rag_pipeline.lake.store import Lake
from rag_pipeline.refresh.forgetting import ForgetReport, apply_retention, expected, forget, undo, verify
from rag_pipeline.refresh.forgotten_names import Named, Target, named
from rag_pipeline.settings import Settings


def target_of(settings: Settings, *, document: str, repo: str, tenant: str, author: str) -> Target | None:
    """What the options name: one thing, of `tenant` where another one is named; None when they name nothing.

    Raises:
        ConfigError: they name several.
    """
    named_by: dict[Literal["document", "repository", "author"], str] = {
        "document": document, "repository": repo, "author": author,
    }  # fmt: skip
    chosen = [(kind, name) for kind, name in named_by.items() if name]
    if len(chosen) > 1:
        raise ConfigError("--document, --repo and --author exclude each other: forget one after the other")
    if chosen:
        return Target(kind=chosen[0][0], name=chosen[0][1], tenant=tenant or settings.tenant)
    return Target(kind="tenant", name=tenant, tenant=tenant) if tenant else None


def forget_target(settings: Settings, target: Target, *, yes: bool) -> dict[str, Any]:
    """Forget it after asking, and prove it.

    Raises:
        SourceNotFound, ConfigError: as `named`. ConfigError also: nobody is there to be asked.
        PermanentError: something is left.
    """
    with _opened(settings) as (lake, connection):
        found = named(target, settings, lake, connection)
        now = datetime.now(UTC)
        before = expected(settings, lake, connection, [found.mark], names=found.names, now=now)
        if not yes:
            _ask(target, before.found)
        report = forget(settings, lake, connection, [found.mark], names=found.names, now=now)
    return _row(report, target=target, found=found)


def forget_expired(settings: Settings) -> dict[str, Any]:
    """Take out what is older than its source type is kept; raises as `forget_target`."""
    with _opened(settings) as (lake, connection):
        return _row(apply_retention(settings, lake, connection, datetime.now(UTC)))


def verify_forgotten(settings: Settings) -> dict[str, Any]:
    """Look for all that was ever forgotten."""
    with _opened(settings) as (lake, connection):
        return _row(verify(settings, lake, connection, now=datetime.now(UTC)))


def undo_target(settings: Settings, target: Target) -> dict[str, Any]:
    """Allow something again.

    Raises:
        SourceNotFound: it was never forgotten, or is no longer known by this name.
    """
    with _opened(settings) as (lake, connection):
        found = named(target, settings, lake, connection)
        repository = target.name if target.kind == "repository" else None
        dropped = undo(settings, lake, connection, [found.mark], repository=repository)
    return {"allowed": target.name, "marks_removed": dropped}


def print_forgotten(row: dict[str, Any]) -> None:
    """A table of the places, and what is left to say."""
    if "allowed" in row:
        again = "the next refresh reads it again" if row["marks_removed"] else "it was not forgotten"
        out.print(f"{row['allowed']}: {again}", markup=False)
        return
    out.print(rows_table("", ("place", "before", "removed", "left"), _places(row)))
    for note in row["notes"]:
        out.print(f"\n{note}", markup=False)


def require_gone(row: dict[str, Any]) -> None:
    """After it is shown: what is left is an error.

    Raises:
        PermanentError: says where.
    """
    left = {place: count for place, count in row.get("left", {}).items() if count}
    if left:
        where = ", ".join(f"{place}: {count:,}" for place, count in left.items())
        raise PermanentError(f"not everything is forgotten ({where}): run `rag-pipeline forget --expired` to go on")


def _places(row: dict[str, Any]) -> list[tuple[str, int, int, int]]:
    names = dict.fromkeys([*row["before"], *row["left"]])
    places = [(name, row["before"].get(name, 0), row["left"].get(name, 0)) for name in names]
    return [(name, before, before - left, left) for name, before, left in places]


def _row(report: ForgetReport, *, target: Target | None = None, found: Named | None = None) -> dict[str, Any]:
    notes = []
    if report.cut:
        notes.append(
            f"{report.cut:,} documents of others lost what was said or changed there; they are back in the index, "
            "without it, after the next refresh: run `rag-pipeline materialize`"
        )
    notes += [f"{name} is not read any more: take it out of rag_pipeline.toml" for name in report.still_configured]
    if target is not None and target.kind == "document" and report.found["documents"]:
        notes.append("A clone of a git repository holds the history of its files, as their source does.")
    row: dict[str, Any] = {"before": _counts(report.found), "left": _counts(report.left), "notes": notes}
    if found is not None and found.document:
        row["document_id"] = str(found.document)
        notes.append(f"To allow it again: rag-pipeline forget --undo --document {found.document}")
    return row


def _counts(places: Counter[str]) -> dict[str, int]:
    return {place: count for place, count in places.items() if count or not place.startswith(("lake", "inbox"))}


def _ask(target: Target, before: Counter[str]) -> None:
    rows = [(place, count) for place, count in before.items() if count]
    err.print(rows_table(f"{target.kind} {target.name} (tenant {target.tenant})", ("place", "found"), rows))
    if not sys.stdin.isatty():
        raise ConfigError("forgetting cannot be taken back: look at the counts above, and confirm with --yes")
    typer.confirm("Forget this for good?", abort=True, err=True)


@contextmanager
def _opened(settings: Settings) -> Iterator[tuple[Lake, Connection]]:
    from rag_pipeline.embedded import database_url
    from rag_pipeline.index.migrations import migrate

    url = database_url(settings)
    migrate(url)
    with connected(url) as connection:
        yield Lake(settings.lake_url), connection
