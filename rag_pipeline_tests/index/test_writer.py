"""The writer: newer wins in any order, the same again writes nothing, a document and its chunks change together."""

from __future__ import annotations

import dataclasses
import random
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rag_pipeline.index.database import Connection, connected
from rag_pipeline.index.writer import Entry, IndexWriter
from rag_pipeline.lexical.analyzer import count_terms
from rag_pipeline.model import text_hash
from rag_pipeline_tests.knowledge import NOW, chunks_of, entry, write


def documents(connection: Connection) -> dict[str, tuple[object, ...]]:
    """Of each document: the row's version, when it changed, whether it is deleted, its title."""
    rows = connection.execute("SELECT source_id, xmin::text, source_updated_at, deleted, title FROM rag.documents")
    return {row[0]: row[1:] for row in rows}


def chunks(connection: Connection) -> dict[str, str]:
    """The row's version of each chunk, by its text."""
    return dict(connection.execute("SELECT text, xmin::text FROM rag.chunks ORDER BY document_id, position"))


def shown(connection: Connection) -> list[tuple[object, ...]]:
    """All that a reader could tell two indexes apart by."""
    return connection.execute(
        "SELECT d.document_id, d.source_updated_at, d.deleted, d.state_hash, d.title, to_jsonb(c) - 'number' "
        "FROM rag.documents AS d LEFT JOIN rag.chunks AS c USING (document_id) ORDER BY 1, c.position"
    ).fetchall()


def test_the_first_write_stores_documents_and_chunks(connection):
    report = write(connection, entry("a.md", "one", "two", title="A"), entry("b.md", "one"))
    assert (report.documents, report.chunks, report.chunks_removed, report.rows) == (2, 3, 0, 5)
    assert report.documents_changed == ["handbook:a.md", "handbook:b.md"]
    assert documents(connection)["handbook:a.md"][3] == "A"
    assert list(chunks(connection)) == ["one", "two"] or len(chunks(connection)) == 2
    row = connection.execute(
        "SELECT tenant_id, heading_path, start_char, end_char, start_line FROM rag.chunks WHERE text = 'two'"
    ).fetchone()
    assert row == ("acme", ["Top", "Part 1"], 5, 8, 3)


def test_writing_the_same_again_writes_no_row_and_locks_none(connection):
    entries = [entry("a.md", "one", "two"), entry("b.md", "three"), entry("gone.md", deleted=True)]
    write(connection, *entries)
    before = shown(connection)
    with connection.transaction():
        later = [dataclasses.replace(e, document=dataclasses.replace(e.document, observed_at=NOW)) for e in entries]
        report = write(connection, *later)
        # Any row that is written or locked gives the transaction a number.
        assert connection.execute("SELECT pg_current_xact_id_if_assigned()").fetchone() == (None,)
    assert (report.rows, report.unchanged, report.documents_changed) == (0, 3, [])
    assert shown(connection) == before


def test_an_edit_changes_only_the_chunks_concerned(connection):
    write(connection, entry("a.md", "one", "two", "three"), entry("b.md", "other"))
    before = chunks(connection)
    report = write(connection, entry("a.md", "one", "TWO", "three", at=2))
    after = chunks(connection)
    assert (report.documents, report.chunks, report.chunks_removed) == (1, 1, 1)
    assert after.keys() == {"one", "TWO", "three", "other"}
    assert {text: after[text] for text in ("one", "three", "other")} == {
        text: before[text] for text in ("one", "three", "other")
    }


def test_a_chunk_that_only_moves_keeps_its_identity(connection):
    write(connection, entry("a.md", "one", "two"))
    report = write(connection, entry("a.md", "zero", "one", "two", at=2))
    assert (report.chunks, report.chunks_removed) == (3, 0)
    rows = connection.execute("SELECT text, position, start_line FROM rag.chunks ORDER BY position").fetchall()
    assert rows == [("zero", 0, 1), ("one", 1, 3), ("two", 2, 5)]


def test_a_chunk_that_is_embedded_as_something_else_has_the_vector_of_that(connection):
    """The function around it was renamed: its text, and so its id, stay."""
    write(connection, embedded_under(entry("a.py", "return 1"), "before"))
    renamed = embedded_under(entry("a.py", "return 1", at=2), "after")
    report = write(connection, renamed)
    assert (report.documents, report.chunks, report.chunks_removed) == (1, 1, 0)
    assert connection.execute("SELECT text_hash FROM rag.chunks").fetchone() == (renamed.chunks[0].text_hash,)


def test_metadata_alone_changes_the_document_and_no_chunk(connection):
    write(connection, entry("a.md", "one", metadata={"author": "Ada"}))
    before = chunks(connection)
    report = write(connection, entry("a.md", "one", metadata={"author": "Grace"}, seen=2))
    assert (report.documents, report.chunks, report.chunks_removed) == (1, 0, 0)
    assert chunks(connection) == before


def test_another_chunking_rewrites_a_document_whose_source_did_not_change(connection):
    write(connection, entry("a.md", "one two"))
    other = entry("a.md", "one two")
    split = dataclasses.replace(other, chunks=chunks_of(other.document, ["one", "two"]))
    report = write(connection, split, fingerprint="v2")
    assert (report.documents, report.chunks, report.chunks_removed) == (1, 2, 1)
    assert write(connection, split, fingerprint="v2").rows == 0


def test_a_tombstone_removes_the_chunks_and_keeps_the_row(connection):
    write(connection, entry("a.md", "one", "two"))
    report = write(connection, entry("a.md", deleted=True, at=2))
    assert (report.documents, report.tombstones, report.chunks_removed) == (1, 1, 2)
    assert documents(connection)["handbook:a.md"][2] is True
    assert chunks(connection) == {}


def test_an_older_state_that_comes_late_changes_nothing(connection):
    write(connection, entry("a.md", "new", at=3), entry("b.md", deleted=True, at=3))
    before = shown(connection)
    report = write(connection, entry("a.md", "old", at=2, seen=9), entry("b.md", "alive", at=2, seen=9))
    assert (report.rows, report.superseded) == (0, 2)
    assert shown(connection) == before


def test_what_was_deleted_can_come_back(connection):
    write(connection, entry("a.md", deleted=True, at=2))
    write(connection, entry("a.md", "again", at=3))
    assert documents(connection)["handbook:a.md"][2] is False
    assert chunks(connection).keys() == {"again"}


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_of_two_states_of_the_same_time_the_later_observed_stays(connection, order):
    states = [entry("a.md", "first look", at=1, seen=1), entry("a.md", "second look", at=1, seen=2)]
    for index in order:
        write(connection, states[index])
    assert chunks(connection).keys() == {"second look"}


def test_of_several_states_in_one_batch_the_newest_is_written(connection):
    report = write(
        connection, entry("a.md", "two", at=2), entry("a.md", "three", at=3), entry("a.md", "one", at=1),
        entry("b.md", "same time"), entry("b.md", "same time, said last"),
    )  # fmt: skip
    assert (report.documents, report.superseded) == (2, 3)
    assert chunks(connection).keys() == {"three", "same time, said last"}


def test_a_document_and_its_chunks_change_together_or_not_at_all(connection):
    write(connection, entry("a.md", "one", title="Before"), entry("b.md", "other"))
    before = shown(connection)
    broken = entry("a.md", "two", "three", at=2, title="After")
    broken.chunks[1] = dataclasses.replace(broken.chunks[1], position=None)  # type: ignore[arg-type,index]
    writer = IndexWriter(connection, fingerprint="v1", now=NOW)
    with pytest.raises(psycopg.errors.NotNullViolation):
        writer.write([entry("b.md", "changed", at=2), broken])
    assert shown(connection) == before
    # The same writer goes on.
    assert writer.write([entry("b.md", "changed", at=2)]).documents == 1


def test_characters_that_postgresql_refuses_are_replaced_one_for_one(connection):
    odd = entry("a.md", "a\0b \ud800 c", title="t\0", metadata={"k\0": ["v\0", {"n": float("nan")}], "ok": "\\u0000"})
    write(connection, odd)
    assert chunks(connection).keys() == {"a\ufffdb \ufffd c"}
    row = connection.execute("SELECT title, metadata FROM rag.documents").fetchone()
    assert row == ("t\ufffd", {"k\ufffd": ["v\ufffd", {"n": None}], "ok": "\\u0000"})
    assert write(connection, odd).rows == 0


def test_sql_and_copy_metacharacters_are_only_text(connection):
    text = '\'; DROP TABLE rag.chunks; --\t\\N\n\\.\r\n{"a", NULL} $1 %s %(tenant)s 🎉'
    write(connection, entry("a'; --.md", text, tenant="o'brien", title=text, metadata={text: text}))
    assert chunks(connection).keys() == {text}
    assert documents(connection)["handbook:a'; --.md"][3] == text


def test_more_documents_than_one_batch_holds(connection):
    entries = [entry(f"{n}.md", f"text {n}") for n in range(1100)]
    report = write(connection, *entries)
    assert (report.documents, report.chunks, len(report.documents_changed)) == (1100, 1100, 20)
    assert write(connection, *entries).unchanged == 1100


def test_the_same_item_of_two_tenants_is_two_documents(connection):
    write(connection, entry("a.md", "same", tenant="acme"), entry("a.md", "same", tenant="globex"))
    rows = connection.execute("SELECT tenant_id, count(*) FROM rag.chunks GROUP BY 1 ORDER BY 1").fetchall()
    assert rows == [("acme", 1), ("globex", 1)]


def state(name: str, at: int, seen: int, deleted: bool) -> Entry:
    """The state of a source at a time. `steady` says the same however often it is read, the others change silently."""
    word = f"{name} at {at}" if name == "steady" else f"{name} at {at} seen {seen}"
    if deleted and name != "steady":
        return entry(name, deleted=True, at=at, seen=seen, title=word)
    return embedded_under(entry(name, "always", word, word, at=at, seen=seen, title=word), word)


def embedded_under(made: Entry, name: str) -> Entry:
    """The same, but that its chunks are embedded as what stands under this name."""
    above = f"{name}\n\n"
    named = [dataclasses.replace(c, context=above, text_hash=text_hash(above + c.text)) for c in made.chunks]
    return dataclasses.replace(made, chunks=named)


@given(
    states=st.dictionaries(
        st.tuples(st.sampled_from(["steady", "edited", "deleted"]), st.integers(0, 3), st.integers(0, 3)),
        st.booleans(), min_size=1, max_size=10,
    ),
    data=st.data(),
)  # fmt: skip
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_order_and_any_repetition_of_writes_ends_in_the_same_rows(connection, states, data):
    writes = [state(*key, deleted) for key, deleted in states.items()]
    newest = {}
    for (name, at, seen), made in zip(states, writes, strict=True):
        if name not in newest or newest[name][0] <= (at, seen):
            newest[name] = ((at, seen), made)
    connection.execute("TRUNCATE rag.documents CASCADE")
    write(connection, *(made for _, made in newest.values()))
    expected = shown(connection)

    connection.execute("TRUNCATE rag.documents CASCADE")
    repeated = data.draw(st.permutations([*writes, *data.draw(st.lists(st.sampled_from(writes), max_size=5))]))
    while repeated:
        size = data.draw(st.integers(1, len(repeated)))
        write(connection, *repeated[:size])
        repeated = repeated[size:]

    assert shown(connection) == expected


def test_a_document_that_another_writer_brings_first_is_looked_at_again(connection, monkeypatch):
    """It was not there when the writer looked, and is there when it writes: newer wins all the same."""
    write(connection, entry("a.md", "newer", at=5), entry("b.md", "older", at=1))
    writer = IndexWriter(connection, fingerprint="v1", now=NOW)
    blind = IndexWriter._changed

    def looked_too_early(self, batch, states, report):
        changed, _ = blind(self, batch, {}, report)
        return changed, list(changed)

    monkeypatch.setattr(IndexWriter, "_changed", looked_too_early)
    report = writer.write([entry(name, "middle", at=3) for name in ("a.md", "b.md", "c.md")])
    assert (report.documents, report.superseded) == (2, 1)
    rows = connection.execute(
        "SELECT source_id, text FROM rag.chunks JOIN rag.documents USING (document_id) ORDER BY 1"
    )
    assert rows.fetchall() == [("handbook:a.md", "newer"), ("handbook:b.md", "middle"), ("handbook:c.md", "middle")]


def test_new_documents_among_others_are_written_as_the_others_are(connection):
    """Many new ones go another way than those that the index knows: rows, counts and what words find are the same."""
    known = [entry(f"known {n}.md", f"old {n}") for n in range(20)]
    write(connection, *known)
    changed = [entry(f"known {n}.md", f"changed {n}", at=2) for n in range(20)]
    new = [entry(f"new {n}.md", f"words {n}", "shared", metadata={"links": [f"acme/app#{n}"]}) for n in range(150)]
    report = write(connection, *changed, *new, entry("gone.md", deleted=True))
    assert (report.documents, report.chunks, report.chunks_removed) == (171, 320, 20)
    assert (report.links, report.tombstones, report.superseded) == (150, 1, 0)
    assert connection.execute("SELECT count(*), count(DISTINCT number) FROM rag.chunks").fetchone() == (320, 320)
    assert write(connection, *changed, *new).rows == 0
    added, removed = connection.execute("SELECT sum(chunks), sum(removed_chunks) FROM rag.segments").fetchone()
    assert added - removed == 320
    (term,) = count_terms("shared")
    found = connection.execute("SELECT sum(chunks) - sum(removed) FROM rag.postings WHERE term = %s", (term,))
    assert found.fetchone() == (150,)


def test_two_writers_of_the_same_documents_neither_deadlock_nor_mix_states(database):
    rounds, names = 8, [f"{n}.md" for n in range(30)]
    start = Barrier(2)

    def run(seed: int) -> None:
        order = random.Random(seed)
        with connected(database) as connection:
            writer = IndexWriter(connection, fingerprint="v1", now=NOW)
            for at in range(rounds):
                start.wait(60)
                # Some that both have written before, some that are new to both.
                both = [*names, *(f"{at} {name}" for name in names)]
                shuffled = order.sample(both, len(both))
                writer.write([entry(name, "shared", f"by {seed}", f"at {at}", at=at, seen=seed) for name in shuffled])

    with ThreadPoolExecutor(2) as pool:
        futures = [pool.submit(run, seed) for seed in (1, 2)]
    assert [future.exception() for future in futures] == [None, None]
    with connected(database) as connection:
        assert set(chunks(connection)) == {"shared", "by 2", *(f"at {at}" for at in range(rounds))}
        assert connection.execute("SELECT count(*) FROM rag.chunks").fetchone() == (3 * (rounds + 1) * len(names),)
