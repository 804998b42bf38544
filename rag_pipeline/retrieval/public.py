"""What `from rag_pipeline import Retriever` gives: the index in three lines, for one tenant.

from rag_pipeline import Retriever

with Retriever.open() as retriever:
    hits = retriever.search("how do I rotate the signing key?", k=5)
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from types import TracebackType
from typing import Self, TypedDict, Unpack

from rag_pipeline.errors import ConfigError
from rag_pipeline.model import Json, SearchHit
from rag_pipeline.retrieval.context import Context
from rag_pipeline.retrieval.knowledge import Knowledge
from rag_pipeline.retrieval.known_sources import KnownSource
from rag_pipeline.retrieval.query import Legs, SearchQuery
from rag_pipeline.retrieval.retriever import Found
from rag_pipeline.retrieval.whole_document import WholeDocument
from rag_pipeline.settings import load_settings

_log = logging.getLogger(__name__)


class Where(TypedDict, total=False):
    """Where and how to look; see `SearchQuery`."""

    legs: Legs
    min_score: float | None
    repository: str | None
    source_type: str | None
    language: str | None
    path_prefix: str | None
    author: str | None
    labels: Sequence[str]
    state: str | None
    updated_from: date | None
    updated_to: date | None
    metadata: Mapping[str, Json]
    rerank: bool | None
    diversity: float | None
    stitch: bool
    linked: bool


class Retriever:
    """The index, asked by one tenant in the name of some scopes. May be used from several threads.

    Close it, or use it as a context manager: it keeps the embedding model between questions.
    """

    def __init__(self, knowledge: Knowledge, *, tenant: str, scopes: Sequence[str] = ()) -> None:
        """Over a `Knowledge` that is the caller's; `Retriever.open` makes one."""
        if isinstance(scopes, str):
            raise ConfigError(f"scopes is the text {scopes!r}: give a list of scopes, such as ['user:ada']")
        self.knowledge = knowledge
        self.tenant = tenant
        self.scopes = tuple(scopes)

    @classmethod
    def open(
        cls,
        config_file: str | Path | None = None,
        *,
        tenant: str = "",
        scopes: Sequence[str] = (),
        environ: Mapping[str, str] = os.environ,
    ) -> Self:
        """The index that `rag_pipeline.toml` (by default of this folder) and the environment describe.

        `tenant`: by default the configured one. The database is reached with the first question.

        Raises:
            ConfigError: the configuration is missing or wrong.
        """
        settings = load_settings(config_file=Path(config_file) if config_file else None, environ=environ)
        return cls(Knowledge(settings, environ=environ), tenant=tenant or settings.tenant, scopes=scopes)

    def search(self, question: str, *, k: int = 5, **where: Unpack[Where]) -> list[SearchHit]:
        """At most `k` hits (1 to 200), best first. What could not be done is logged as a warning; see `find`.

        Raises:
            ConfigError: the question is empty or an argument is out of range, or nothing is indexed yet.
            DatabaseUnavailable: there is no database, or it does not answer.
        """
        found = self.find(question, k=k, **where)
        if found.degraded:
            _log.warning("%s", found.degraded)
        return list(found.hits)

    def find(self, question: str, *, k: int = 5, **where: Unpack[Where]) -> Found:
        """As `search`, with what was done without."""
        return self.knowledge.find(self._query(question, k=k, where=where))

    def context(self, question: str, *, budget_tokens: int = 2_000, k: int = 20, **where: Unpack[Where]) -> Context:
        """Numbered, fenced passages for a prompt, at most `budget_tokens` (100 to 20,000) of them.

        Raises:
            ConfigError, DatabaseUnavailable: as `search`; that nothing was found is the context's `reason`.
        """
        return self.knowledge.context(self._query(question, k=k, where=where), budget_tokens=budget_tokens)

    def document(self, name: str) -> WholeDocument:
        """The whole document of this id, address, source id, `owner/name#1` or path.

        Raises:
            SourceNotFound: none of that name is visible, or several are.
        """
        return self.knowledge.document(name, tenant=self.tenant, scopes=self.scopes)

    def sources(self) -> list[KnownSource]:
        """What there is to search, by repository and type."""
        return self.knowledge.sources(tenant=self.tenant, scopes=self.scopes)

    def close(self) -> None:
        """Let go of the model; safe to call twice."""
        self.knowledge.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _query(self, question: str, *, k: int, where: Where) -> SearchQuery:
        return SearchQuery(text=question, tenant=self.tenant, scopes=self.scopes, k=k, **where)
