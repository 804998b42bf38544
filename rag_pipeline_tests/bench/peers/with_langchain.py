"""LangChain: `index()` with a record manager in the same database, and langchain-postgres' PGVectorStore.

RecursiveCharacterTextSplitter for the file's language at 1,000 characters with 200 shared, batches of 1,000 ("as big a
batch size as possible"), cleanup `full`. https://docs.langchain.com: "Indexing API" and "PGVectorStore", whose
HNSWIndex is applied after the first load where an index is asked for.
"""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import psycopg
from langchain_classic.indexes import SQLRecordManager
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.indexing import index
from langchain_postgres import PGEngine, PGVectorStore
from langchain_postgres.v2.indexes import HNSWIndex
from langchain_text_splitters import Language, RecursiveCharacterTextSplitter

from rag_pipeline_tests.bench.peers.index_worker import HNSW, Job, read_files
from rag_pipeline_tests.bench.peers.models import DIMENSIONS, Counted

_TABLE = "pages"
_LANGUAGES = {
    ".py": Language.PYTHON, ".pyi": Language.PYTHON, ".md": Language.MARKDOWN, ".rst": Language.RST,
    ".js": Language.JS, ".ts": Language.TS, ".html": Language.HTML, ".c": Language.C, ".h": Language.C,
    ".cpp": Language.CPP, ".go": Language.GO, ".rs": Language.RUST, ".java": Language.JAVA,
}  # fmt: skip


def open_peer(job: Job, model: Counted) -> LangChain:
    """The library, connected, with its tables."""
    return LangChain(job, model)


class LangChain:
    """See the module."""

    def __init__(self, job: Job, model: Counted) -> None:
        class Model(Embeddings):
            def embed_documents(self, texts: list[str]) -> list[list[float]]:
                return list(model.passages(texts).tolist())

            def embed_query(self, text: str) -> list[float]:
                return list(model.passages([text])[0].tolist())

        address = job.url.replace("postgresql://", "postgresql+psycopg://", 1)
        engine = PGEngine.from_connection_string(address)
        self._indexed = job.variant == HNSW
        with psycopg.connect(job.url) as connection:
            row = connection.execute("SELECT to_regclass('pages') IS NULL, to_regclass(%s) IS NULL",
                                     (f"{_TABLE}langchainvectorindex",)).fetchone()  # fmt: skip
        self._is_new, self._lacks_index = row or (True, True)
        if self._is_new:
            engine.init_vectorstore_table(_TABLE, DIMENSIONS)
        self._records = SQLRecordManager("postgres/pages", db_url=address)
        self._records.create_schema()
        self._store = PGVectorStore.create_sync(engine, Model(), _TABLE)

    def refresh(self, folder: Path) -> None:
        """Hand all chunks of all files to `index`; the record manager says which of them are new."""
        documents = [part for path, text in read_files(folder) for part in _parts(path, text)]
        index(documents, self._records, self._store, cleanup="full", source_id_key="source", batch_size=1000)
        if self._indexed and self._lacks_index:
            self._store.apply_vector_index(HNSWIndex(name=f"{_TABLE}langchainvectorindex"))

    def ask(self, text: str, vector: list[float]) -> list[tuple[str, str]]:
        """Through `similarity_search_by_vector`."""
        hits = self._store.similarity_search_by_vector(vector, k=10)
        return [(hit.metadata["source"], hit.page_content) for hit in hits]


def _parts(path: str, text: str) -> list[Document]:
    language = _LANGUAGES.get(PurePosixPath(path).suffix)
    options = {"chunk_size": 1000, "chunk_overlap": 200}
    splitter = (
        RecursiveCharacterTextSplitter.from_language(language, **options)
        if language
        else RecursiveCharacterTextSplitter(**options)
    )
    return [Document(page_content=part, metadata={"source": path}) for part in splitter.split_text(text)]
