"""The index for programs: one model for many questions, each asker's own view, and errors that say what to do."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import rag_pipeline
from rag_pipeline.errors import ConfigError, DatabaseUnavailable, TransientError, UnknownSource
from rag_pipeline.index.database import connect
from rag_pipeline.retrieval.knowledge import Knowledge
from rag_pipeline.retrieval.public import Retriever
from rag_pipeline.retrieval.query import SearchQuery
from rag_pipeline.settings import Settings
from rag_pipeline_tests.end_to_end.installation import WordEmbedder
from rag_pipeline_tests.knowledge import entry
from rag_pipeline_tests.serving.apps import CORPUS, index


class Models:
    """Makes embedders, and knows how many, and how many of them were asked at once."""

    def __init__(self) -> None:
        self.made: list[WordEmbedder] = []
        self.closed = 0
        self.at_once = self.most_at_once = 0
        self.fails = False

    def __call__(self, *_: object, **__: object) -> WordEmbedder:
        if self.fails:
            raise ConfigError("the model is not there")
        models = self

        class Counted(WordEmbedder):
            def embed_query(self, text: str) -> Any:
                models.at_once += 1
                models.most_at_once = max(models.most_at_once, models.at_once)
                threading.Event().wait(0.002)
                models.at_once -= 1
                return super().embed_query(text)

            def close(self) -> None:
                models.closed += 1

        self.made.append(Counted())
        return self.made[-1]


@pytest.fixture
def models() -> Models:
    return Models()


@pytest.fixture
def knowledge(database: str, tmp_path: Path, models: Models) -> Iterator[Knowledge]:
    index(database, *CORPUS)
    knowledge = Knowledge(Settings(home=tmp_path, tenant="acme", database_url=database), environ={}, make=models)
    yield knowledge
    knowledge.close()


def query(text: str, **where: Any) -> SearchQuery:
    return SearchQuery(text=text, **{"tenant": "acme"} | where)


def test_many_questions_from_many_threads_share_one_model_one_at_a_time(knowledge, models):
    with ThreadPoolExecutor(max_workers=4) as pool:
        found = list(pool.map(lambda _: knowledge.find(query("how do I deploy")), range(12)))
    assert {one.hits[0].source_id for one in found} == {"handbook:deploy.md"}
    assert (len(models.made), models.most_at_once, models.closed) == (1, 1, 0)
    knowledge.close()
    knowledge.close()
    assert models.closed == 1


def test_without_its_model_it_answers_by_words_and_says_so(knowledge, models):
    models.fails = True
    found = knowledge.find(query("deploy"))
    assert found.hits[0].source_id == "handbook:deploy.md"
    assert "the model is not there" in found.degraded
    models.fails = False
    assert knowledge.find(query("deploy")).degraded == ""


def test_everybody_sees_their_own(knowledge):
    def sources(**who: Any) -> list[tuple[str, int, int]]:
        return [(one.source_type, one.documents, one.chunks) for one in knowledge.sources(**who)]

    assert sources(tenant="acme") == [("docs", 2, 4)]
    assert sources(tenant="acme", scopes=["user:ann"]) == [("docs", 3, 5)]
    assert sources(tenant="globex") == [("docs", 1, 1)]
    assert sources(tenant="nobody") == []
    assert {hit.source_id for hit in knowledge.find(query("who is on call", scopes=("user:ann",))).hits} >= {
        "handbook:oncall.md"
    }
    assert "handbook:oncall.md" not in {hit.source_id for hit in knowledge.find(query("who is on call")).hits}


def test_a_context_keeps_to_the_filters_and_the_budget(knowledge, database):
    index(database, entry("other.md", "deploy elsewhere", repository="wiki"))
    context = knowledge.context(query("how do I deploy", repository="wiki", k=5), budget_tokens=200)
    assert [hit.repository for hit in context.sources] == ["wiki"]
    assert context.enabled
    assert context.tokens <= 200
    assert knowledge.context(query("thanks!"), budget_tokens=200).reason == "skipped"
    nowhere = query("deploy", repository="wiki", path_prefix="no/")
    assert knowledge.context(nowhere, budget_tokens=200).reason == "nothing_found"
    with pytest.raises(UnknownSource, match="choose from"):
        knowledge.context(query("deploy", repository="no"), budget_tokens=200)
    with pytest.raises(ConfigError, match="character"):
        knowledge.context(query("deploy", repository="a\x00b"), budget_tokens=200)


def test_what_takes_too_long_is_ended_and_says_so(database, tmp_path, models):
    index(database, *CORPUS)
    settings = Settings(home=tmp_path, tenant="acme", database_url=database)
    knowledge = Knowledge(settings, environ={}, make=models, timeout_s=1.0)
    with connect(database) as blocking, blocking.transaction():
        blocking.execute("LOCK TABLE rag.documents IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(TransientError, match=r"within 1 s"):
            knowledge.sources(tenant="acme")
    assert knowledge.sources(tenant="acme")


@pytest.mark.parametrize("ask", [
    lambda knowledge: knowledge.sources(tenant="acme"),
    lambda knowledge: knowledge.document("a", tenant="acme"),
    lambda knowledge: knowledge.find(query("a")),
    lambda knowledge: knowledge.context(query("what is a"), budget_tokens=200),
])  # fmt: skip
def test_without_a_database_it_says_how_to_get_one(tmp_path: Path, ask: Callable[[Knowledge], object]):
    nowhere = Knowledge(Settings(home=tmp_path / "none"), environ={})
    with pytest.raises(DatabaseUnavailable, match="run `rag-pipeline up`"):
        ask(nowhere)
    assert not (tmp_path / "none").exists()
    url = "postgresql://nobody:hidden@127.0.0.1:9/none"
    with pytest.raises(DatabaseUnavailable, match="DATABASE_URL") as refused:
        ask(Knowledge(Settings(home=tmp_path, database_url=url), environ={}))
    assert "hidden" not in str(refused.value)


def test_a_database_without_our_schema_says_what_to_run(empty_database, tmp_path):
    with pytest.raises(DatabaseUnavailable, match="rag-pipeline migrate"):
        Knowledge(Settings(home=tmp_path, database_url=empty_database), environ={}).sources(tenant="acme")


def test_three_lines_of_python(database, tmp_path, monkeypatch):
    index(database, *CORPUS)
    (tmp_path / "rag_pipeline.toml").write_text('tenant = "acme"\n', encoding="utf-8")
    environ = {"DATABASE_URL": database, "RAG_HOME": str(tmp_path / "home")}
    with rag_pipeline.Retriever.open(tmp_path / "rag_pipeline.toml", environ=environ) as retriever:
        (hit,) = retriever.search("how do I deploy", k=1, legs="lexical", repository="handbook")
        assert hit.text == "deploy with make deploy"
        assert retriever.document(hit.url).content.text == "deploy with make deploy\n\nroll back with make rollback"
        assert "[Source 1]" in retriever.context("how do I deploy", legs="lexical").text
        assert [one.documents for one in retriever.sources()] == [2]
    with Retriever.open(tmp_path / "rag_pipeline.toml", environ=environ, tenant="globex") as retriever:
        assert [hit.source_id for hit in retriever.search("deploy plans", legs="lexical")] == ["handbook:plans.md"]
    with pytest.raises(ConfigError, match="list of scopes"):
        Retriever.open(tmp_path / "rag_pipeline.toml", environ=environ, scopes="user:ann")


def test_the_package_alone_loads_nothing_heavy():
    code = (
        "import sys, rag_pipeline; assert not {'numpy', 'psycopg', 'pydantic', 'dagster'} & sys.modules.keys(); "
        "from rag_pipeline import Retriever; assert not {'dagster', 'llama_index', 'mcp'} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    with pytest.raises(AttributeError, match="no attribute 'Retriver'"):
        rag_pipeline.Retriver  # noqa: B018


def test_a_login_that_may_only_read_is_enough(server, database, tmp_path, models):
    index(database, *CORPUS)
    with connect(database) as connection:
        connection.execute("CREATE ROLE agent LOGIN IN ROLE rag_reader")
    try:
        url = database.replace("postgres@", "agent@")
        knowledge = Knowledge(Settings(home=tmp_path, tenant="acme", database_url=url), environ={}, make=models)
        found = knowledge.find(query("how do I deploy"))
        assert (found.degraded, found.hits[0].source_id) == ("", "handbook:deploy.md")
        assert knowledge.document("handbook:deploy.md", tenant="acme").content.text
        assert len(knowledge.sources(tenant="acme")) == 1
    finally:
        with connect(database) as connection:
            connection.execute("DROP ROLE agent")
