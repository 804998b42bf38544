"""What there is to search: which repositories hold what, how much of it, and how fresh it is."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from difflib import SequenceMatcher
from typing import Final

from rag_pipeline.errors import UnknownSource
from rag_pipeline.index.database import Connection
from rag_pipeline.index.sql_files import queries

_MOST_NAMED: Final = 20
_MOST_CHARS: Final = 100
"""Of a name that is repeated in a message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownSource:
    """One type of source of a repository, as its reader may see it."""

    repository: str
    source_type: str
    documents: int
    chunks: int
    newest_change: datetime
    """When the source last changed any of it, UTC."""
    newest_indexed: datetime
    """When the index last took a change in, UTC."""


def known_sources(connection: Connection, *, tenant: str) -> list[KnownSource]:
    """By repository and type; to be called inside a transaction of the reader."""
    return [
        KnownSource(
            repository=repository, source_type=source_type, documents=documents, chunks=chunks,
            newest_change=changed, newest_indexed=indexed,
        )
        for repository, source_type, documents, chunks, changed, indexed in connection.execute(
            queries("knowledge")["sources"], {"tenant": tenant}
        )
    ]  # fmt: skip


def refuse_unknown(connection: Connection, *, tenant: str, repository: str | None, source_type: str | None) -> None:
    """Say so where a repository or a source type is not known; to be called inside a transaction of the reader.

    For searches that found nothing: one that is misspelt finds nothing either, and looks the same.

    Raises:
        UnknownSource: the asker sees no such repository or type; it names those that there are, the closest first.
    """
    known = known_sources(connection, tenant=tenant)
    _refuse(repository, "repository", {source.repository for source in known})
    _refuse(source_type, "source type", {source.source_type for source in known})


def _refuse(name: str | None, what: str, known: Collection[str]) -> None:
    if name is None or name in known:
        return
    there_are = f"choose from {_listed(name, known)}" if known else "nothing is indexed yet that you may see"
    raise UnknownSource(f"no {what} {name[:_MOST_CHARS]!r} is indexed: {there_are}")


def _listed(name: str, known: Collection[str]) -> str:
    """The closest ones first, and how many more there are."""
    written = name[:_MOST_CHARS].casefold()
    by_likeness = sorted(known, key=lambda one: (-SequenceMatcher(None, written, one.casefold()).ratio(), one))
    more = len(known) - _MOST_NAMED
    return ", ".join(by_likeness[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
