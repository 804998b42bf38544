"""LlamaIndex: IngestionPipeline with a docstore and PGVectorStore, in the mode `upserts_and_delete`.

SentenceSplitter at 512 tokens with 50 shared; where short chunks are asked for, at as many as ours, with none shared.
https://docs.llamaindex.ai: "Document Management" under Ingestion Pipeline, and "Postgres Vector Store", whose HNSW
values are used where an index is asked for.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from llama_index.core import Document, QueryBundle, VectorStoreIndex
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.ingestion import DocstoreStrategy, IngestionPipeline
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.vector_stores.postgres import PGVectorStore

from rag_pipeline_tests.bench.peers.index_worker import HNSW, SHORT, SHORT_TOKENS, Job, read_files
from rag_pipeline_tests.bench.peers.models import DIMENSIONS, Counted

_HNSW: Final = {
    "hnsw_m": 16, "hnsw_ef_construction": 64, "hnsw_ef_search": 40, "hnsw_dist_method": "vector_cosine_ops",
}  # fmt: skip


def open_peer(job: Job, model: Counted) -> LlamaIndex:
    """The library, connected."""
    return LlamaIndex(job, model)


class LlamaIndex:
    """See the module."""

    def __init__(self, job: Job, model: Counted) -> None:
        class Model(BaseEmbedding):  # type: ignore[misc]
            def _get_query_embedding(self, query: str) -> list[float]:
                return list(model.passages([query])[0].tolist())

            def _get_text_embedding(self, text: str) -> list[float]:
                return list(model.passages([text])[0].tolist())

            def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
                return list(model.passages(texts).tolist())

            async def _aget_query_embedding(self, query: str) -> list[float]:
                return self._get_query_embedding(query)

        self._state = Path(job.state)
        self._embed = Model(embed_batch_size=256)
        self._store = PGVectorStore.from_params(
            connection_string=_address(job.url, "psycopg2"), async_connection_string=_address(job.url, "psycopg"),
            embed_dim=DIMENSIONS, table_name="pages", hnsw_kwargs=_HNSW if job.variant in (HNSW, SHORT) else None,
        )  # fmt: skip
        self._retriever = None
        tokens, shared = (SHORT_TOKENS, 0) if job.variant == SHORT else (512, 50)
        self._splitter = SentenceSplitter(chunk_size=tokens, chunk_overlap=shared)

    def refresh(self, folder: Path) -> None:
        """Run the pipeline over all files; its docstore says which of them changed."""
        pipeline = IngestionPipeline(
            transformations=[self._splitter, self._embed],
            vector_store=self._store, docstore=SimpleDocumentStore(), disable_cache=True,
            docstore_strategy=DocstoreStrategy.UPSERTS_AND_DELETE,
        )  # fmt: skip
        if (self._state / "docstore.json").exists():
            pipeline.docstore = SimpleDocumentStore.from_persist_path(str(self._state / "docstore.json"))
        pipeline.run(documents=[_document(path, text) for path, text in read_files(folder)])
        pipeline.docstore.persist(str(self._state / "docstore.json"))

    def ask(self, text: str, vector: list[float]) -> list[tuple[str, str]]:
        """Through the retriever of a VectorStoreIndex."""
        if self._retriever is None:
            index = VectorStoreIndex.from_vector_store(self._store, embed_model=self._embed)
            self._retriever = index.as_retriever(similarity_top_k=10)
        hits = self._retriever.retrieve(QueryBundle(text, embedding=vector))
        return [(hit.node.metadata["path"], hit.node.text) for hit in hits]


def _document(path: str, text: str) -> Document:
    # The path is not embedded: everyone embeds the text alone.
    hidden = ["path"]
    return Document(
        text=text, doc_id=path, metadata={"path": path}, excluded_embed_metadata_keys=hidden,
        excluded_llm_metadata_keys=hidden,
    )  # fmt: skip


def _address(url: str, driver: str) -> str:
    return url.replace("postgresql://", f"postgresql+{driver}://", 1)
