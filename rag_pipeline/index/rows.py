"""Documents, chunks and links as rows of their tables, in the order of the COPY statements, and a document's state."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

from psycopg.types.json import Jsonb

from rag_pipeline.index.links import links_of
from rag_pipeline.lake.schemas import dump_metadata
from rag_pipeline.model import Chunk, Document, age_of, stable_id, text_hash

_UNSTORABLE = re.compile(r"[\x00\ud800-\udfff]")

Row = tuple[object, ...]

DOCUMENT_TYPES: Final = (
    "uuid", "text", "text", "text", "text", "text", "text", "text", "text", "text", "text", "jsonb",
    "uuid", "text", "uuid", "timestamptz", "timestamptz", "bool", "timestamptz", "timestamptz",
)  # fmt: skip
CHUNK_TYPES: Final = (
    "uuid", "uuid", "text", "text", "int4", "text", "uuid", "text[]", "int4", "int4", "int4", "int4", "int4",
    "text", "text",
)  # fmt: skip
LINK_TYPES: Final = ("uuid", "text", "text", "text", "text")


def document_row(document: Document, *, fingerprint: str, state: UUID, now: datetime) -> Row:
    """A row of `rag.documents`."""
    d = document
    return (
        d.document_id, d.tenant, d.source_type, d.source_id, d.repository, d.scope, storable(d.path), d.language,
        storable(d.title), storable(d.url), storable(d.anchor), Jsonb(storable(d.metadata)), text_hash(d.text),
        fingerprint, state, d.source_updated_at, d.observed_at, d.deleted, now, age_of(d)[0],
    )  # fmt: skip


def chunk_row(chunk: Chunk, document: Document) -> Row:
    """A row of `rag.chunks`, without its number."""
    c = chunk
    return (
        c.chunk_id, c.document_id, c.tenant, document.scope, c.position, storable(c.text), c.text_hash,
        storable(c.heading_path), c.start_char, c.end_char, c.start_line, c.end_line, c.tokens, storable(c.anchor),
        storable(lead_of(document.title, document.path, c.heading_path)),
    )  # fmt: skip


def link_rows(document: Document) -> Iterator[Row]:
    """Rows of `rag.links`."""
    for kind, target in links_of(document):
        yield document.document_id, kind, target, document.tenant, document.scope


def state_of(document: Document, *, fingerprint: str) -> UUID:
    """Everything the index shows of a document; when and how often it was observed is not part of it."""
    d = document
    shown = (d.repository, d.path, d.language, d.title, d.url, d.anchor)
    return stable_id(
        "state",
        *(value or "" for value in shown),
        dump_metadata(d.metadata),
        d.source_updated_at.isoformat(),
        str(d.deleted),
        fingerprint,
        d.text,
        *((d.scope,) if d.scope is not None else ()),
        *(f"{s.start_char} {s.anchor} {s.name}" for s in d.sections or ()),
    )


def lead_of(title: str | None, path: str | None, heading_path: Sequence[str]) -> str:
    """What the lexical leg sees of a chunk before its text: where it stands.

    Title and headings stand there twice, which BM25 takes for twice as much weight (docs/retrieval.md has the figures).
    """
    headings = list(dict.fromkeys(part for part in (title, *heading_path) if part))
    return "\n".join([*([path] if path else ()), *headings, *headings])


def storable(value: object) -> object:
    """The value without what PostgreSQL's text and jsonb refuse: NUL, lone surrogates, NaN. Lengths stay the same."""
    if isinstance(value, str):
        if value.isascii() and "\x00" not in value:  # most texts, and without looking at each character
            return value
        return _UNSTORABLE.sub("\ufffd", value)
    if isinstance(value, Mapping):
        return {storable(key): storable(item) for key, item in value.items()}
    if isinstance(value, Sequence):
        return [storable(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
