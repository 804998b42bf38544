"""What a write says of its growth, against what is there afterwards."""

from __future__ import annotations

from datetime import date

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rag_pipeline.index import reporting
from rag_pipeline.index.database import connected
from rag_pipeline.index.growth import Growth
from rag_pipeline.index.reporting import latest_sizes, record_growth, record_sizes
from rag_pipeline.index.writer import Entry
from rag_pipeline_tests.databases import empty
from rag_pipeline_tests.knowledge import entry, write

TODAY = date(2024, 6, 1)
_WORDS = ("one", "two words", "three words more")


@st.composite
def states(draw: st.DrawFn) -> Entry:
    """A state of one of four documents: of any age, with any chunks, alive or not."""
    name, at = draw(st.sampled_from("abcd")), draw(st.integers(1, 5))
    kind = "code" if name == "d" else "docs"
    if draw(st.booleans()) and draw(st.booleans()):
        return entry(name, at=at, deleted=True, source_type=kind)
    return entry(name, *draw(st.lists(st.sampled_from(_WORDS), max_size=4)), at=at, source_type=kind)


@given(runs=st.lists(st.lists(states(), min_size=1, max_size=4), min_size=1, max_size=4))
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_came_and_went_on_top_of_the_last_size_is_the_size(runs, reused_database, monkeypatch):
    monkeypatch.setattr(reporting, "COUNTED_UP_TO", -1)
    empty(reused_database)
    with connected(reused_database) as connection:
        for run in runs:
            report = write(connection, *run)
            changed = {source[:2] for source in report.growth.by_source} if report.rows else set()
            record_growth(connection, TODAY, report.growth, changed=changed)
        told = {row[1:4]: row[4:] for row in rows(connection)}
        record_sizes(connection, TODAY)
        assert told == {row[1:4]: row[4:] for row in rows(connection)}


def rows(connection: psycopg.Connection[tuple[object, ...]]) -> list[tuple[object, ...]]:
    return connection.execute(
        "SELECT day, tenant_id, repository, source_type, documents, chunks, tokens FROM rag.index_sizes"
        " ORDER BY 1, 2, 3, 4"
    ).fetchall()


def test_a_document_that_moves_to_another_repository_leaves_the_first(connection):
    first = write(connection, entry("a", "one two", "three"))
    assert dict(first.growth.by_source) == {("acme", "handbook", "docs"): (1, 2, 3)}
    moved = entry("a", "one two", "three", at=2)
    object.__setattr__(moved.document, "repository", "wiki")
    again = write(connection, moved)
    assert dict(again.growth.by_source) == {
        ("acme", "handbook", "docs"): (-1, -2, -3),
        ("acme", "wiki", "docs"): (1, 2, 3),
    }


def test_an_older_state_adds_nothing(connection):
    write(connection, entry("a", "one", at=3))
    assert not any(map(any, write(connection, entry("a", "one", "two", at=2)).growth.by_source.values()))


@pytest.mark.parametrize("limit", [0, 100])
def test_sources_of_no_size_and_small_ones_are_counted(connection, monkeypatch, limit):
    monkeypatch.setattr(reporting, "COUNTED_UP_TO", limit)
    write(connection, entry("a", "one"))
    assert record_growth(connection, TODAY, Growth(), changed={("acme", "handbook")}) == 1
    # What the growth does not tell is counted where counting is cheap, and only there.
    write(connection, entry("b", "two"))
    record_growth(connection, TODAY, Growth(), changed={("acme", "handbook")})
    assert [size.documents for size in latest_sizes(connection)] == [2 if limit else 1]


def test_growth_of_several_writes_is_their_sum():
    one, two = Growth(), Growth()
    one.count(("t", "r", "docs"), (1, 2, 3))
    two.count(("t", "r", "docs"), (1, 1, 1), times=-1)
    two.count(("t", "r", "code"), (5, 5, 5))
    one.add(two)
    assert dict(one.by_source) == {("t", "r", "docs"): (0, 1, 2), ("t", "r", "code"): (5, 5, 5)}
