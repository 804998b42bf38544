"""What the index knows, for programs and agents: search, whole documents, context, and what there is to search.

One `Knowledge` serves many threads and many tenants; who asks is said with each call. Nothing is opened before it is
needed, so one can be made while there is no database yet.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import TypeVar

import psycopg

from rag_pipeline.embedding import Embedder, make_embedder
from rag_pipeline.embedding.question_vectors import QuestionEmbedders, QuestionVectors
from rag_pipeline.errors import DatabaseUnavailable, TransientError
from rag_pipeline.index.database import Connection
from rag_pipeline.index.pool import connected_twice
from rag_pipeline.index.sql_files import queries
from rag_pipeline.retrieval.context import Context, build_context
from rag_pipeline.retrieval.known_sources import KnownSource, known_sources
from rag_pipeline.retrieval.opening import opened_for_reading
from rag_pipeline.retrieval.query import SearchQuery
from rag_pipeline.retrieval.reader import reading
from rag_pipeline.retrieval.rerank import Reranker, make_reranker
from rag_pipeline.retrieval.retriever import Found, Retriever
from rag_pipeline.retrieval.whole_document import WholeDocument, read_document
from rag_pipeline.settings import Settings

R = TypeVar("R")

Connect = Callable[[], AbstractContextManager[Connection]]
"""Gives a connection that speaks `halfvec`, for one call."""

MOST_CONTEXT_TOKENS = 20_000


class Knowledge:
    """The index as the settings describe it: its database, the model that fits it, and the reranker."""

    def __init__(
        self,
        settings: Settings,
        *,
        environ: Mapping[str, str],
        connect: Connect | None = None,
        make: Callable[..., Embedder] = make_embedder,
        timeout_s: float = 30.0,
    ) -> None:
        """`connect`: where connections come from, by default a new one for each call.

        `timeout_s`: no statement on a connection of its own takes longer.
        """
        self._settings = settings
        self._environ = environ
        self._connect = connect or self._own_connection
        serving = settings.serving
        self._embedders = QuestionEmbedders(
            settings.embedding, environ=environ, make=make, vectors=QuestionVectors(most=serving.embedding_cache),
            concurrent=serving.max_concurrent, patience_s=serving.embedding_timeout_s, monotonic=time.monotonic,
        )  # fmt: skip
        self._timeout_s = timeout_s
        self._lock = threading.Lock()
        self._reranker: Reranker | None = None

    def find(self, query: SearchQuery) -> Found:
        """The best hits for a query; without a model, those of the lexical leg alone, and `degraded` says so.

        Raises:
            ConfigError: the query is not answerable as it stands, or nothing is indexed yet.
            DatabaseUnavailable: there is no database, or it does not answer.
            TransientError: it took too long, or only the vector leg was asked for and its model does not answer.
        """
        query.check()

        def work(connection: Connection) -> Found:
            retriever = Retriever(
                connection, settings=self._settings.retrieval, rerank=self._settings.rerank,
                reranker=self._shared_reranker(), embedder_of=self._embedders.of,
            )  # fmt: skip
            return retriever.find(query)

        return self._with_connection(work)

    def document(self, name: str, *, tenant: str, scopes: Sequence[str] = ()) -> WholeDocument:
        """The whole document of this name: its id, address, source id, `owner/name#1` or path.

        Raises:
            SourceNotFound: none of that name is visible to the asker, or several are.
            DatabaseUnavailable: there is no database, or it does not answer.
        """

        def work(connection: Connection) -> WholeDocument:
            with reading(connection, tenant=tenant, scopes=scopes):
                return read_document(connection, name, tenant=tenant)

        return self._with_connection(work)

    def sources(self, *, tenant: str, scopes: Sequence[str] = ()) -> list[KnownSource]:
        """What the asker may search, by repository and type.

        Raises:
            DatabaseUnavailable: there is no database, or it does not answer.
        """

        def work(connection: Connection) -> list[KnownSource]:
            with reading(connection, tenant=tenant, scopes=scopes):
                return known_sources(connection, tenant=tenant)

        return self._with_connection(work)

    def context(self, query: SearchQuery, *, budget_tokens: int) -> Context:
        """Numbered, fenced passages for a prompt, at most `budget_tokens` (100 to 20,000) of them; see `build_context`.

        `degraded` says what the search did without.

        Raises:
            ConfigError, DatabaseUnavailable, TransientError: as `find`; all else is the context's `reason`.
        """
        failed: list[Exception] = []
        degraded: list[str] = []

        def search(checked: SearchQuery) -> Sequence[object]:
            try:
                # The question as it was checked, and where to look as it was asked.
                found = self.find(replace(query, text=checked.text))
                degraded.append(found.degraded)
                return found.hits
            except Exception as error:
                failed.append(error)
                raise

        context = build_context(
            query.text, tenant=query.tenant, scopes=query.scopes, search=search, k=query.k,  # type: ignore[arg-type]
            min_score=query.min_score, budget_tokens=budget_tokens, most_tokens=MOST_CONTEXT_TOKENS,
            timeout_s=self._timeout_s,
        )  # fmt: skip
        if failed:
            raise failed[0]
        return replace(context, degraded="".join(degraded))

    def close(self) -> None:
        """Let go of models and connections; safe to call twice."""
        self._embedders.close()
        with self._lock:
            reranker, self._reranker = self._reranker, None
        if reranker is not None:
            reranker.close()

    def _shared_reranker(self) -> Reranker | None:
        with self._lock:
            if self._reranker is None:
                self._reranker = make_reranker(self._settings.rerank, environ=self._environ)
            return self._reranker

    def _with_connection(self, work: Callable[[Connection], R]) -> R:
        try:
            return connected_twice(self._connect, work)
        except psycopg.errors.QueryCanceled as error:
            raise TransientError(
                f"the index did not answer within {self._timeout_s:g} s: ask again, or look in fewer places"
            ) from error
        except (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName) as error:
            raise DatabaseUnavailable(
                "the database does not hold an index of this version: run `rag-pipeline migrate`"
            ) from error
        except (psycopg.OperationalError, psycopg.InterfaceError) as error:
            raise DatabaseUnavailable("the database stopped answering: ask again in a moment") from error

    @contextmanager
    def _own_connection(self) -> Iterator[Connection]:
        with opened_for_reading(self._settings) as connection:
            milliseconds = {"milliseconds": max(1, round(self._timeout_s * 1_000))}
            connection.execute(queries("knowledge")["limit_time"], milliseconds)
            yield connection
