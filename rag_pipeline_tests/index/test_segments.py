"""The lexical index follows the chunks: after any writes and merges it is what a fresh one would be."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rag_pipeline.index.database import Connection, connected
from rag_pipeline.index.segments import merge_segments, rebuild_if_outdated
from rag_pipeline.lexical.bm25 import Parameters
from rag_pipeline.lexical.questions import weighted_terms
from rag_pipeline.retrieval.lexical_leg import lexical_ranking, visible_segments
from rag_pipeline.retrieval.term_cache import SHARED, TermCache
from rag_pipeline_tests.databases import empty
from rag_pipeline_tests.knowledge import entry, write

QUESTIONS = ("install", "deploy now", "monitor deploy install", "guide", "md")
SCOPES = ("user:ada", "user:bob")


def scores(
    connection: Connection, question: str, *, tenant: str = "acme", scopes=SCOPES, cache: TermCache = SHARED
) -> dict[str, float]:
    """Of every chunk that is found, by text and document, as all who may see these scopes see it."""
    segments = visible_segments(connection, tenant=tenant, scopes=scopes)
    found = lexical_ranking(
        connection, weighted_terms(question), segments=segments, parameters=Parameters(), cache=cache
    ).best(1_000)
    rows = connection.execute("SELECT number, document_id::text || text FROM rag.chunks").fetchall()
    names = {row[0]: row[1] for row in rows}
    return {names[number]: round(score, 9) for number, score in found}


def everything(connection: Connection, cache: TermCache = SHARED) -> list[dict[str, float]]:
    return [
        scores(connection, question, tenant=tenant, scopes=scopes, cache=cache)
        for question in QUESTIONS
        for tenant in ("acme", "globex")
        for scopes in ((), SCOPES[:1], SCOPES)
    ]


def rebuilt(connection: Connection) -> list[dict[str, float]]:
    """What an index shows that is written from nothing."""
    with connection.transaction(force_rollback=True):
        connection.execute("TRUNCATE rag.segments, rag.postings")
        assert rebuild_if_outdated(connection) == bool(
            connection.execute("SELECT count(*) FROM rag.chunks").fetchone()[0]
        )
        return everything(connection)


WORDS = st.sampled_from(["install", "deploy", "monitor", "now", "install deploy", "!"])
STEP = st.one_of(
    st.builds(
        lambda name, words, tenant, scope, title: ("write", name, words, tenant, scope, title),
        st.integers(0, 4), st.lists(WORDS, min_size=1, max_size=4), st.sampled_from(["acme", "acme", "globex"]),
        st.sampled_from([None, None, *SCOPES]), st.sampled_from(["Guide", "Install"]),
    ),
    st.builds(lambda name: ("delete", name), st.integers(0, 4)),
    st.just(("merge",)),
    st.just(("merge all",)),
)  # fmt: skip


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(steps=st.lists(STEP, max_size=14))
def test_after_any_changes_and_merges_it_is_what_a_fresh_index_is(steps, reused_database):
    empty(reused_database)
    with connected(reused_database) as connection:
        for at, step in enumerate(steps, start=1):
            match step:
                case ("write", name, words, tenant, scope, title):
                    write(connection, entry(f"{name}.md", *words, at=at, tenant=tenant, scope=scope, title=title))
                case ("delete", name):
                    write(connection, entry(f"{name}.md", at=at, deleted=True))
                case ("merge",):
                    merge_segments(connection)
                case _:
                    merge_segments(connection, everything=True)
        assert everything(connection) == rebuilt(connection)


def test_the_same_again_writes_no_segment(connection):
    write(connection, entry("a.md", "install", "deploy"))
    before = connection.execute("SELECT count(*), max(segment_id) FROM rag.segments").fetchone()
    write(connection, entry("a.md", "install", "deploy"))
    write(connection, entry("a.md", "install", "deploy", at=2))
    assert connection.execute("SELECT count(*), max(segment_id) FROM rag.segments").fetchone() == before


def test_an_edit_costs_postings_for_what_it_changed_alone(connection):
    pages = [[f"page {n} says word{n}", f"more of {n}"] for n in range(50)]
    write(connection, *(entry(f"{n}.md", *texts) for n, texts in enumerate(pages)))
    before = connection.execute("SELECT max(segment_id) FROM rag.segments").fetchone()[0]
    write(connection, entry("7.md", "page 7 says otherwise", "more of 7", at=2))
    rows = connection.execute(
        "SELECT term, chunks, removed FROM rag.postings WHERE segment_id > %s", [before]
    ).fetchall()
    # Its title and path stand before each chunk.
    assert {row[0] for row in rows if row[1] or row[2]} >= {"word7", "otherwis"}
    assert all(row[1] <= 1 and row[2] <= 1 for row in rows)
    assert "more" not in {row[0] for row in rows}


def test_many_small_segments_become_few(connection):
    for n in range(40):
        write(connection, entry(f"{n}.md", f"install {n}"))
        merge_segments(connection)
    (count,) = connection.execute("SELECT count(*) FROM rag.segments").fetchone()
    assert count < 9
    assert len(scores(connection, "install")) == 40
    merge_segments(connection, everything=True)
    assert connection.execute("SELECT count(*), sum(chunks) FROM rag.segments").fetchone() == (1, 40)


def test_what_is_deleted_goes_for_good_when_segments_are_merged(connection):
    write(connection, *(entry(f"{n}.md", "install") for n in range(10)))
    write(connection, *(entry(f"{n}.md", deleted=True, at=2) for n in range(9)))
    assert len(scores(connection, "install")) == 1
    merge_segments(connection)
    row = connection.execute("SELECT count(*), sum(chunks), sum(removed_chunks) FROM rag.segments").fetchone()
    assert row == (1, 1, 0)
    rows = connection.execute("SELECT chunks, removed FROM rag.postings WHERE term = 'instal'").fetchall()
    assert rows == [(1, 0)]


def test_postings_of_another_analyzer_are_written_again(connection):
    write(connection, entry("a.md", "install"), entry("b.md", "deploy", scope="user:ada"))
    before = everything(connection)
    assert not rebuild_if_outdated(connection)
    connection.execute("UPDATE rag.segments SET analyzer = 0, removed = ''")
    connection.execute("UPDATE rag.postings SET term = term || '?'")
    assert everything(connection, TermCache()) != before  # what was read before is still remembered
    assert rebuild_if_outdated(connection)
    assert everything(connection) == before


def test_searches_go_on_while_segments_are_written_and_merged(database):
    stop = threading.Event()
    failures: list[object] = []

    def searching() -> None:
        with connected(database) as connection:
            while not stop.is_set():
                with connection.transaction():
                    connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
                    found = scores(connection, "install")
                    chunks = connection.execute("SELECT count(*) FROM rag.chunks").fetchone()[0]
                if len(found) != chunks:
                    failures.append((len(found), chunks))

    def merging() -> None:
        with connected(database) as connection:
            while not stop.is_set():
                merge_segments(connection, everything=True)

    threads = [threading.Thread(target=searching), threading.Thread(target=merging), threading.Thread(target=merging)]
    for thread in threads:
        thread.start()
    with connected(database) as connection:
        for n in range(60):
            write(connection, entry(f"{n % 7}.md", *(f"install {part}" for part in range(n % 4 + 1)), at=n + 1))
        stop.set()
        for thread in threads:
            thread.join(30)
        assert not failures
        assert everything(connection) == rebuilt(connection)


def test_numbers_in_postings_are_ascending_after_a_merge(connection):
    for n in range(12):
        write(connection, entry(f"{n % 5}.md", "install", f"deploy {n}", at=n + 1))
    merge_segments(connection, everything=True)
    for (entries,) in connection.cursor(binary=True).execute("SELECT entries FROM rag.postings"):
        numbers = np.frombuffer(entries, dtype="<u4,<u2,<u2")["f0"].astype(np.int64)
        assert np.all(np.diff(numbers) > 0)


@pytest.mark.parametrize("scopes", [(), ("user:ada",)])
def test_what_one_may_not_see_changes_no_score(connection, scopes):
    write(
        connection, entry("a.md", "install now"), entry("b.md", "deploy"), entry("own.md", "install", scope="user:ada")
    )
    before = scores(connection, "install deploy now", scopes=scopes)
    write(
        connection,
        *(entry(f"x{n}.md", "install now now", tenant="globex") for n in range(5)),
        *(entry(f"y{n}.md", "install deploy", scope="user:bob") for n in range(5)),
    )
    assert scores(connection, "install deploy now", scopes=scopes) == before


def test_terms_are_read_once_for_the_same_segments_and_again_after_a_write(connection):
    write(connection, entry("a.md", "install"))
    cache = TermCache()
    first = scores(connection, "install", cache=cache)
    connection.execute("DELETE FROM rag.postings")  # nobody does that: it shows what is read
    assert scores(connection, "install", cache=cache) == first
    assert scores(connection, "install", cache=TermCache()) == {}
    write(connection, entry("b.md", "install"))
    assert len(scores(connection, "install", cache=cache)) == 1


def test_what_was_used_longest_ago_is_forgotten_first(connection):
    write(connection, entry("a.md", "install deploy monitor"))
    segments = visible_segments(connection, tenant="acme", scopes=())
    cache = TermCache(most_bytes=450)  # two terms of one chunk each
    for word in ("install", "deploy", "install", "monitor"):
        scores(connection, word, cache=cache, scopes=())
    known = [term for term in ("instal", "deploy", "monitor") if cache.get(segments.key, term)]
    assert known == ["instal", "monitor"]
