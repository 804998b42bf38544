"""`POST /v1/chunk`: a text in chunks, as the pipeline would cut it, and their vectors."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import closing
from datetime import datetime
from pathlib import PurePosixPath
from typing import Final

from fastapi import APIRouter

from rag_pipeline.chunking.stage import Rules
from rag_pipeline.errors import ItemError, NothingIndexed, RagPipelineError
from rag_pipeline.index.pool import connected_twice
from rag_pipeline.index.spaces import active_space
from rag_pipeline.isolation import SMALL_CHARS, Isolated
from rag_pipeline.model import Chunk, Document, Markup, document_id
from rag_pipeline.refresh.parts import chunking_rules
from rag_pipeline.serving.caller import Caller
from rag_pipeline.serving.depends import Reader, ServicesOf
from rag_pipeline.serving.errors import documented, refusal
from rag_pipeline.serving.schemas import ChunkBody, ChunkOf, ChunksBody
from rag_pipeline.serving.services import Services
from rag_pipeline.settings import Settings
from rag_pipeline.sources.git.file_kinds import kind_of

router = APIRouter(tags=["chunk"], responses=documented())
_log = logging.getLogger(__name__)
MOST_EMBEDDED: Final = 256
"""Chunks of one request: some seconds of work for a model that runs here."""
_DIGITS: Final = 7  # more than a vector of single precision holds
_MARKUPS: Final[dict[str, Markup]] = {
    "markdown": "markdown", "mdx": "markdown", "restructuredtext": "rst", "asciidoc": "asciidoc",
}  # fmt: skip


@router.post("/v1/chunk")
async def chunk(body: ChunkBody, caller: Reader, services: ServicesOf) -> ChunksBody:
    """The chunks that the pipeline would make of this text, and with `embed` the vectors that it would give them.

    Nothing is stored. The text is taken as it is: HTML and notebooks are converted when they are indexed, not here.
    """
    chunks = await services.workers.run(lambda: _cut(services, caller, body))
    if not body.embed:
        return ChunksBody(chunks=[_body(one, None) for one in chunks])
    if len(chunks) > MOST_EMBEDDED:
        raise refusal(
            413,
            f"this text has {len(chunks)} chunks, and at most {MOST_EMBEDDED} are embedded at once: send it in parts",
        )
    model, vectors = await services.workers.run(lambda: _embedded(services, chunks))
    dimensions = next((len(vector) for vector in vectors if vector is not None), None)
    bodies = [_body(one, vector) for one, vector in zip(chunks, vectors, strict=True)]
    return ChunksBody(chunks=bodies, model=model, dimensions=dimensions)


def _cut(services: Services, caller: Caller, body: ChunkBody) -> list[Chunk]:
    rules, document = (
        chunking_rules(services.settings),
        _document(services.settings, body, caller.tenant, services.clock()),
    )
    try:
        if len(body.text) <= SMALL_CHARS:
            return rules.chunks_of(document)
        limits = services.settings.documents
        # Nobody waits for longer than for any other request.
        timeout_s = min(limits.timeout_s, services.settings.serving.request_timeout_s)
        with Isolated(timeout_s=timeout_s, memory_bytes=limits.memory_bytes) as isolated:
            return isolated.call(Rules.chunks_of, rules, document)
    except ItemError as error:
        _log.warning("a text could not be chunked: %s", error)
        raise refusal(413, "cutting this text takes too long or too much memory: send it in parts") from error


def _document(settings: Settings, body: ChunkBody, tenant: str, now: datetime) -> Document:
    kind = kind_of(PurePosixPath(body.path).name, settings.git.file_types) if body.path else None
    named: Markup = "text"
    if kind is not None:
        named = "code" if kind.source_type == "code" else _MARKUPS.get(kind.language, "text")
    language = body.language or (kind.language if kind is not None else None)
    return Document(
        tenant=tenant, document_id=document_id(tenant=tenant, source_type="request", source_id=body.path or ""),
        source_type="request", source_id=body.path or "", repository="", day=now.date(), text=body.text,
        markup=body.markup or named, language=language, path=body.path,
        source_updated_at=now, observed_at=now,
    )  # fmt: skip


def _embedded(services: Services, chunks: Sequence[Chunk]) -> tuple[str, list[list[float] | None]]:
    """The model's name, and each chunk's vector; None where the model refuses the text."""
    space = connected_twice(services.reads.connection, active_space)
    if space is None:
        raise NothingIndexed("nothing is indexed yet, so no model was chosen: run `rag-pipeline up` first")
    vectors: list[list[float] | None] = [None] * len(chunks)
    try:
        with closing(services.embedders.own(space)) as embedder:
            for batch in embedder.embed([f"{one.context}{one.text}" for one in chunks]):
                for index, vector in zip(batch.indices, batch.vectors.tolist(), strict=True):
                    vectors[index] = [round(number, _DIGITS) for number in vector]
    except RagPipelineError as error:
        _log.warning("chunks could not be embedded: %s", error)
        raise refusal(
            503, "the embedding model does not answer: ask without `embed`, or again in a moment", retry_after_s=5.0
        ) from error
    return space.model, vectors


def _body(chunk: Chunk, embedding: list[float] | None) -> ChunkOf:
    return ChunkOf(
        text=chunk.text, start_char=chunk.start_char, end_char=chunk.end_char, start_line=chunk.start_line,
        end_line=chunk.end_line, heading_path=list(chunk.heading_path), tokens=chunk.tokens, context=chunk.context,
        embedding=embedding,
    )  # fmt: skip
