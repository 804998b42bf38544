"""Haystack: an indexing pipeline into PgvectorDocumentStore.

DocumentSplitter at 200 words without overlap, its defaults. https://docs.haystack.deepset.ai: "DocumentSplitter",
"DocumentWriter", "PgvectorDocumentStore".

Haystack has no incremental mode: its pipeline embeds everything again, whatever `DuplicatePolicy` says (`CacheChecker`
asks the store file by file whether it has a path, and notices neither edits nor removals). But its store can say which
values a field of the metadata has, and delete by a filter; with these two a user can write what Haystack lacks. That
is the variant with bookkeeping.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from haystack import Document, Pipeline, component
from haystack.components.preprocessors import DocumentSplitter
from haystack.components.writers import DocumentWriter
from haystack.document_stores.types import DuplicatePolicy
from haystack.utils import Secret
from haystack_integrations.components.retrievers.pgvector import PgvectorEmbeddingRetriever
from haystack_integrations.document_stores.pgvector import PgvectorDocumentStore

from rag_pipeline_tests.bench.peers.index_worker import BOOKKEEPING, HNSW, Job, read_files
from rag_pipeline_tests.bench.peers.models import DIMENSIONS, Counted

_ALL = 10_000_000


def open_peer(job: Job, model: Counted) -> Haystack:
    """The library, connected."""
    return Haystack(job, model)


class Haystack:
    """See the module."""

    def __init__(self, job: Job, model: Counted) -> None:
        @component
        class Embedder:
            @component.output_types(documents=list[Document])
            def run(self, documents: list[Document]) -> dict[str, list[Document]]:
                vectors = model.passages([document.content or "" for document in documents]).tolist()
                for document, vector in zip(documents, vectors, strict=True):
                    document.embedding = vector
                return {"documents": documents}

        self._keeps_books = job.variant == BOOKKEEPING
        os.environ["PEER_DATABASE"] = job.url
        self._store = PgvectorDocumentStore(
            connection_string=Secret.from_env_var("PEER_DATABASE"), embedding_dimension=DIMENSIONS,
            search_strategy="hnsw" if job.variant == HNSW else "exact_nearest_neighbor",
        )  # fmt: skip
        self._pipeline = Pipeline()
        self._pipeline.add_component("split", DocumentSplitter(split_by="word", split_length=200, split_overlap=0))
        self._pipeline.add_component("embed", Embedder())
        self._pipeline.add_component("write", DocumentWriter(self._store, policy=DuplicatePolicy.OVERWRITE))
        self._pipeline.connect("split", "embed")
        self._pipeline.connect("embed", "write")
        self._retriever = PgvectorEmbeddingRetriever(document_store=self._store, top_k=10)

    def refresh(self, folder: Path) -> None:
        """Run the pipeline over all files, or over what is new after the chunks of what is gone are deleted."""
        if not self._keeps_books:
            self._run([Document(content=text, meta={"path": path}) for path, text in read_files(folder)])
            return
        files = {_state(path, text): (path, text) for path, text in read_files(folder)}
        stored, _ = self._store.get_metadata_field_unique_values("state", size=_ALL)
        if stale := sorted(set(stored) - files.keys()):
            self._store.delete_by_filter({"field": "meta.state", "operator": "in", "value": stale})
        known = set(stored)
        new = [(state, *file) for state, file in files.items() if state not in known]
        self._run([Document(content=text, meta={"path": path, "state": state}) for state, path, text in new])

    def _run(self, documents: list[Document]) -> None:
        if documents:
            self._pipeline.run({"split": {"documents": documents}})

    def ask(self, text: str, vector: list[float]) -> list[tuple[str, str]]:
        """Through its retriever."""
        hits = self._retriever.run(query_embedding=vector)["documents"]
        return [(hit.meta["path"], hit.content) for hit in hits]


def _state(path: str, text: str) -> str:
    return hashlib.blake2b(f"{path}\0{text}".encode("utf-8", "replace"), digest_size=16).hexdigest()
