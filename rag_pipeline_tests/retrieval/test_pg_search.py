"""The lexical leg on ParadeDB's pg_search, on a real server that has it: `make pg-search` fetches one."""

from __future__ import annotations

import itertools
import math
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from rag_pipeline.embedded import EmbeddedPostgres
from rag_pipeline.embedded.binaries import Binaries
from rag_pipeline.errors import DatabaseUnavailable
from rag_pipeline.index import pg_search
from rag_pipeline.index.database import Connection, connected
from rag_pipeline.index.migrations import migrate
from rag_pipeline.index.pg_search import ensure_pg_search, is_whole, on_tenant, sync_pg_search
from rag_pipeline.lexical.analyzer import terms_of
from rag_pipeline.retrieval.pg_search_leg import PgSearchLeg
from rag_pipeline.retrieval.query import SearchQuery
from rag_pipeline.retrieval.reader import reading
from rag_pipeline.retrieval.search import search
from rag_pipeline.settings import Retrieval
from rag_pipeline_tests.databases import new_database
from rag_pipeline_tests.embedded.servers import pid_of, temporary_postgres
from rag_pipeline_tests.knowledge import entry, write

FOLDER = Path(os.environ.get("RAG_TEST_PG_SEARCH") or Path(__file__).parents[2] / ".venv" / "pg-search")
needs_pg_search = pytest.mark.skipif(
    not (FOLDER / "pgembed").is_dir(), reason=f"no PostgreSQL with pg_search in {FOLDER}: run `make pg-search`"
)

_numbers = itertools.count()
LEG = PgSearchLeg()


@pytest.fixture(scope="module")
def searching() -> Iterator[EmbeddedPostgres]:
    """A PostgreSQL that carries pg_search, with a migrated template."""
    (found,) = FOLDER.glob("pgembed-*.dist-info")
    binaries = Binaries(package=FOLDER / "pgembed", name=found.name.removesuffix(".dist-info"), major="17")
    with temporary_postgres(binaries=binaries) as server:
        migrate(server.url())
        yield server


@pytest.fixture
def database(searching: EmbeddedPostgres) -> Iterator[str]:
    with new_database(searching, f"test_{next(_numbers)}", template="rag") as url:
        yield url


@pytest.fixture
def connection(database: str) -> Iterator[Connection]:
    with connected(database) as connection:
        assert ensure_pg_search(connection)
        yield connection


@contextmanager
def reader(connection: Connection, *, tenant: str = "acme", scopes: Sequence[str] = ()) -> Iterator[Connection]:
    """The connection as a search has it: a read-only snapshot of one tenant."""
    with reading(connection, tenant=tenant, scopes=scopes):
        yield connection


def scored(
    connection: Connection, question: str, *, tenant: str = "acme", scopes: Sequence[str] = (), limit: int = 10,
    allowed: Sequence[int] | None = None,
) -> list[tuple[str, float]]:  # fmt: skip
    """Texts that the leg finds for a question, with their scores."""
    with reader(connection, tenant=tenant, scopes=scopes):
        found = LEG.search(connection, terms_of(question), tenant=tenant, limit=limit, allowed=allowed)
    texts = dict(connection.execute("SELECT number, text FROM rag.chunks").fetchall())
    return [(texts[number], score) for number, score in found]


def texts(connection: Connection, question: str, **where) -> list[str]:
    return [text for text, _ in scored(connection, question, **where)]


def bm25(question: str, corpus: Sequence[str]) -> dict[str, float]:
    """Of each text, by the formula of Lucene, exact."""
    counts = {text: Counter(terms_of(text)) for text in corpus}
    mean = sum(sum(count.values()) for count in counts.values()) / len(counts)

    def score(count: Counter[str]) -> float:
        total = 0.0
        for term in terms_of(question):
            holding = sum(term in other for other in counts.values())
            idf = math.log(1 + (len(counts) - holding + 0.5) / (holding + 0.5))
            length = 1.2 * (1 - 0.75 + 0.75 * sum(count.values()) / mean)
            total += idf * count[term] * 2.2 / (count[term] + length)
        return total

    return {text: score(count) for text, count in counts.items() if score(count)}


def test_a_plain_server_lacks_it_and_nothing_is_changed(server, empty_database):
    migrate(empty_database)
    with connected(empty_database) as connection:
        assert not ensure_pg_search(connection)
        assert not LEG.is_ready(connection, tenant="acme")
        with pytest.raises(DatabaseUnavailable, match="the pg_search index of tenant 'acme' is missing"):
            LEG.search(connection, ["install"], tenant="acme", limit=3)


@needs_pg_search
def test_scores_are_those_of_bm25_over_our_terms(connection):
    corpus = [
        "call os.path.join to join a path", "join the meeting", "getUserName reads the user's name",
        "error E0308 in v1.2.3",
        "パスを結合する", "the path of the user", "C++ and c# and straße", "running runs run",
    ]  # fmt: skip
    write(connection, entry("a.md", *corpus))
    connection.execute("UPDATE rag.chunks SET lead = ''")  # the texts alone
    assert sync_pg_search(connection, tenant="acme") == len(corpus)
    for question in (
        "os.path.join",
        "join path",
        "user name",
        "E0308",
        "v1.2.3",
        "結合",
        "C++",
        "STRASSE run",
        "path path",
    ):
        expected = bm25(question, corpus)
        found = dict(scored(connection, question))
        # No length here is rounded.
        assert found == pytest.approx(expected, rel=1e-4), question
        assert list(found) == sorted(found, key=lambda text: (-round(expected[text], 4), corpus.index(text)))
    assert scored(connection, "nothing like it") == []


@needs_pg_search
def test_an_empty_question_or_filter_finds_nothing(connection):
    write(connection, entry("page", "install"))
    sync_pg_search(connection, tenant="acme")
    assert (
        scored(connection, "…")
        == scored(connection, "install", limit=0)
        == scored(connection, "install", allowed=[])
        == []
    )
    for hostile in ("' OR 1=1 --", "select:*", "{a,b}", "te\\st", "%s", "a:b AND (c"):
        assert scored(connection, hostile) == []


@needs_pg_search
def test_a_filter_narrows_without_costing_hits_or_changing_scores(connection):
    write(connection, *(entry(f"{n}.md", f"install part {n}") for n in range(60)))
    sync_pg_search(connection, tenant="acme")
    last = [row[0] for row in connection.execute("SELECT number FROM rag.chunks ORDER BY number DESC LIMIT 3")]
    everything = dict(scored(connection, "install", limit=100))
    found = dict(scored(connection, "install", allowed=last, limit=10))
    assert len(found) == 3
    assert found == {text: everything[text] for text in found}


@needs_pg_search
def test_asking_many_times_over_one_connection_goes_on_working(connection):
    write(connection, entry("a.md", "install", "deploy"))
    sync_pg_search(connection, tenant="acme")
    # A statement that is repeated is prepared, and then planned without its values.
    assert [texts(connection, word) for word in ["install", "deploy"] * 8] == [["install"], ["deploy"]] * 8


@needs_pg_search
def test_a_sync_writes_the_difference_and_a_second_one_nothing(connection, monkeypatch):
    monkeypatch.setattr(pg_search, "_BATCH_CHUNKS", 2)
    write(connection, entry("a.md", "one apple", "two pears", "three plums", "four figs", "five limes"))
    assert sync_pg_search(connection, tenant="acme") == 5
    assert sync_pg_search(connection, tenant="acme") == 0
    write(connection, entry("a.md", "one apple", "two grapes", "three plums", at=2))
    # What is gone from the index but not yet from the terms is not found.
    assert texts(connection, "pears") == []
    assert sync_pg_search(connection, tenant="acme") == 3 + 1
    assert texts(connection, "grapes apple") == ["one apple", "two grapes"]
    assert sync_pg_search(connection, tenant="acme") == 0


@needs_pg_search
def test_a_sync_that_is_undone_leaves_no_trace(connection):
    write(connection, entry("a.md", "one"))
    sync_pg_search(connection, tenant="acme")
    write(connection, entry("b.md", "two"))
    with connection.transaction(force_rollback=True):
        assert sync_pg_search(connection, tenant="acme") == 1
    assert texts(connection, "one two") == ["one"]


@needs_pg_search
def test_a_search_sees_one_state(connection, database):
    write(connection, entry("a.md", "install"))
    sync_pg_search(connection, tenant="acme")
    with connected(database) as other, reader(other):
        assert len(LEG.search(other, ["instal"], tenant="acme", limit=9)) == 1
        write(connection, entry("a.md", deleted=True, at=2), entry("b.md", "install", "install twice"))
        sync_pg_search(connection, tenant="acme")
        assert len(LEG.search(other, ["instal"], tenant="acme", limit=9)) == 1
    assert sorted(texts(connection, "install")) == ["install", "install twice"]


@needs_pg_search
def test_tenants_neither_see_each_other_nor_weigh_each_others_words(connection):
    write(connection, entry("a.md", "common rare", "common", "common thing"))
    sync_pg_search(connection, tenant="acme")
    before = scored(connection, "common rare")
    write(connection, *(entry(f"{n}.md", "rare", tenant="globex") for n in range(200)))
    sync_pg_search(connection, tenant="globex")
    assert scored(connection, "common rare") == before
    assert len(scored(connection, "rare", tenant="globex", limit=500)) == 200
    # As acme, in globex' index: the policy holds, whatever the caller says.
    with reader(connection, tenant="acme"):
        values = {"terms": ["rare"], "most": 9, "allowed": None}
        assert connection.execute(on_tenant("best", "globex"), values).fetchall() == []
        assert not LEG.is_ready(connection, tenant="globex")
        with pytest.raises(psycopg.errors.InsufficientPrivilege), connection.transaction():
            connection.execute(on_tenant("missing", "globex"), {"tenant": "globex", "after": 0, "limit": 1})


@needs_pg_search
@pytest.mark.parametrize("allowed", [False, True])
def test_scoped_rows_are_found_only_by_who_names_their_scope_and_cost_no_hits(connection, allowed):
    write(
        connection,
        *(entry(f"{n}.md", "secret secret", scope="user:ada") for n in range(20)),
        entry("z.md", "secret open"),
    )
    sync_pg_search(connection, tenant="acme")
    numbers = [row[0] for row in connection.execute("SELECT number FROM rag.chunks")] if allowed else None
    assert texts(connection, "secret", limit=3, allowed=numbers) == ["secret open"]
    assert texts(connection, "secret", limit=3, scopes=["user:bob"], allowed=numbers) == ["secret open"]
    seen = scored(connection, "secret", limit=30, scopes=["user:bob", "user:ada"], allowed=numbers)
    assert len(seen) == 21
    # A policy adds nothing to a score.
    assert scored(connection, "secret", limit=3, allowed=numbers)[0] in seen


@needs_pg_search
def test_a_scope_that_was_narrowed_holds_before_the_next_sync_and_after_it(connection):
    write(connection, entry("a.md", "secret"))
    sync_pg_search(connection, tenant="acme")
    write(connection, entry("a.md", "secret", at=2, scope="user:ada"))
    assert texts(connection, "secret") == []
    assert sync_pg_search(connection, tenant="acme") == 2
    assert (texts(connection, "secret"), texts(connection, "secret", scopes=["user:ada"])) == ([], ["secret"])


@needs_pg_search
@pytest.mark.parametrize("tenant", ["o'brien", 'a"b', "Ä" * 100, "a; DROP SCHEMA rag"])
def test_a_tenant_may_be_called_anything(connection, tenant):
    write(connection, entry("a.md", "install", tenant=tenant))
    assert sync_pg_search(connection, tenant=tenant) == 1
    assert texts(connection, "install", tenant=tenant) == ["install"]


@needs_pg_search
def test_another_version_of_the_analyzer_makes_the_index_anew(connection, monkeypatch):
    write(connection, entry("a.md", "install"))
    sync_pg_search(connection, tenant="acme")
    monkeypatch.setattr(pg_search, "ANALYZER_VERSION", 99)
    assert not is_whole(connection, tenant="acme")
    assert sync_pg_search(connection, tenant="acme") == 1
    assert texts(connection, "install") == ["install"]


@needs_pg_search
def test_after_a_crash_the_index_is_not_trusted_until_it_was_made_again(searching):
    with psycopg.connect(searching.url("postgres"), autocommit=True) as connection:
        connection.execute("CREATE DATABASE crashed TEMPLATE rag")
    database = searching.url("crashed")
    with connected(database) as connection:
        ensure_pg_search(connection)
        write(connection, entry("a.md", "install"))
        sync_pg_search(connection, tenant="acme")
    searching.stop()
    searching.start()
    with connected(database) as connection:
        assert texts(connection, "install") == ["install"]
        write(connection, entry("b.md", "install more"))
        sync_pg_search(connection, tenant="acme")
    os.kill(pid_of(searching), 9)
    searching.start()
    with connected(database) as connection:
        with pytest.raises(DatabaseUnavailable, match="not whole since the server crashed"):
            texts(connection, "install")
        # The chunks themselves are all there.
        assert ensure_pg_search(connection)
        assert sync_pg_search(connection, tenant="acme") == 2
        assert sorted(texts(connection, "install")) == ["install", "install more"]


@pytest.mark.parametrize("where", [{}, {"repository": "handbook"}, {"repository": "other"}, {"scopes": ("user:ada",)}])
@pytest.mark.parametrize("question", ["how to install", "deploy pgvector 1.2.3", "os.path.join", "nothing-of-it", "?"])
@needs_pg_search
def test_both_lexical_indexes_give_the_same_hits(connection, question, where):
    words = ["install", "deploy", "the os.path.join", "pgvector 1.2.3", "monitor and install", "how to", "path"]
    for n in range(40):
        texts = [f"{words[(n * 3 + part) % 7]} {words[(n + part * 5) % 7]} {n}" for part in range(3)]
        scope = "user:ada" if n % 9 == 0 else None
        write(connection, entry(f"{n}.md", *texts, scope=scope, repository="other" if n % 5 else "handbook"))
    write(connection, *(entry(f"{n}.md", deleted=True, at=2, repository="other") for n in (1, 2, 3)))
    sync_pg_search(connection, tenant="acme")
    query = SearchQuery(text=question, tenant="acme", k=10, legs="lexical", **where)
    ours, theirs = (
        search(connection, query, space=None, vector=None, settings=Retrieval(lexical=lexical))
        for lexical in ("postings", "pg_search")
    )
    assert [(hit.chunk_id, hit.matched_terms) for hit in theirs] == [(hit.chunk_id, hit.matched_terms) for hit in ours]
    assert [hit.score for hit in theirs] == pytest.approx([hit.score for hit in ours])


@needs_pg_search
def test_an_index_that_is_not_whole_is_not_asked(connection):
    write(connection, entry("a.md", "install"))
    query = SearchQuery(text="install", tenant="acme", legs="lexical")
    settings = Retrieval(lexical="pg_search")
    assert [hit.text for hit in search(connection, query, space=None, vector=None, settings=settings)] == ["install"]
