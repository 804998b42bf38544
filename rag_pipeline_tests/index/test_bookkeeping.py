"""What the pipeline remembers: positions of sources, stored parts, quarantined items, and the overview of the index."""

from __future__ import annotations

import dataclasses
from datetime import date, timedelta

from rag_pipeline.index.bookkeeping import (
    SourceKey,
    advance,
    failing_days,
    open_failures,
    overview,
    position,
    record_failures,
    record_part,
    stored_parts,
)
from rag_pipeline.lake.store import Part
from rag_pipeline.model import DayRange, Failure
from rag_pipeline_tests.knowledge import DAY, NOW, entry, moment, space_of, write

KEY = SourceKey(tenant="acme", repository="handbook", source="git")
DAYS = DayRange(first=DAY, last=DAY + timedelta(days=2))


def failure(
    name: str = "a.md", *, day: date = DAY, at: int = 1, reason: str = "unreadable", stage: str = "documents"
) -> Failure:
    return Failure(
        tenant="acme", source_type="docs", source_id=name, stage=stage, repository="handbook", day=day,
        source_updated_at=moment(at), reason=reason,
    )  # fmt: skip


def record(connection, *failures: Failure, days: DayRange = DAYS, hour: int = 0, stage: str = "documents") -> None:
    record_failures(connection, failures, stage=stage, days=days, now=NOW + timedelta(hours=hour))


def attempts(connection) -> dict[str, int]:
    return {row[2]: row[5] for row in open_failures(connection)}


def test_a_position_holds_only_under_its_settings_and_its_space(connection):
    space, other = space_of(connection, model="a"), space_of(connection, model="b")
    assert position(connection, KEY, space, fingerprint="f") is None
    assert advance(connection, KEY, space, fingerprint="f", to="c1", at=moment(1), now=NOW) is True
    assert position(connection, KEY, space, fingerprint="f") == ("c1", moment(1))
    assert position(connection, KEY, space, fingerprint="other settings") is None
    assert position(connection, KEY, other, fingerprint="f") is None
    for changed in ({"tenant": "globex"}, {"repository": "site"}, {"source": "github"}):
        assert position(connection, dataclasses.replace(KEY, **changed), space, fingerprint="f") is None


def test_advancing_to_where_we_are_writes_nothing(connection):
    space = space_of(connection)
    advance(connection, KEY, space, fingerprint="f", to="c1", at=moment(1), now=NOW)
    assert advance(connection, KEY, space, fingerprint="f", to="c1", at=moment(1), now=NOW) is False
    assert advance(connection, KEY, space, fingerprint="f", to="c2", at=moment(2), now=NOW) is True
    # New settings start anew: the old position is no longer known under the old ones either.
    assert advance(connection, KEY, space, fingerprint="g", to="c2", at=moment(2), now=NOW) is True
    assert position(connection, KEY, space, fingerprint="f") is None


def test_stored_parts_are_those_of_the_stage_the_space_and_the_days(connection):
    space, other = space_of(connection, model="a"), space_of(connection, model="b")
    part = Part(tenant="acme", repository="handbook", day=DAY)
    outside = dataclasses.replace(part, day=DAY - timedelta(days=1))
    for each in (part, outside):
        record_part(connection, space, each, stage="embeddings", fingerprint="one", now=NOW)
    record_part(connection, space, part, stage="embeddings", fingerprint="two", now=NOW)
    assert stored_parts(connection, space, DAYS, stage="embeddings") == {part: "two"}
    assert stored_parts(connection, space, DAYS, stage="knowledge_index") == {}
    assert stored_parts(connection, other, DAYS, stage="embeddings") == {}


def test_failures_are_kept_counted_and_resolved(connection):
    record(connection, failure("a.md"), failure("b.md", reason="nul \0 byte"))
    record(connection, failure("a.md", reason="still unreadable"), failure("b.md"), hour=1)
    assert attempts(connection) == {"a.md": 2, "b.md": 2}
    record(connection, failure("a.md"), hour=2)
    assert attempts(connection) == {"a.md": 3}
    assert failing_days(connection) == [DAY]
    record(connection, hour=3)
    assert (attempts(connection), failing_days(connection)) == ({}, [])
    # They stay on record.
    assert connection.execute("SELECT count(*) FROM rag.ingestion_failures").fetchone() == (2,)


def test_a_failure_that_comes_back_counts_from_one(connection):
    record(connection, failure(), hour=0)
    record(connection, hour=1)
    record(connection, failure(), hour=2)
    assert attempts(connection) == {"a.md": 1}
    row = connection.execute("SELECT first_failed_at FROM rag.ingestion_failures").fetchone()
    assert row == (NOW + timedelta(hours=2),)


def test_a_run_resolves_only_what_it_covered(connection):
    late = DAY + timedelta(days=9)
    record(connection, failure("early.md"))
    record(connection, failure("late.md", day=late), days=DayRange(first=late, last=late))
    record(connection, failure("other.md", stage="chunks"), stage="chunks")
    record(connection, hour=1)
    assert attempts(connection).keys() == {"late.md", "other.md"}
    assert failing_days(connection) == [DAY, late]


def test_a_newer_state_in_the_index_settles_a_failure(connection):
    elsewhere = DayRange(first=DAY + timedelta(days=30), last=DAY + timedelta(days=30))
    record(connection, failure("handbook:a.md", at=2), failure("handbook:b.md", at=2))
    write(connection, entry("a.md", "mended", at=3), entry("b.md", "before", at=2))
    record(connection, days=elsewhere, hour=1)
    assert attempts(connection).keys() == {"handbook:b.md"}


def test_the_failure_of_an_older_state_does_not_hide_that_of_a_newer(connection):
    record(connection, failure(at=3, reason="new"))
    record(connection, failure(at=2, reason="old"), days=DayRange(first=DAY, last=DAY))
    assert [row[4] for row in open_failures(connection)] == ["new"]


def test_the_overview_counts_live_documents_tombstones_and_chunks(connection):
    write(
        connection, entry("a.md", "one", "two", at=1), entry("b.md", "three", at=5), entry("c.md", deleted=True, at=3),
        entry("main.py", "code", source_type="code", repository="site"), entry("a.md", "x", tenant="globex"),
    )  # fmt: skip
    docs, code, globex = overview(connection)
    assert (docs.tenant, docs.repository, docs.source_type) == ("acme", "handbook", "docs")
    assert (docs.documents, docs.tombstones, docs.chunks, docs.newest_change) == (2, 1, 3, moment(5))
    assert docs.last_indexed == NOW
    assert (code.repository, code.source_type, code.chunks) == ("site", "code", 1)
    assert (globex.tenant, globex.documents) == ("globex", 1)
