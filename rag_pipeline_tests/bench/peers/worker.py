"""Indexes and asks one labelled set through the retrievers of other libraries; runs in their own environment.

`python -m rag_pipeline_tests.bench.peers.worker PEER FOLDER URL FILE` writes to FILE, as JSON, for each way to ask, the
ids of the documents found for each question, best first. Each library is used as its documentation shows it, with its
own splitter; the embedding model and the questions are ours.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from rag_pipeline.embedding import make_embedder
from rag_pipeline.evaluation.labelled import LabelledSet, is_python, read_labelled_set
from rag_pipeline.settings import Embedding

_DEPTH: Final = 50
"""Chunks asked for: the documents that they are from are ranked."""
_DIMENSIONS: Final = 384

Ways = dict[str, Callable[[str], Iterable[str]]]
"""A way to ask by its name: a question to ids of documents, best first, as often as they come."""


class LocalModel:
    """The local model that the pipeline uses by default."""

    def __init__(self) -> None:
        self._embedder = make_embedder(Embedding(), environ=os.environ)

    def passages(self, texts: Sequence[str]) -> list[list[float]]:
        """A vector for each text, in order."""
        vectors = np.zeros((len(texts), _DIMENSIONS), dtype=np.float32)
        for batch in self._embedder.embed(list(texts)):
            vectors[list(batch.indices)] = batch.vectors
        return [vector.tolist() for vector in vectors]

    def question(self, text: str) -> list[float]:
        """The vector of a question."""
        return [float(value) for value in self._embedder.embed_query(text)]


def llama_index(labelled: LabelledSet, url: str, model: LocalModel) -> Ways:
    """PGVectorStore with its hybrid search; SentenceSplitter at 512 tokens, all that the model reads, and 50."""
    from llama_index.core import Document, StorageContext, VectorStoreIndex
    from llama_index.core.base.embeddings.base import BaseEmbedding
    from llama_index.core.node_parser import SentenceSplitter
    from llama_index.core.vector_stores.types import VectorStoreQueryMode
    from llama_index.vector_stores.postgres import PGVectorStore

    class Model(BaseEmbedding):  # type: ignore[misc]
        def _get_query_embedding(self, query: str) -> list[float]:
            return model.question(query)

        def _get_text_embedding(self, text: str) -> list[float]:
            return model.passages([text])[0]

        def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
            return model.passages(texts)

        async def _aget_query_embedding(self, query: str) -> list[float]:
            return model.question(query)

    address = _sqlalchemy(url, driver="psycopg2")
    store = PGVectorStore.from_params(
        connection_string=address, async_connection_string=_sqlalchemy(url, driver="psycopg"), embed_dim=_DIMENSIONS,
        table_name=_table(labelled), hybrid_search=True, text_search_config="english",
    )  # fmt: skip
    embed = Model(embed_batch_size=256)
    documents = [Document(text=_text(title, text), doc_id=id_) for id_, title, text in _documents(labelled)]
    index = VectorStoreIndex.from_documents(
        documents, storage_context=StorageContext.from_defaults(vector_store=store), embed_model=embed,
        transformations=[SentenceSplitter(chunk_size=512, chunk_overlap=50)],
    )  # fmt: skip

    def ask(mode: VectorStoreQueryMode) -> Callable[[str], Iterable[str]]:
        retriever = index.as_retriever(similarity_top_k=_DEPTH, sparse_top_k=_DEPTH, vector_store_query_mode=mode)
        return lambda question: [hit.node.ref_doc_id for hit in retriever.retrieve(question)]

    return {"vectors": ask(VectorStoreQueryMode.DEFAULT), "hybrid": ask(VectorStoreQueryMode.HYBRID)}


def langchain(labelled: LabelledSet, url: str, model: LocalModel) -> Ways:
    """PGVectorStore, with and without its hybrid search by reciprocal rank; RecursiveCharacterTextSplitter 1000/200."""
    from langchain_core.documents import Document
    from langchain_core.embeddings import Embeddings
    from langchain_postgres import PGEngine, PGVectorStore
    from langchain_postgres.v2.hybrid_search_config import HybridSearchConfig, reciprocal_rank_fusion
    from langchain_text_splitters import Language, RecursiveCharacterTextSplitter

    class Model(Embeddings):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return model.passages(texts)

        def embed_query(self, text: str) -> list[float]:
            return model.question(text)

    language = Language.PYTHON if is_python(labelled.documents) else Language.MARKDOWN
    splitter = RecursiveCharacterTextSplitter.from_language(language, chunk_size=1000, chunk_overlap=200)
    documents = [
        Document(page_content=part, metadata={"document": id_})
        for id_, title, text in _documents(labelled)
        for part in splitter.split_text(_text(title, text))
    ]
    engine = PGEngine.from_connection_string(_sqlalchemy(url, driver="psycopg"))
    hybrid = HybridSearchConfig(
        tsv_lang="pg_catalog.english", fusion_function=reciprocal_rank_fusion, primary_top_k=_DEPTH,
        secondary_top_k=_DEPTH, fusion_function_parameters={"fetch_top_k": _DEPTH},
    )  # fmt: skip

    def ask(name: str, config: HybridSearchConfig | None) -> Callable[[str], Iterable[str]]:
        table = f"{_table(labelled)}_{name}"
        engine.init_vectorstore_table(table, _DIMENSIONS, hybrid_search_config=config)
        store = PGVectorStore.create_sync(engine, Model(), table, k=_DEPTH, hybrid_search_config=config)
        store.add_documents(documents)
        return lambda question: [hit.metadata["document"] for hit in store.similarity_search(question, k=_DEPTH)]

    return {"vectors": ask("vectors", None), "hybrid": ask("hybrid", hybrid)}


def haystack(labelled: LabelledSet, url: str, model: LocalModel) -> Ways:
    """PgvectorDocumentStore: its vectors alone, and joined with its words by reciprocal rank; 200 words a chunk."""
    from haystack import Document
    from haystack.components.joiners import DocumentJoiner
    from haystack.components.preprocessors import DocumentSplitter
    from haystack.document_stores.types import DuplicatePolicy
    from haystack.utils import Secret
    from haystack_integrations.components.retrievers.pgvector import (
        PgvectorEmbeddingRetriever,
        PgvectorKeywordRetriever,
    )
    from haystack_integrations.document_stores.pgvector import PgvectorDocumentStore

    os.environ["PEER_DATABASE"] = url
    store = PgvectorDocumentStore(
        connection_string=Secret.from_env_var("PEER_DATABASE"), embedding_dimension=_DIMENSIONS,
        table_name=_table(labelled), keyword_index_name=f"{_table(labelled)}_words", recreate_table=True,
    )  # fmt: skip
    whole = [Document(content=_text(title, text), meta={"document": id_}) for id_, title, text in _documents(labelled)]
    splitter = DocumentSplitter(split_by="word", split_length=200, split_overlap=0)
    parts = splitter.run(documents=whole)["documents"]
    vectors = model.passages([part.content for part in parts])
    embedded = [
        Document(content=part.content, meta=part.meta, embedding=vector)
        for part, vector in zip(parts, vectors, strict=True)
    ]
    store.write_documents(embedded, policy=DuplicatePolicy.OVERWRITE)
    near = PgvectorEmbeddingRetriever(document_store=store, top_k=_DEPTH)
    words = PgvectorKeywordRetriever(document_store=store, top_k=_DEPTH)

    def vectors_only(question: str) -> Iterable[str]:
        return [hit.meta["document"] for hit in near.run(query_embedding=model.question(question))["documents"]]

    def hybrid(question: str) -> Iterable[str]:
        lists = [
            near.run(query_embedding=model.question(question))["documents"], words.run(query=question)["documents"],
        ]  # fmt: skip
        joined = DocumentJoiner(join_mode="reciprocal_rank_fusion").run(documents=lists)
        return [hit.meta["document"] for hit in joined["documents"]]

    return {"vectors": vectors_only, "hybrid": hybrid}


PEERS: Final = {"LlamaIndex": llama_index, "LangChain": langchain, "Haystack": haystack}


def main(arguments: Sequence[str]) -> None:
    """See the module."""
    peer, folder, url, target = arguments
    labelled = read_labelled_set(Path(folder))
    ways = PEERS[peer](labelled, url, LocalModel())
    found = {
        name: {query.id: list(dict.fromkeys(ask(query.text))) for query in labelled.queries}
        for name, ask in ways.items()
    }
    Path(target).write_text(json.dumps(found), encoding="utf-8")


def _documents(labelled: LabelledSet) -> list[tuple[str, str, str]]:
    return [(document.id, document.title.strip(), document.text) for document in labelled.documents]


def _text(title: str, text: str) -> str:
    """Title and text, as BEIR does; the title is not said twice."""
    return text if not title or text.lstrip("# \n").startswith(title) else f"{title}\n\n{text}"


def _table(labelled: LabelledSet) -> str:
    return "peer_" + hashlib.blake2b(labelled.name.encode(), digest_size=6).hexdigest()


def _sqlalchemy(url: str, *, driver: str) -> str:
    return url.replace("postgresql://", f"postgresql+{driver}://", 1)


if __name__ == "__main__":
    main(sys.argv[1:])
