"""The index as a retriever of llama-index."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from llama_index.core.callbacks import CallbackManager, CBEventType, LlamaDebugHandler
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import MetadataMode

from rag_pipeline.retrieval.llama_index import KnowledgeRetriever
from rag_pipeline.retrieval.public import Retriever
from rag_pipeline_tests.serving.agents import knowledge_of
from rag_pipeline_tests.serving.apps import CORPUS, index


@pytest.fixture
def retriever(database: str, tmp_path: Path) -> Iterator[Retriever]:
    index(database, *CORPUS)
    with closing(knowledge_of(database, tmp_path)) as knowledge:
        yield Retriever(knowledge, tenant="acme")


def test_hits_are_nodes_with_our_ids_and_where_they_come_from(retriever):
    (hit,) = retriever.search("how do I deploy", k=1)
    ours = KnowledgeRetriever(retriever, k=1)
    for nodes in (ours.retrieve("how do I deploy"), asyncio.run(ours.aretrieve("how do I deploy"))):
        (found,) = nodes
        assert (found.node_id, found.score, found.text) == (str(hit.chunk_id), hit.score, hit.text)
        assert found.node.ref_doc_id == str(hit.document_id)
        assert found.metadata["url"] == "https://example.org/deploy.md#L1-L1"
        assert (found.metadata["repository"], found.metadata["location"]) == ("handbook", "deploy.md:1-1")
        read = found.node.get_content(metadata_mode=MetadataMode.LLM)
        assert "location: deploy.md:1-1" in read
        assert "document_id" not in read


def test_filters_and_scopes_hold_for_every_question(retriever):
    nodes = KnowledgeRetriever(retriever, k=10, legs="lexical", path_prefix="install").retrieve("deploy install rota")
    assert {node.metadata["source_id"] for node in nodes} == {"handbook:install.md"}
    anns = Retriever(retriever.knowledge, tenant="acme", scopes=["user:ann"])
    found = {node.metadata["source_id"] for node in KnowledgeRetriever(anns, k=10).retrieve("the rota of ann")}
    assert "handbook:oncall.md" in found


def test_a_query_engine_answers_from_it_and_its_callbacks_are_called(retriever):
    watching = LlamaDebugHandler(print_trace_on_end=False)
    callbacks = CallbackManager([watching])
    ours = KnowledgeRetriever(retriever, k=2, callback_manager=callbacks)
    engine = RetrieverQueryEngine.from_args(ours, llm=MockLLM(), callback_manager=callbacks)
    response = engine.query("how do I deploy")
    assert "deploy with make deploy" in str(response)
    assert response.source_nodes[0].metadata["source_id"] == "handbook:deploy.md"
    (event,) = watching.get_event_pairs(CBEventType.RETRIEVE)
    assert len(event[1].payload["nodes"]) == 2


def test_it_opens_by_itself_from_the_configuration(database, tmp_path, monkeypatch):
    index(database, *CORPUS)
    (tmp_path / "rag_pipeline.toml").write_text('tenant = "acme"\n', encoding="utf-8")
    monkeypatch.setenv("DATABASE_URL", database)
    monkeypatch.chdir(tmp_path)
    with closing(KnowledgeRetriever.open(k=1, legs="lexical")) as ours:
        assert ours.retrieve("deploy")[0].text == "deploy with make deploy"
