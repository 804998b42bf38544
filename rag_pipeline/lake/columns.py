"""What the columns of each stage's Parquet files mean, for catalogs; which columns there are is `schemas`' business."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from rag_pipeline.lake.schemas import CHUNKS, DOCUMENTS, ITEMS, MADE_FROM, embeddings_schema

MEANINGS: Final[dict[str, str]] = {
    "tenant": "Whose knowledge it is.",
    "source_type": "docs, code, github_issue, github_pull_request, or what a drop says.",
    "source_id": "Identity inside the source; repository:path for files.",
    "repository": "Where it comes from, by its name in the configuration.",
    "day": "The partition (UTC): the day of its last change in the window that was read.",
    "source_updated_at": "When it last changed, as the source shows it.",
    "observed_at": "When the source was read.",
    "deleted": "A tombstone: it is gone in the source.",
    "title": "Its title, where the source has one.",
    "path": "The file's path in its repository.",
    "language": "Programming or markup language.",
    "url": "Where a person can see it, without a fragment.",
    "anchor": "What is appended to the URL to point at a part of it; {start} and {end} are lines.",
    "metadata": "What else is known of it, as JSON.",
    "as_of": "The moment whose state this is, where that is not source_updated_at.",
    "scope": "Only queries that name this scope see it; without one, all of the tenant.",
    "content": "The bytes as the source gave them; none for a tombstone.",
    "document_id": "hash(tenant, source type, source id): the same on every machine.",
    "text": "The cleaned text.",
    "markup": "How the text is laid out: markdown, rst, asciidoc, text or code.",
    "source_lines": "For each line of the text, the line of the source it came from; empty when they are the same.",
    "sections": "Parts that are things of their own, such as the comments of a thread.",
    "chunk_id": "hash(document, text, occurrence): the same text keeps its id.",
    "position": "Order in the document, from 0.",
    "text_hash": "Key of the text's vector in every embedding space.",
    "heading_path": "Headings, or enclosing symbols of code, outermost first.",
    "start_char": "Where it begins in the cleaned text.",
    "end_char": "Where it ends in the cleaned text.",
    "start_line": "First line in the source, from 1.",
    "end_line": "Last line in the source, inclusive.",
    "tokens": "Length in tokens of the embedding model.",
    "context": "What is put before the text when it is embedded.",
    "made_from": "Digest of the row of the stage before that it was made from: where that is the same, it is kept.",
    "embedding": "The vector at half precision.",
}


def stage_schema(stage: str) -> pa.Schema | None:
    """The schema of a stage's files; None for what is no stage of the lake. Vectors stand for those of any length."""
    if stage.startswith("raw_"):
        return ITEMS
    made = {"documents": DOCUMENTS.append(MADE_FROM), "chunks": CHUNKS.append(MADE_FROM)}
    return (made | {"embeddings": embeddings_schema(1)}).get(stage)
