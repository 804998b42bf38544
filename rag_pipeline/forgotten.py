"""What must not come back: marks of names by their hashes, and ages after which a source type is let go.

Pure but for the copy of the marks in RAG_HOME: sources know no database, and shall not write again what was forgotten.
`rag.forgotten` holds the marks themselves.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar
from uuid import UUID

from rag_pipeline.bounded_json import parse_json
from rag_pipeline.model import Document, Json, SourceItem, document_id, stable_id

Kind = Literal["document", "repository", "tenant", "author"]
"""What is forgotten."""

_FILE = "forgotten.json"
_FILES = ("docs", "code")
_Noun = TypeVar("_Noun", SourceItem, Document)


class Mark(NamedTuple):
    """One thing that was forgotten; nobody can read its name from it, only try names."""

    tenant: str
    """Empty for a whole tenant, whose name is not kept either."""
    kind: Kind
    name_hash: UUID


def document_mark(tenant: str, document: UUID) -> Mark:
    """A document, by its id, which is a hash already."""
    return Mark(tenant, "document", document)


def repository_mark(tenant: str, name: str) -> Mark:
    """All that came from a repository."""
    return Mark(tenant, "repository", stable_id("forgotten", "repository", name))


def tenant_mark(tenant: str) -> Mark:
    """All of a tenant."""
    return Mark("", "tenant", stable_id("forgotten", "tenant", tenant))


def author_mark(tenant: str, login: str) -> Mark:
    """What somebody wrote; logins are the same in upper and lower case."""
    return Mark(tenant, "author", stable_id("forgotten", "author", login.lower()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """All marks, and from when on each source type is kept."""

    marks: frozenset[Mark] = frozenset()
    kept_from: Mapping[str, datetime] = field(default_factory=dict)
    """By source type; what last changed before that is not kept. A type that is not named is kept for ever."""

    def __bool__(self) -> bool:
        return bool(self.marks or self.kept_from)

    def has_authors(self, tenant: str) -> bool:
        """Whether somebody of this tenant is forgotten, so that contents have to be looked at."""
        return any(mark.kind == "author" and mark.tenant == tenant for mark in self.marks)

    def author(self, tenant: str, login: object) -> bool:
        """Whether what this login wrote is forgotten."""
        return isinstance(login, str) and author_mark(tenant, login) in self.marks

    def repository(self, tenant: str, name: str) -> bool:
        """Whether all that comes from this repository is forgotten."""
        return repository_mark(tenant, name) in self.marks or tenant_mark(tenant) in self.marks

    def document(self, tenant: str, source_type: str, source_id: str) -> bool:
        """Whether this document is forgotten by itself."""
        found = document_id(tenant=tenant, source_type=source_type, source_id=source_id)
        return document_mark(tenant, found) in self.marks

    def expired(self, source_type: str, changed_at: datetime) -> bool:
        """Whether it is older than its source type is kept."""
        kept_from = self.kept_from.get(source_type)
        return kept_from is not None and changed_at < kept_from

    def covers(self, noun: SourceItem | Document) -> bool:
        """Whether this item or document must not be there at all, its tombstone included."""
        if self.expired(noun.source_type, noun.source_updated_at):
            return True
        return bool(self.marks) and (
            self.repository(noun.tenant, noun.repository)
            or self.document(noun.tenant, noun.source_type, noun.source_id)
            # The author of a file is the last who changed it, not the one whose text it is.
            or (noun.source_type not in _FILES and self.author(noun.tenant, noun.metadata.get("author")))
        )

    def left_of(self, item: SourceItem) -> SourceItem | None:
        """The item as it may be kept: None when it is forgotten, without what forgotten authors said in it."""
        if self.covers(item):
            return None
        if not self.has_authors(item.tenant):
            return item
        metadata = self._metadata(item.tenant, item.metadata)
        content = self._content(item.tenant, item.content) if _is_thread(item) else item.content
        if content == item.content and metadata == item.metadata:
            return item
        return dataclasses.replace(item, content=content, metadata=metadata)

    def kept(self, items: Iterable[SourceItem]) -> Iterator[SourceItem]:
        """What may be kept of these items."""
        return (left for item in items if (left := self.left_of(item)) is not None) if self else iter(items)

    def assignees(self, tenant: str, logins: object) -> object:
        """A list of logins without those who are forgotten; anything else as it is."""
        return [name for name in logins if not self.author(tenant, name)] if isinstance(logins, list) else logins

    def _metadata(self, tenant: str, metadata: Mapping[str, Json]) -> Mapping[str, Json]:
        found: dict[str, Any] = {k: v for k, v in metadata.items() if k != "author" or not self.author(tenant, v)}
        if "assignees" in found:
            found["assignees"] = self.assignees(tenant, found["assignees"])
            if not found["assignees"]:
                del found["assignees"]
        return found

    def _content(self, tenant: str, content: bytes) -> bytes:
        try:
            thread = parse_json(content)
            entries, assignees = thread["entries"], thread.get("assignees")
            kept = [entry for entry in entries if not self.author(tenant, _login(entry))]
        except (ValueError, TypeError, KeyError, AttributeError):
            return content  # No thread: the documents stage says what is wrong with it.
        named = self.assignees(tenant, assignees)
        if len(kept) == len(entries) and named == assignees:
            return content
        thread |= {"entries": kept, "assignees": named}
        return json.dumps(thread, sort_keys=True, ensure_ascii=True, separators=(",", ":")).encode()


NOTHING = Forgotten()
"""Everything is kept."""


def read_marks(home: Path) -> frozenset[Mark]:
    """The copy of the marks in RAG_HOME; none when nothing was ever forgotten from here."""
    try:
        rows = json.loads((home / _FILE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return frozenset()
    return frozenset(Mark(tenant, kind, UUID(name_hash)) for tenant, kind, name_hash in rows)


def write_marks(home: Path, marks: Iterable[Mark]) -> bool:
    """Bring the copy to these marks, whole or not at all; False when it is already."""
    wanted = frozenset(marks)
    if wanted == read_marks(home):
        return False
    home.mkdir(parents=True, exist_ok=True)
    temporary = home / f"{_FILE}.{os.getpid()}.tmp"
    rows = sorted([mark.tenant, mark.kind, mark.name_hash.hex] for mark in wanted)
    temporary.write_text(json.dumps(rows, indent=0) + "\n", encoding="utf-8")
    temporary.replace(home / _FILE)
    return True


def _is_thread(item: SourceItem) -> bool:
    is_thread = item.source_type.startswith("github_") or str(item.metadata.get("content_type")).endswith("thread+json")
    return is_thread and bool(item.content)


def _login(entry: Mapping[str, Any]) -> object:
    author = entry.get("author")
    return author.get("login") if isinstance(author, dict) else None
