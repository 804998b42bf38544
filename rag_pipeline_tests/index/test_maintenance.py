"""Maintenance removes what nothing needs, keeps what a run counts on, and rebuilds only what is out of order."""

from __future__ import annotations

import os
import threading
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from rag_pipeline.errors import PermanentError
from rag_pipeline.index.changes import index_state
from rag_pipeline.index.database import Connection, connected
from rag_pipeline.index.graph import graph_bytes, has_graph
from rag_pipeline.index.maintenance import MaintenanceReport, Sources, maintain
from rag_pipeline.index.orphans import counting_on_vectors
from rag_pipeline.index.spaces import SpaceVectors, activate
from rag_pipeline.index.stage import index_documents
from rag_pipeline.index.tombstones import Readable
from rag_pipeline.index.upkeep import tables
from rag_pipeline.index.writer import Entry
from rag_pipeline.lake.schemas import CHUNKS, DOCUMENTS, ITEMS, to_batches
from rag_pipeline.lake.store import Lake, Part
from rag_pipeline.model import DayRange, EmbeddingSpace, SourceItem, text_hash
from rag_pipeline.progress import silent
from rag_pipeline.settings.maintenance import Maintenance
from rag_pipeline_tests.knowledge import DAY, NOW, entry, space_of, store_vectors, write

PART = Part(tenant="acme", repository="handbook", day=DAY)
LATER = NOW + timedelta(days=1000)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(str(tmp_path))


@pytest.fixture
def space(connection: Connection) -> EmbeddingSpace:
    space = space_of(connection)
    activate(connection, space)
    return space


def tidy(
    connection: Connection, lake: Lake, *, now: datetime = NOW, readable: tuple[Readable, ...] = (), **settings: object
) -> MaintenanceReport:
    return maintain(
        connection, lake, settings=Maintenance.model_validate(settings), now=now, progress=silent,
        sources=Sources(raw_stages=("raw_docs",), readable=readable), questions_days=90,
    )  # fmt: skip


def done(report: MaintenanceReport) -> dict[str, int]:
    """What was done, but for the traces that every write of a test leaves."""
    assert report.problems == []
    return {action.what: action.rows for action in report.actions if action.what != "forget changes"}


def test_what_tells_of_changes_is_kept_short(connection, lake):
    for hour in range(1, 6):
        write(connection, entry("a.md", f"text {hour}", at=hour))
    before = index_state(connection, "acme").changes
    (gone,) = [action.rows for action in tidy(connection, lake, now=LATER).actions if action.what == "forget changes"]
    assert gone == before - 1 > 0
    assert index_state(connection, "acme").changes == 1


def vectors(*texts: str) -> dict[str, np.ndarray]:
    return {text: np.eye(8)[n % 8] for n, text in enumerate(texts)}


def held(connection: Connection, space: EmbeddingSpace, *texts: str, tenant: str = "acme") -> set[str]:
    known = connection.execute(
        f"SELECT text_hash FROM rag.vectors_{space.space_id} WHERE tenant_id = %s", (tenant,)
    ).fetchall()
    return {text for text in texts if (text_hash(text),) in known}


def put(lake: Lake, *entries: Entry, part: Part = PART, fingerprint: str = "f1") -> None:
    """What the documents and chunks stages would leave."""
    for stage, schema, nouns in (
        ("documents", DOCUMENTS, [e.document for e in entries]),
        ("chunks", CHUNKS, [chunk for e in entries for chunk in e.chunks]),
    ):
        with lake.writer(stage, part, schema=schema) as writer:
            for batch in to_batches(nouns, schema):
                writer.add(batch)
            writer.fingerprint = fingerprint


def index(connection: Connection, lake: Lake, space: EmbeddingSpace) -> None:
    index_documents(
        lake, DayRange(first=DAY, last=DAY), connection=connection, space=space, fingerprint="v1", now=NOW,
        progress=silent,
    )  # fmt: skip


def test_where_there_is_nothing_to_do_nothing_is_done(connection, lake, space):
    store_vectors(connection, space, vectors("one"))
    write(connection, entry("a.md", "one"))
    tidy(connection, lake)  # builds the graph
    assert tidy(connection, lake).actions == []


def test_vectors_of_texts_that_no_chunk_holds_leave_every_space_and_only_for_that_tenant(connection, lake, space):
    other = space_of(connection, model="other")
    for each in (space, other):
        store_vectors(connection, each, vectors("one", "two"))
        store_vectors(connection, each, vectors("one", "two"), tenant="globex")
    write(connection, entry("a.md", "one"), entry("b.md", "two", tenant="globex"))
    found = done(tidy(connection, lake))
    assert found["remove orphan vectors of space 1"] == found["remove orphan vectors of space 2"] == 2
    for each in (space, other):
        assert held(connection, each, "one", "two") == {"one"}
        assert held(connection, each, "one", "two", tenant="globex") == {"two"}


def test_between_embedding_and_indexing_the_vectors_of_a_run_stay(connection, lake, space):
    put(lake, entry("a.md", "one"))
    store_vectors(connection, space, vectors("one", "nobody's"))
    assert done(tidy(connection, lake))["remove orphan vectors of space 1"] == 1
    assert held(connection, space, "one", "nobody's") == {"one"}
    index(connection, lake, space)
    assert [row[0] for row in connection.execute("SELECT text FROM rag.chunks")] == ["one"]


def test_what_a_newer_state_of_an_indexed_part_needs_stays_too(connection, lake, space):
    put(lake, entry("a.md", "one"))
    store_vectors(connection, space, vectors("one"))
    index(connection, lake, space)
    put(lake, entry("a.md", "two", at=2), fingerprint="f2")
    store_vectors(connection, space, vectors("two"))
    assert "remove orphan vectors of space 1" not in done(tidy(connection, lake))
    index(connection, lake, space)
    assert done(tidy(connection, lake))["remove orphan vectors of space 1"] == 1
    assert held(connection, space, "one", "two") == {"two"}


def test_while_a_run_embeds_no_vector_is_removed(connection, lake, space, database, monkeypatch):
    monkeypatch.setattr("rag_pipeline.index.orphans._PATIENCE_S", 0.05)
    store_vectors(connection, space, vectors("one"))
    with connected(database) as other, counting_on_vectors(other):
        report = tidy(connection, lake)
    assert "put off: remove orphan vectors" in done(report)
    assert held(connection, space, "one") == {"one"}
    assert done(tidy(connection, lake))["remove orphan vectors of space 1"] == 1


def test_a_run_that_begins_to_embed_waits_until_the_removal_has_ended(connection, lake, space, database):
    """Else it would see a vector that is gone when it writes the document."""
    store_vectors(connection, space, vectors("one"))
    seen: list[set[object]] = []

    def embed() -> None:
        with connected(database) as other, counting_on_vectors(other):
            seen.append(SpaceVectors(other, space, tenant="acme").known([text_hash("one")]))

    class Slow(Lake):
        def repositories(self, stage: str) -> list[tuple[str, str]]:
            if stage == "chunks" and not run.is_alive() and not seen:
                run.start()
                while not waits():
                    pass
            return super().repositories(stage)

    def waits() -> bool:
        with connected(database) as third:
            found = third.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
            return bool(found.fetchone()[0])

    run = threading.Thread(target=embed)
    tidy(connection, Slow(lake._root))
    run.join(timeout=30)
    assert seen == [set()]


def tombstone(connection: Connection, name: str = "gone.md") -> Entry:
    dead = entry(name, deleted=True)
    write(connection, dead)
    return dead


def tombstones(connection: Connection) -> int:
    return connection.execute("SELECT count(*) FROM rag.documents WHERE deleted").fetchone()[0]


def test_a_tombstone_goes_when_its_time_is_over(connection, lake):
    tombstone(connection)
    write(connection, entry("here.md", "one"))
    assert done(tidy(connection, lake, now=NOW + timedelta(days=399))) == {}
    assert done(tidy(connection, lake, now=LATER, tombstones_days=0)) == {}
    assert done(tidy(connection, lake, now=LATER))["remove tombstones"] == 1
    assert connection.execute("SELECT path FROM rag.documents").fetchall() == [("here.md",)]


def test_a_tombstone_stays_while_the_lake_could_bring_the_document_back(connection, lake):
    dead = tombstone(connection)
    put(lake, dead, part=Part(tenant="acme", repository="renamed", day=DAY))
    put(lake, entry("gone.md", "one", at=0))
    report = tidy(connection, lake, now=LATER)
    assert "of 1 the lake holds one" in next(a.why for a in report.actions if a.what == "keep tombstones")
    assert tombstones(connection) == 1
    lake.remove("documents", PART)
    assert done(tidy(connection, lake, now=LATER))["remove tombstones"] == 1


def test_a_tombstone_stays_while_a_raw_part_shows_the_item(connection, lake):
    d = tombstone(connection).document
    item = SourceItem(
        tenant=d.tenant, source_type=d.source_type, source_id=d.source_id, repository=d.repository, day=DAY,
        source_updated_at=d.source_updated_at, observed_at=d.observed_at, content=b"alive",
    )  # fmt: skip
    with lake.writer("raw_docs", PART, schema=ITEMS) as writer:
        for batch in to_batches([item], ITEMS):
            writer.add(batch)
    assert "remove tombstones" not in done(tidy(connection, lake, now=LATER))


def test_a_tombstone_of_a_repository_whose_history_can_be_read_again_stays(connection, lake):
    tombstone(connection)
    git = Readable(tenant="acme", repository="handbook", source_types=("docs", "code"))
    report = tidy(connection, lake, now=LATER, readable=(git,))
    assert "of 1 git can show an older state" in report.actions[0].why
    assert tombstones(connection) == 1


def test_records_of_what_is_settled_or_gone_go_and_all_others_stay(connection, lake, space):
    put(lake, entry("a.md", "one"))
    store_vectors(connection, space, vectors("one"))
    index(connection, lake, space)
    for name, resolved in (("open", None), ("new", NOW), ("old", NOW - timedelta(days=91))):
        connection.execute(
            "INSERT INTO rag.ingestion_failures VALUES ('acme', 'docs', %s, 'chunks', 'handbook', %s, %s, 'broken', 1,"
            " %s, %s, %s)", (name, DAY, NOW, NOW, NOW, resolved),
        )  # fmt: skip
    connection.execute(
        "INSERT INTO rag.checked_parts VALUES ('chunks', 'acme', 'handbook', %s, 'f', %s),"
        " ('chunks', 'acme', 'removed', %s, 'f', %s)", (DAY, NOW, DAY, NOW),
    )  # fmt: skip
    found = done(tidy(connection, lake, now=NOW + timedelta(days=2)))
    assert found["forget quarantined items"] == found["forget records of parts"] == 1
    assert [r[0] for r in connection.execute("SELECT source_id FROM rag.ingestion_failures ORDER BY 1")] == [
        "new", "open",
    ]  # fmt: skip
    assert connection.execute("SELECT count(*) FROM rag.stored_parts").fetchone() == (1,)


def test_a_lake_that_shows_nothing_makes_nothing_forgotten(connection, lake, tmp_path):
    connection.execute("INSERT INTO rag.checked_parts VALUES ('chunks', 'acme', 'handbook', %s, 'f', %s)", (DAY, NOW))
    assert done(tidy(connection, Lake(str(tmp_path / "nowhere")), now=LATER)) == {}


def test_temporary_files_of_a_killed_run_go_and_those_of_a_running_one_stay(connection, lake, tmp_path):
    put(lake, entry("a.md", "one"))
    folder = next(tmp_path.rglob("2024-05-01.parquet")).parent
    old, new = (folder / f"2024-05-01.parquet.{digit * 32}.tmp" for digit in "ab")
    for path, hours in ((old, 25), (new, 1)):
        path.write_bytes(b"half a file")
        moment = (NOW - timedelta(hours=hours)).timestamp()
        os.utime(path, (moment, moment))
    assert "remove 1 temporary files" in done(tidy(connection, lake))
    assert (old.exists(), new.exists()) == (False, True)
    assert lake.fingerprint("chunks", PART) == "f1"


def test_many_segments_become_one_and_few_are_left(connection, lake):
    for n in range(4):
        write(connection, entry(f"{n}.md", f"text {n}"))
    assert "merge segments" not in done(tidy(connection, lake, most_segments=4))
    assert done(tidy(connection, lake, most_segments=3))["merge segments"] == 4
    assert connection.execute("SELECT count(*) FROM rag.segments").fetchone() == (1,)


def test_a_table_with_many_dead_rows_is_vacuumed(connection, lake):
    connection.execute("ALTER TABLE rag.usage SET (autovacuum_enabled = false)")
    connection.execute(
        "INSERT INTO rag.usage (used_at, tenant_id, repository, run_id, purpose, provider, model)"
        " SELECT now(), 'acme', '', 'r', 'p', 'p', 'm' FROM generate_series(1, 3000)"
    )
    connection.execute("ANALYZE rag.usage")
    assert "vacuum usage" not in done(tidy(connection, lake))
    connection.execute("DELETE FROM rag.usage WHERE usage_id % 2 = 0")
    report = tidy(connection, lake)
    assert "1,500 dead rows beside" in next(a.why for a in report.actions if a.what == "vacuum usage")
    assert next(t.dead for t in tables(connection) if t.name == "usage") == 0
    assert "vacuum usage" not in done(tidy(connection, lake))


def test_an_index_that_is_mostly_waste_is_built_again(connection, lake):
    connection.execute(
        "INSERT INTO rag.usage (used_at, tenant_id, repository, run_id, purpose, provider, model)"
        " SELECT now(), 'acme', '', md5(n::text), 'p', 'p', 'm' FROM generate_series(1, 20000) AS n"
    )
    connection.execute("VACUUM ANALYZE rag.usage")
    assert not [what for what in done(tidy(connection, lake, min_index_bytes=0)) if what.startswith("rebuild")]
    connection.execute("DELETE FROM rag.usage WHERE usage_id % 20 > 0")
    report = tidy(connection, lake, min_index_bytes=0)
    rebuilt = next(action for action in report.actions if action.what == "rebuild usage_run")
    assert rebuilt.bytes > 500_000 and "% of its pages were waste" in rebuilt.why
    assert not [what for what in done(tidy(connection, lake, min_index_bytes=0)) if what.startswith("rebuild")]


def test_an_invalid_index_is_built_again_and_what_a_killed_rebuild_left_is_removed(connection, lake, space):
    store_vectors(connection, space, vectors("one"))
    write(connection, entry("a.md", "one"))
    tidy(connection, lake)
    connection.execute("CREATE INDEX usage_run_ccnew ON rag.usage (run_id)")
    connection.execute(
        "UPDATE pg_index SET indisvalid = false WHERE indexrelid IN"
        " ('rag.usage_run_ccnew'::regclass, 'rag.usage_tenant'::regclass, 'rag.vectors_1_hnsw'::regclass)"
    )
    assert not has_graph(connection, space)
    found = done(tidy(connection, lake))
    assert {"drop usage_run_ccnew", "rebuild usage_tenant", "rebuild vectors_1_hnsw"} <= set(found)
    assert has_graph(connection, space)
    assert connection.execute("SELECT count(*) FROM pg_index WHERE NOT indisvalid").fetchone() == (0,)
    assert done(tidy(connection, lake)) == {}


def test_an_index_that_somebody_holds_is_put_off(connection, lake, database, monkeypatch):
    monkeypatch.setattr("rag_pipeline.index.upkeep._PATIENCE_S", 0.05)
    connection.execute("UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'rag.usage_run'::regclass")
    with connected(database) as other, other.transaction():
        other.execute("LOCK TABLE rag.usage IN SHARE UPDATE EXCLUSIVE MODE")
        assert "put off: rebuild usage_run" in done(tidy(connection, lake))
    assert "rebuild usage_run" in done(tidy(connection, lake))


def test_the_missing_graph_of_the_active_space_is_built(connection, lake, space):
    store_vectors(connection, space, vectors("one"))
    write(connection, entry("a.md", "one"))
    assert "build vectors_1_hnsw" in done(tidy(connection, lake))
    assert has_graph(connection, space)


def test_a_graph_of_mostly_removed_vectors_is_built_again(connection, lake, space):
    rng = np.random.default_rng(1)
    texts = [f"text {n}" for n in range(1200)]
    store_vectors(connection, space, dict(zip(texts, rng.normal(size=(1200, 8)), strict=True)))
    write(connection, entry("a.md", *texts[:100]))
    tidy(connection, lake, min_index_bytes=0)  # removes 1,100 and builds the graph over 100
    store_vectors(connection, space, dict(zip(texts, rng.normal(size=(1200, 8)), strict=True)))
    before = connection.execute("SELECT pg_relation_size('rag.vectors_1_hnsw')").fetchone()[0]
    assert before == pytest.approx(graph_bytes(1200, dimensions=8, graph="vectors"), rel=0.1)
    report = tidy(connection, lake, min_index_bytes=0)
    rebuilt = next(action for action in report.actions if action.what == "rebuild vectors_1_hnsw")
    assert rebuilt.why in ("89% of its pages were waste", "90% of its pages were waste")
    after = connection.execute("SELECT pg_relation_size('rag.vectors_1_hnsw')").fetchone()[0]
    assert after == pytest.approx(8192 + graph_bytes(100, dimensions=8, graph="vectors"), rel=0.2)


def test_two_at_once_are_one(connection, lake, database):
    with connected(database) as other:
        other.execute("SELECT pg_advisory_lock(%s)", (0x5241474D,))
        assert [action.why for action in tidy(connection, lake).actions] == ["another maintenance is at work"]
    assert tidy(connection, lake).actions == []


def test_a_step_that_fails_does_not_hold_up_the_others(connection, lake, space):
    class Damaged(Lake):
        def read(self, stage, part, *, columns=None):
            raise PermanentError(f"{stage} is damaged")

    put(lake, entry("a.md", "one"))
    store_vectors(connection, space, vectors("one"))
    connection.execute("UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'rag.usage_run'::regclass")
    report = tidy(connection, Damaged(lake._root))
    assert report.problems == ["orphan vectors: chunks is damaged"]
    assert "rebuild usage_run" in {action.what for action in report.actions}
    assert held(connection, space, "one") == {"one"}
