"""What the database tells the report: sizes on record, and everything else, also of an empty index."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import numpy as np
import pytest

from rag_pipeline.index.bookkeeping import record_failures
from rag_pipeline.index.database import Connection
from rag_pipeline.index.evaluations import record_evaluation
from rag_pipeline.index.reporting import read_facts, record_sizes
from rag_pipeline.model import DayRange, Evaluation, Failure
from rag_pipeline_tests.knowledge import DAY, NOW, entry, moment, space_of, store_vectors, write

FIRST = date(2024, 5, 1)
TODAY = date(2024, 6, 1)


def sizes(connection: Connection) -> list[tuple[object, ...]]:
    return connection.execute(
        "SELECT day::text, tenant_id, repository, source_type, documents, chunks, tokens FROM rag.index_sizes"
        " ORDER BY 1, 2, 3, 4"
    ).fetchall()


def test_the_size_of_a_day_is_what_is_alive(connection):
    write(connection, entry("a", "one two", "three"), entry("b", "four"), entry("c", "x", source_type="code"),
          entry("gone", deleted=True), entry("d", "five", tenant="other"))  # fmt: skip
    assert record_sizes(connection, TODAY) == 3
    assert sizes(connection) == [
        ("2024-06-01", "acme", "handbook", "code", 1, 1, 1),
        ("2024-06-01", "acme", "handbook", "docs", 2, 3, 4),
        ("2024-06-01", "other", "handbook", "docs", 1, 1, 1),
    ]


def test_where_nothing_changed_no_row_is_written(connection):
    write(connection, entry("a", "one"))
    assert record_sizes(connection, TODAY) == 1
    assert record_sizes(connection, TODAY) == 0
    assert record_sizes(connection, TODAY + timedelta(days=1)) == 0
    write(connection, entry("b", "two"))
    assert record_sizes(connection, TODAY + timedelta(days=2)) == 1
    assert [row[0] for row in sizes(connection)] == ["2024-06-01", "2024-06-03"]


def test_the_same_day_is_written_over(connection):
    write(connection, entry("a", "one"))
    record_sizes(connection, TODAY)
    write(connection, entry("b", "two"))
    record_sizes(connection, TODAY)
    assert [(row[0], row[4]) for row in sizes(connection)] == [("2024-06-01", 2)]


def test_a_source_that_left_gets_a_last_row_of_nothing(connection):
    write(connection, entry("a", "one"))
    record_sizes(connection, TODAY)
    write(connection, entry("a", at=5, deleted=True))
    assert record_sizes(connection, TODAY + timedelta(days=1)) == 1
    assert sizes(connection)[-1][4:] == (0, 0, 0)
    assert record_sizes(connection, TODAY + timedelta(days=2)) == 0


def test_only_the_named_sources_are_counted(connection):
    write(connection, entry("a", "one"), entry("b", "two", repository="wiki"))
    assert record_sizes(connection, TODAY, sources={("acme", "wiki")}) == 1
    assert [row[2] for row in sizes(connection)] == ["wiki"]
    write(connection, entry("a", at=5, deleted=True), entry("b", at=5, repository="wiki", deleted=True))
    record_sizes(connection, TODAY + timedelta(days=1), sources={("acme", "wiki")})
    assert [(row[2], row[4]) for row in sizes(connection)] == [("wiki", 1), ("wiki", 0)]
    assert record_sizes(connection, TODAY, sources=[]) == 0


def test_an_empty_index_has_facts_of_nothing(connection):
    facts = read_facts(connection, first=FIRST)
    assert not facts.sizes and not facts.freshness and not facts.quality and not facts.usage and not facts.failures
    assert not facts.spaces and facts.database_bytes > 1_000_000
    assert {"documents", "chunks", "postings", "usage"} <= {table.name for table in facts.tables}


def test_sizes_begin_with_the_last_one_before_the_first_day(connection):
    write(connection, entry("a", "one"))
    for day in (FIRST - timedelta(days=9), FIRST - timedelta(days=5), FIRST, FIRST + timedelta(days=3)):
        record_sizes(connection, day)
        write(connection, entry(f"{day}", "more"))
    found = read_facts(connection, first=FIRST).sizes
    assert [(row.day, row.documents) for row in found] == [
        (FIRST - timedelta(days=5), 2), (FIRST, 3), (FIRST + timedelta(days=3), 4)
    ]  # fmt: skip


def test_everything_on_record_is_told(connection):
    space = space_of(connection)
    write(connection, entry("a", "one"))
    store_vectors(connection, space, {"one": np.ones(8)})
    evaluation = Evaluation(dataset="own", labels_hash="v1", per_query={"fused": {"q": {"nDCG@10": 0.5}}})
    record_evaluation(connection, evaluation, tenant="acme", space=space, now=NOW)
    record_evaluation(connection, evaluation, tenant="acme", space=space, now=NOW - timedelta(days=400))
    failure = Failure(tenant="acme", source_type="docs", source_id="handbook:x", stage="documents",
                      repository="handbook", day=DAY, source_updated_at=moment(1), reason="it is broken")  # fmt: skip
    record_failures(connection, [failure], stage="documents", days=DayRange(first=DAY, last=DAY), now=NOW)
    for hour, cost in ((0, 0.5), (23, 0.25)):
        connection.execute(
            "INSERT INTO rag.usage (used_at, tenant_id, repository, run_id, purpose, provider, model, requests, tokens,"
            " cost_usd) VALUES (%s, 'acme', 'handbook', 'r', 'embedding', 'openai', 'small', 2, 100, %s)",
            (datetime(2024, 5, 31, hour, 59, tzinfo=UTC), cost),
        )
    connection.execute(
        "INSERT INTO rag.source_freshness VALUES ('acme', 'handbook', 'git', %s, %s, %s, %s),"
        " ('acme', 'b', 'git', NULL, NULL, NULL, NULL)",
        (NOW, NOW, NOW - timedelta(hours=3), NOW),
    )
    facts = read_facts(connection, first=FIRST)
    (point,), (used,), (waiting,) = facts.quality, facts.usage, facts.failures
    assert (point.model, point.metrics["fused"]["nDCG@10"]) == ("test", 0.5)
    assert (used.day, used.requests, used.tokens, used.cost_usd) == (date(2024, 5, 31), 4, 200, 0.75)
    assert (waiting.items, waiting.reason, waiting.attempts) == (1, "it is broken", 1)
    assert [(row.repository, row.complete_until, row.failures_waiting) for row in facts.freshness] == [
        ("b", None, 0), ("handbook", NOW - timedelta(hours=3), 1)
    ]  # fmt: skip
    (known,) = facts.spaces
    assert (known.space_id, known.model, known.dimensions) == (space.space_id, "test", 8) and known.bytes > 0


@pytest.mark.parametrize("days", [0, 30])
def test_usage_before_the_first_day_is_left_out(connection, days):
    connection.execute(
        "INSERT INTO rag.usage (used_at, tenant_id, repository, run_id, purpose, provider, model)"
        " VALUES (%s, 'a', 'r', 'x', 'rerank', 'p', 'm')",
        (datetime(2024, 5, 1, tzinfo=UTC),),
    )
    assert len(read_facts(connection, first=FIRST + timedelta(days=days)).usage) == (days == 0)
