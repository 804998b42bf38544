"""The vector leg: the right chunks in the right order, filters, hits that can be cited, questions that are refused."""

from __future__ import annotations

import numpy as np
import psycopg
import pytest

from rag_pipeline.embedding import Embedder
from rag_pipeline.errors import ConfigError, UnknownSource
from rag_pipeline.index.database import Connection
from rag_pipeline.index.spaces import activate
from rag_pipeline.model import EmbeddingSpace, SearchHit
from rag_pipeline.retrieval.query import SearchQuery
from rag_pipeline.retrieval.retriever import Retriever
from rag_pipeline.retrieval.search import search
from rag_pipeline.settings import Retrieval
from rag_pipeline_tests.knowledge import entry, moment, space_of, store_vectors, write

WORDS = ["install", "deploy", "monitor", "secure"]
HOSTILE = [
    "'; DROP TABLE rag.chunks; --", "\" OR 1=1", "acme' OR '1'='1", "%", "_", "\\", "{acme}", "$1", "%(tenant)s",
    "a,b", "{user:ada}", "NULL", "🎉\u202e",
]  # fmt: skip


def vector_of(text: str) -> np.ndarray:
    """One axis per word; what is neither is halfway between the first two."""
    vector = np.zeros(8, dtype=np.float32)
    for axis, word in enumerate(WORDS):
        vector[axis] = float(word in text)
    return vector if vector.any() else np.array([1, 1, 0, 0, 0, 0, 0, 0], dtype=np.float32)


def fill(connection: Connection, *entries, tenant: str = "acme") -> EmbeddingSpace:
    space = space_of(connection)
    texts = {chunk.text for e in entries for chunk in e.chunks}
    store_vectors(connection, space, {text: vector_of(text) for text in sorted(texts)}, tenant=tenant)
    write(connection, *entries)
    return space


def ask(connection: Connection, space: EmbeddingSpace, text: str, **where) -> list[SearchHit]:
    query = SearchQuery(text=text, **({"tenant": "acme", "legs": "vector"} | where))
    return search(connection, query, space=space, vector=vector_of(text), settings=Retrieval())


def test_a_hit_can_be_cited(connection):
    guide = entry("docs/guide.md", "before", "how to deploy", at=4, title="Guide", language="markdown")
    space = fill(connection, guide, entry("other.md", "how to install"))
    first, *_ = ask(connection, space, "deploy")
    assert (first.rank, first.text, first.title) == (1, "how to deploy", "Guide")
    assert first.score == pytest.approx(1.0, abs=1e-3)
    assert first.url == "https://example.org/docs/guide.md#L3-L3"
    assert first.location == "docs/guide.md:3-3"
    assert (first.repository, first.source_type, first.source_id) == ("handbook", "docs", "handbook:docs/guide.md")
    assert (first.language, first.heading_path, first.start_line, first.end_line) == (
        "markdown",
        ("Top", "Part 1"),
        3,
        3,
    )
    assert (first.document_id, first.chunk_id) == (guide.document.document_id, guide.chunks[1].chunk_id)
    assert first.source_updated_at == moment(4)


def test_hits_come_best_first_and_at_most_k(connection):
    space = fill(connection, entry("a.md", "install", "install and deploy", "deploy", "monitor"))
    hits = ask(connection, space, "install", k=3)
    assert [hit.rank for hit in hits] == [1, 2, 3]
    assert [hit.text for hit in hits][:2] == ["install", "install and deploy"]
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


def test_fewer_than_k_are_returned_when_there_are_no_more(connection):
    space = fill(connection, entry("a.md", "install", "deploy"))
    assert len(ask(connection, space, "install", k=200)) == 2
    assert ask(connection, space, "install", path_prefix="empty/") == []


def test_equal_scores_keep_one_order(connection):
    space = fill(connection, *(entry(f"{n}.md", "install") for n in range(30)))
    orders = {tuple(hit.source_id for hit in ask(connection, space, "install", k=10)) for _ in range(3)}
    assert len(orders) == 1


def test_a_document_without_a_title_is_called_by_its_source(connection):
    space = fill(connection, entry("a.md", "install"))
    assert ask(connection, space, "install")[0].title == "handbook:a.md"


def test_each_filter_keeps_what_it_names(connection):
    space = fill(
        connection, entry("docs/a.md", "install", language="markdown"),
        entry("docs_old/b.md", "install", repository="site", language="markdown"),
        entry("src/c.py", "install", source_type="code", language="python"),
    )  # fmt: skip

    def found(**where) -> set[str]:
        return {hit.location.partition(":")[0] for hit in ask(connection, space, "install", **where)}

    assert found() == {"docs/a.md", "docs_old/b.md", "src/c.py"}
    assert found(repository="site") == {"docs_old/b.md"}
    assert found(source_type="code") == {"src/c.py"}
    assert found(language="markdown") == {"docs/a.md", "docs_old/b.md"}
    # `_` and `%` are no wildcards here.
    assert found(path_prefix="docs/") == {"docs/a.md"}
    assert found(path_prefix="docs_") == {"docs_old/b.md"}
    assert found(path_prefix="%") == set()
    assert found(language="markdown", repository="handbook") == {"docs/a.md"}
    assert found(language="markdown", source_type="code") == set()


def test_a_deleted_document_is_not_found(connection):
    space = fill(connection, entry("a.md", "install"), entry("b.md", "install"))
    write(connection, entry("a.md", deleted=True, at=2))
    assert [hit.source_id for hit in ask(connection, space, "install")] == ["handbook:b.md"]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"k": 0}, "k is 0: choose a number of hits from 1 to 200"),
        ({"k": 201}, "k is 201"),
        ({"k": -1}, "k is -1"),
        ({"text": ""}, "the question is empty"),
        ({"text": " \n\t"}, "the question is empty"),
        ({"tenant": ""}, "a search needs a tenant"),
        ({"repository": "a\0b"}, "holds a character that no name in the index has"),
        ({"tenant": "acme\0"}, "holds a character"),
        ({"path_prefix": "\ud800"}, "holds a character"),
        ({"scopes": ("user:a\0",)}, "holds a character"),
    ],
)
def test_a_question_that_cannot_be_answered_is_refused_before_the_model_is_asked(connection, changed, said):
    def embedder(_: EmbeddingSpace) -> Embedder:
        raise AssertionError("the model was asked")

    query = SearchQuery(**({"text": "install", "tenant": "acme"} | changed))
    activate(connection, space_of(connection))
    with pytest.raises(ConfigError, match=said):
        Retriever(connection, embedder_of=embedder).search(query)
    with pytest.raises(ConfigError, match=said):
        search(connection, query, space=None, vector=None, settings=Retrieval())


@pytest.mark.parametrize("field", ["tenant", "repository", "source_type", "language", "path_prefix", "scopes"])
def test_what_is_sql_to_postgresql_is_only_a_name_here(connection, field):
    space = fill(connection, entry("a.md", "install"), entry("b.md", "install", tenant="globex"))
    for text in HOSTILE:
        if field in ("repository", "source_type"):
            with pytest.raises(UnknownSource):
                ask(connection, space, "install", **{field: text})
            continue
        found = ask(connection, space, "install", **{field: (text,) if field == "scopes" else text})
        # A scope only adds what is its own; no other name there is.
        assert len(found) == (1 if field == "scopes" else 0)
    assert connection.execute("SELECT count(*) FROM rag.chunks").fetchone() == (2,)


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_name_that_exists_is_found_as_any_other(connection, text):
    odd = entry(text, "install", tenant=text, repository=text, source_type=text, language=text)
    space = fill(connection, odd, tenant=text)
    found = ask(
        connection, space, text, tenant=text, repository=text, source_type=text, language=text, path_prefix=text
    )
    assert [hit.repository for hit in found] == [text]


def test_the_connection_is_itself_again_after_a_search_and_after_an_error(connection):
    def who() -> tuple[str, ...]:
        names = ("role", "rag.tenant_id", "rag.scopes", "hnsw.ef_search", "hnsw.iterative_scan")
        row = connection.execute(
            "SELECT current_user, " + ", ".join(f"coalesce(current_setting('{name}', true), '')" for name in names)
        ).fetchone()
        return tuple(row)

    space = fill(connection, entry("a.md", "install"))
    ask(connection, space, "install")  # loads pgvector, and with it its settings
    before = who()
    assert before[:4] == ("postgres", "none", "", "")
    ask(connection, space, "install", scopes=("user:ada",))
    assert who() == before
    with pytest.raises(psycopg.errors.DataException):
        query = SearchQuery(text="x", tenant="acme")
        search(connection, query, space=space, vector=np.ones(5, np.float32), settings=Retrieval())
    assert who() == before
    assert len(ask(connection, space, "install")) == 1
    # And it may write again.
    assert write(connection, entry("b.md", "deploy")).documents == 1


class FakeEmbedder:
    recipe = "text/v1"
    closed = 0

    def embed_query(self, text: str) -> np.ndarray:
        return vector_of(text)

    def close(self) -> None:
        self.closed += 1


def test_a_retriever_uses_the_active_space_and_its_model(connection):
    space, embedder = fill(connection, entry("a.md", "install")), FakeEmbedder()
    asked: list[EmbeddingSpace] = []

    def embedder_of(space: EmbeddingSpace) -> FakeEmbedder:
        asked.append(space)
        return embedder

    retriever = Retriever(connection, embedder_of=embedder_of)  # type: ignore[arg-type]
    query = SearchQuery(text="install", tenant="acme")
    with pytest.raises(ConfigError, match="nothing is indexed yet"):
        retriever.search(query)
    activate(connection, space)
    assert len(retriever.search(query)) == 1
    assert [s.space_id for s in asked] == [space.space_id]
    assert embedder.closed == 1


def test_a_retriever_refuses_vectors_of_another_recipe(connection):
    space, embedder = fill(connection, entry("a.md", "install")), FakeEmbedder()
    activate(connection, space)
    embedder.recipe = "text/v2"
    retriever = Retriever(connection, embedder_of=lambda _: embedder)  # type: ignore[arg-type,return-value]
    with pytest.raises(ConfigError, match=r"embedded with recipe 'text/v1', this code uses 'text/v2'"):
        retriever.search(SearchQuery(text="install", tenant="acme", legs="vector"))
    assert embedder.closed == 1
    # The words are still there.
    found = retriever.find(SearchQuery(text="install", tenant="acme"))
    assert [hit.text for hit in found.hits] == ["install"]
    assert found.degraded.startswith("searched by words alone: the index was embedded with recipe")
