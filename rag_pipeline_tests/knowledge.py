"""Documents with chunks made to order, and their vectors: what tests of the index and of retrieval write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from rag_pipeline.index.database import Connection
from rag_pipeline.index.spaces import SpaceVectors, create_space
from rag_pipeline.index.writer import Entry, IndexWriter, WriteReport
from rag_pipeline.model import Chunk, Document, EmbeddingSpace, Json, chunk_id, document_id, text_hash

DAY = date(2024, 5, 1)
NOW = datetime(2024, 6, 1, tzinfo=UTC)


def moment(hour: int) -> datetime:
    """A time of the source, in order of the number."""
    return datetime(2024, 5, 1, tzinfo=UTC) + timedelta(hours=hour)


def entry(
    name: str,
    *texts: str,
    at: int = 1,
    seen: int | None = None,
    tenant: str = "acme",
    repository: str = "handbook",
    source_type: str = "docs",
    language: str | None = None,
    deleted: bool = False,
    title: str | None = None,
    metadata: Mapping[str, Json] | None = None,
    scope: str | None = None,
) -> Entry:
    """A document of these chunks, last changed in hour `at`, observed in hour `seen`."""
    source_id = f"{repository}:{name}"
    identity = document_id(tenant=tenant, source_type=source_type, source_id=source_id)
    document = Document(
        tenant=tenant, document_id=identity, source_type=source_type, source_id=source_id, repository=repository,
        day=DAY, source_updated_at=moment(at), observed_at=moment(at if seen is None else seen), deleted=deleted,
        text="\n\n".join(texts), title=title, path=name, language=language, url=f"https://example.org/{name}",
        anchor="#L{start}-L{end}", metadata=metadata or {}, scope=scope,
    )  # fmt: skip
    return Entry(document=document, chunks=[] if deleted else chunks_of(document, texts))


def chunks_of(document: Document, texts: Sequence[str]) -> list[Chunk]:
    """One chunk per text, as if blank lines stood between them."""
    chunks, start, seen = [], 0, dict.fromkeys(texts, 0)
    for position, text in enumerate(texts):
        chunks.append(
            Chunk(
                tenant=document.tenant, document_id=document.document_id,
                chunk_id=chunk_id(document.document_id, text, seen[text]), position=position, text=text,
                text_hash=text_hash(text), heading_path=("Top", f"Part {position}"), start_char=start,
                end_char=start + len(text), start_line=2 * position + 1, end_line=2 * position + 1,
                tokens=len(text.split()),
            )
        )  # fmt: skip
        seen[text] += 1
        start += len(text) + 2
    return chunks


def write(connection: Connection, *entries: Entry, fingerprint: str = "v1") -> WriteReport:
    """Bring the index to these states."""
    return IndexWriter(connection, fingerprint=fingerprint, now=NOW).write(entries)


def space_of(connection: Connection, *, model: str = "test", dimensions: int = 8) -> EmbeddingSpace:
    """The space of a model."""
    return create_space(connection, provider="fake", model=model, recipe="text/v1", dimensions=dimensions)


def store_vectors(
    connection: Connection, space: EmbeddingSpace, vectors: Mapping[str, NDArray[np.floating]], *, tenant: str = "acme"
) -> int:
    """Keep the vectors of these texts."""
    stacked = np.stack(list(vectors.values()))
    return SpaceVectors(connection, space, tenant=tenant).store([text_hash(text) for text in vectors], stacked)
