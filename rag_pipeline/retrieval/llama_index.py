"""The index as a retriever of llama-index, for its query engines, chat engines and agents.

    from rag_pipeline.retrieval.llama_index import KnowledgeRetriever

    retriever = KnowledgeRetriever.open(k=5)
    nodes = retriever.retrieve("how do I rotate the signing key?")

Importing this module imports llama-index, which takes seconds; nothing else here does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self, Unpack

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks import CallbackManager
from llama_index.core.schema import NodeRelationship, NodeWithScore, QueryBundle, RelatedNodeInfo, TextNode

from rag_pipeline.model import SearchHit
from rag_pipeline.retrieval.public import Retriever, Where

_FOR_A_MODEL = ("title", "location", "url")
"""Metadata that a language model reads with the text: enough to cite it."""


class KnowledgeRetriever(BaseRetriever):  # type: ignore[misc, unused-ignore]
    """Hits as nodes: their ids are those of the chunks, their source node that of the document."""

    def __init__(
        self, retriever: Retriever, *, k: int = 5, callback_manager: CallbackManager | None = None,
        verbose: bool = False, **where: Unpack[Where],
    ) -> None:  # fmt: skip
        """`retriever` stays the caller's to close; `where` narrows every search, see `SearchQuery`."""
        super().__init__(callback_manager=callback_manager, verbose=verbose)
        self._retriever = retriever
        self._k = k
        self._where = where

    @classmethod
    def open(
        cls, config_file: str | Path | None = None, *, tenant: str = "", scopes: Sequence[str] = (), k: int = 5,
        callback_manager: CallbackManager | None = None, **where: Unpack[Where],
    ) -> Self:  # fmt: skip
        """Over the index that `rag_pipeline.toml` and the environment describe; see `Retriever.open`."""
        retriever = Retriever.open(config_file, tenant=tenant, scopes=scopes)
        return cls(retriever, k=k, callback_manager=callback_manager, **where)

    def close(self) -> None:
        """Let go of the model; safe to call twice."""
        self._retriever.close()

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        hits = self._retriever.search(query_bundle.query_str, k=self._k, **self._where)
        return [node_of(hit) for hit in hits]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await asyncio.to_thread(self._retrieve, query_bundle)


def node_of(hit: SearchHit) -> NodeWithScore:
    """A hit as llama-index has it."""
    metadata: dict[str, Any] = {
        "title": hit.title, "location": hit.location, "url": hit.url, "repository": hit.repository,
        "source_type": hit.source_type, "source_id": hit.source_id, "language": hit.language,
        "heading_path": " > ".join(hit.heading_path), "start_line": hit.start_line, "end_line": hit.end_line,
        "document_id": str(hit.document_id), "updated_at": hit.source_updated_at.isoformat(), "rank": hit.rank,
    }  # fmt: skip
    unseen = [name for name in metadata if name not in _FOR_A_MODEL]
    node = TextNode(
        id_=str(hit.chunk_id), text=hit.text, metadata=metadata, excluded_llm_metadata_keys=unseen,
        excluded_embed_metadata_keys=list(metadata),
        relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=str(hit.document_id))},
    )  # fmt: skip
    return NodeWithScore(node=node, score=hit.score)
