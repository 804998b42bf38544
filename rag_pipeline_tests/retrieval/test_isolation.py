"""Nobody learns anything of another tenant or scope: not a hit, not a score, not through any filter, leg or error."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import numpy as np
import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rag_pipeline.errors import ConfigError, UnknownSource
from rag_pipeline.index.database import Connection, connected
from rag_pipeline.index.segments import merge_segments
from rag_pipeline.index.spaces import activate
from rag_pipeline.index.writer import Entry
from rag_pipeline.model import EmbeddingSpace, SearchHit
from rag_pipeline.retrieval.context import build_context
from rag_pipeline.retrieval.query import SearchQuery
from rag_pipeline.retrieval.reader import reading
from rag_pipeline.retrieval.retriever import Retriever
from rag_pipeline.retrieval.search import search
from rag_pipeline.settings import Retrieval
from rag_pipeline_tests.databases import empty
from rag_pipeline_tests.knowledge import entry, space_of, store_vectors, write

WORDS = ("alpha", "beta", "gamma", "delta")
TENANTS = ("acme", "globex", "acme'--")
SCOPES = (None, None, "user:ada", "user:bob", "{user:ada,user:bob}")
HOSTILE = (
    "acme' OR '1'='1", "'; SET ROLE postgres; --", "%", "{acme,globex}", "user:%", "NULL", "\\", '"', "acme\x1f", "$$",
)  # fmt: skip
LEGS = ("fused", "lexical", "vector")


def vector_of(text: str) -> np.ndarray:
    return np.array([text.count(word) + 0.1 for word in WORDS] + [0.1] * 4, dtype=np.float32)


Item = tuple[int, str, str | None, list[str]]
"""Number, tenant, scope, words."""
ITEMS = st.lists(
    st.tuples(
        st.integers(0, 9), st.sampled_from(TENANTS), st.sampled_from(SCOPES),
        st.lists(st.sampled_from(WORDS), min_size=1, max_size=3),
    ),
    max_size=12,
)  # fmt: skip
QUERY = st.fixed_dictionaries(
    {
        "text": st.sampled_from([*WORDS, "alpha beta", "delta alpha gamma", *HOSTILE]),
        "tenant": st.sampled_from([*TENANTS, *HOSTILE]),
        "scopes": st.lists(st.sampled_from([*(s for s in SCOPES if s), *HOSTILE]), max_size=2).map(tuple),
        "legs": st.sampled_from(LEGS),
        "k": st.sampled_from([1, 5, 200]),
        "diversity": st.sampled_from([None, 0.5]),
        "stitch": st.booleans(),
        "linked": st.booleans(),
    },
    optional={
        "repository": st.sampled_from(["handbook", *HOSTILE]),
        "author": st.sampled_from(["ada", *HOSTILE]),
        "labels": st.sampled_from([("bug",), ("'; --",)]),
        "path_prefix": st.sampled_from(["", "1", "%", "_"]),
        "metadata": st.sampled_from([{"author": "ada"}, {"tenant_id": "globex"}, {"a": {"b": ["'"]}}]),
        "min_score": st.sampled_from([0.0, -1.0]),
    },
)


def entries(items: list[Item]) -> list[Entry]:
    # Two items of one name in one tenant are two states of one document: the later one counts.
    return [
        entry(f"{number}.md", *(f"{word} {at} {tenant}" for at, word in enumerate(words)), at=moment, tenant=tenant,
              scope=scope, metadata={"author": "ada", "labels": ["bug"]})
        for moment, (number, tenant, scope, words) in enumerate(items, start=1)
    ]  # fmt: skip


def fill(connection: Connection, items: list[Item]) -> EmbeddingSpace:
    space = space_of(connection)
    for made in entries(items):
        texts = {chunk.text: vector_of(chunk.text) for chunk in made.chunks}
        store_vectors(connection, space, texts, tenant=made.document.tenant)
        write(connection, made)
    activate(connection, space)
    return space


class Embedder:
    recipe = "text/v1"

    def embed_query(self, text: str) -> np.ndarray:
        return vector_of(text)

    def close(self) -> None:
        pass


def find(connection: Connection, query: SearchQuery) -> list[SearchHit]:
    return Retriever(connection, embedder_of=lambda _: Embedder()).search(query)  # type: ignore[arg-type,return-value]


def shown(hits: list[SearchHit]) -> list[tuple[object, ...]]:
    return [(hit.source_id, hit.text, round(hit.score, 6), tuple(hit.matched_terms)) for hit in hits]


def found_or_refused(connection: Connection, query: SearchQuery) -> object:
    """What is found, or what is said of a repository that is not there."""
    try:
        return shown(find(connection, query))
    except UnknownSource as error:
        return str(error)


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(items=ITEMS, values=QUERY, merged=st.booleans())
def test_a_search_is_what_it_would_be_if_nothing_else_existed(items, values, merged, reused_database):
    query = SearchQuery(**values)
    empty(reused_database)
    with connected(reused_database) as connection:
        fill(connection, items)
        if merged:
            merge_segments(connection, everything=True)
        with_others = found_or_refused(connection, query)
    latest = {(number, tenant): scope for number, tenant, scope, _ in items}
    own = [
        item for item in items
        if item[1] == query.tenant and (latest[item[:2]] is None or latest[item[:2]] in query.scopes)
    ]  # fmt: skip
    empty(reused_database)
    with connected(reused_database) as connection:
        fill(connection, own)
        assert with_others == found_or_refused(connection, query)


@pytest.fixture
def two(connection) -> Connection:
    """One chunk of acme, one of globex, one of acme for ada alone; all alike."""
    items: list[Item] = [
        (1, "acme", None, ["alpha"]),
        (2, "globex", None, ["alpha"]),
        (3, "acme", "user:ada", ["alpha"]),
    ]
    fill(connection, items)
    return connection


def raising(connection: Connection) -> None:
    query = SearchQuery(text="alpha", tenant="globex", scopes=("user:ada",))
    with suppress(psycopg.Error):
        search(connection, query, space=space_of(connection), vector=np.ones(3), settings=Retrieval())


def refused(connection: Connection) -> None:
    with pytest.raises(ConfigError, match="a search needs a tenant"):
        find(connection, SearchQuery(text="alpha", tenant=""))


def interrupted(connection: Connection) -> None:
    with suppress(RuntimeError), connection.transaction():
        connection.execute("SELECT set_config('rag.tenant_id', 'globex', true), set_config('role', 'rag_reader', true)")
        raise RuntimeError


def failing_unseen(connection: Connection) -> None:
    # Nobody fetches it, so that it is only known to have failed when the transaction is over.
    with pytest.raises(psycopg.errors.DivisionByZero), reading(connection, tenant="globex", scopes=("user:ada",)):
        connection.execute("SELECT 1 / 0")


def abandoned(connection: Connection) -> None:
    with suppress(RuntimeError), reading(connection, tenant="globex", scopes=("user:ada",)):
        connection.execute("SELECT count(*) FROM rag.chunks")
        raise RuntimeError


@pytest.mark.parametrize("accident", [raising, refused, interrupted, failing_unseen, abandoned])
@pytest.mark.parametrize("legs", LEGS)
def test_nothing_of_a_search_that_failed_is_left_on_its_connection(two, accident: Callable[[Connection], None], legs):
    accident(two)
    hits = find(two, SearchQuery(text="alpha", tenant="acme", legs=legs))
    assert [hit.source_id for hit in hits] == ["handbook:1.md"]
    assert two.execute("SELECT current_user").fetchone() == ("postgres",)


def test_a_connection_in_a_transaction_of_its_own_is_not_searched(two):
    with two.transaction():
        with pytest.raises(psycopg.ProgrammingError, match=r"this connection is in one \(INTRANS\)"):
            find(two, SearchQuery(text="alpha", tenant="acme"))
        assert two.execute("SELECT current_user").fetchone() == ("postgres",)


def test_a_session_that_keeps_a_tenant_does_not_lend_it_to_a_search(two):
    two.execute("SELECT set_config('rag.tenant_id', 'globex', false), set_config('rag.scopes', '{user:ada}', false)")
    hits = find(two, SearchQuery(text="alpha", tenant="acme"))
    assert [hit.source_id for hit in hits] == ["handbook:1.md"]


def test_the_reader_sees_only_the_postings_of_its_own_segments(two):
    def seen(tenant: str, scopes: str = "{}") -> int:
        with two.transaction():
            two.execute(
                "SELECT set_config('role', 'rag_reader', true), set_config('rag.tenant_id', %s, true), "
                "set_config('rag.scopes', %s, true)", [tenant, scopes],
            )  # fmt: skip
            (count,) = two.execute("SELECT count(*) FROM rag.postings WHERE term = 'alpha'").fetchone()
        return count

    assert (seen("acme"), seen("globex"), seen("acme", "{user:ada}"), seen("")) == (1, 1, 2, 0)


def test_a_context_holds_nothing_of_others(two):
    found = build_context("what is alpha?", tenant="acme", search=lambda query: find(two, query))
    assert found.enabled
    assert "globex" not in found.text
    assert [hit.source_id for hit in found.sources] == ["handbook:1.md"]
