"""A whole document, put together again from its chunks; to read on where a hit ends."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from rag_pipeline.errors import SourceNotFound
from rag_pipeline.index.database import Connection
from rag_pipeline.index.sql_files import queries
from rag_pipeline.model import Json

_MOST_NAMED: Final = 6
_MOST_INDENT: Final = 200
_BREAK = re.compile("\n")
_LINES = re.compile(r":\d+(-\d+)?( · [^:]*)?$")  # as a hit's location ends
_FRAGMENT = re.compile(r"(\?(plain=1|display=source))?#.*$", re.DOTALL)
"""As the address of a hit ends: what asks a forge for these lines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A chunk's part of a document, as the index holds it."""

    text: str
    start_char: int
    """In the cleaned text."""
    start_line: int
    """In the source, from 1."""
    end_line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeText:
    """The cleaned text of a document, and which line of the source each part of it comes from."""

    text: str
    starts: Sequence[int] = ()
    """Of the pieces, in `text`."""
    pieces: Sequence[Piece] = ()

    def line_at(self, offset: int) -> int:
        """The source's line of a place in `text`; exact where cleaning left the lines of a piece as they were."""
        if not self.pieces:
            return 1
        number = max(0, bisect_right(self.starts, offset) - 1)
        piece = self.pieces[number]
        return min(piece.end_line, piece.start_line + self.text.count("\n", self.starts[number], offset))

    def offset_of(self, line: int) -> int:
        """Where the source's line begins in `text`; where it is not there, the next one that is; at last the end."""
        for start, piece in zip(self.starts, self.pieces, strict=True):
            if piece.end_line >= line:
                breaks = [at.end() for at in _BREAK.finditer(self.text, start, start + len(piece.text))]
                wanted = line - piece.start_line
                return breaks[wanted - 1] if 0 < wanted <= len(breaks) else start
        return len(self.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeDocument:
    """A document as its reader may see it."""

    document_id: UUID
    title: str
    url: str
    path: str | None
    repository: str
    source_type: str
    source_id: str
    language: str | None
    metadata: Mapping[str, Json]
    source_updated_at: datetime
    indexed_at: datetime
    content: WholeText


def put_together(pieces: Sequence[Piece]) -> WholeText:
    """The text that the pieces were cut from, in the order of their `start_char`. Pure.

    What they share stands there once. Between them only white space was left out: as many line breaks come back as
    the lines say, and the indentation of what follows.
    """
    parts: list[str] = []
    starts: list[int] = []
    kept: list[Piece] = []
    length = reached = 0
    for piece in pieces:
        end = piece.start_char + len(piece.text)
        if kept and end <= reached:
            continue  # all of it is there
        shared = max(0, reached - piece.start_char) if kept else 0
        between = _between(kept[-1], piece, piece.start_char - reached) if kept else ""
        starts.append(length + len(between) - shared)
        kept.append(piece)
        parts += [between, piece.text[shared:]]
        length += len(between) + len(piece.text) - shared
        reached = end
    return WholeText(text="".join(parts), starts=tuple(starts), pieces=tuple(kept))


def read_document(connection: Connection, name: str, *, tenant: str) -> WholeDocument:
    """The one document of this name: its id, address, source id, `owner/name#1` or path, with or without lines.

    To be called inside a transaction of the reader.

    Raises:
        SourceNotFound: none of that name is visible to the reader, or several are.
    """
    found = connection.execute(queries("knowledge")["named"], _spellings(name, tenant)).fetchall()
    if not found:
        raise SourceNotFound(
            f"no document is named {name[:200]!r}: give the document_id or the url of a hit, or its path"
        )
    if len(found) > 1:
        several = ", ".join(f"{row[0]} ({row[5]} {row[6][:100]})" for row in found[: _MOST_NAMED - 1])
        more = " and others" if len(found) == _MOST_NAMED else ""
        raise SourceNotFound(f"{name[:200]!r} names several documents: give the document_id of one: {several}{more}")
    return _document(found[0], _content(connection, found[0][0], tenant))


def _spellings(name: str, tenant: str) -> dict[str, Any]:
    """What a name may be, as values of the statement."""
    try:
        identity = UUID(name.strip())
    except ValueError:
        identity = None
    without_lines = _LINES.sub("", name)
    # A location is path:1-9; an address may end in a fragment, while owner/name#1 is a name of its own.
    names = [name, without_lines, _FRAGMENT.sub("", name) if "://" in name else name]
    return {"tenant": tenant, "document_id": identity, "names": list(dict.fromkeys(names)), "limit": _MOST_NAMED}


def _content(connection: Connection, document: UUID, tenant: str) -> WholeText:
    rows = connection.execute(queries("knowledge")["pieces"], {"document": document, "tenant": tenant})
    return put_together([
        Piece(text=text, start_char=start, start_line=first, end_line=last) for text, start, first, last in rows
    ])  # fmt: skip


def _document(row: Sequence[Any], content: WholeText) -> WholeDocument:
    (document_id, title, url, path, repository, source_type, source_id, language, metadata, updated, indexed, _) = row
    return WholeDocument(
        document_id=document_id, title=title or source_id, url=url or "", path=path, repository=repository,
        source_type=source_type, source_id=source_id, language=language, metadata=metadata, source_updated_at=updated,
        indexed_at=indexed, content=content,
    )  # fmt: skip


def _between(before: Piece, piece: Piece, gap: int) -> str:
    """The white space of `gap` characters that stood between two pieces."""
    if gap <= 0:
        return ""
    lines = min(gap, max(0, piece.start_line - before.end_line))
    return "\n" * lines + " " * min(gap - lines, _MOST_INDENT)
