"""Links follow their document: derived from its metadata, written in its transaction, gone with it."""

from __future__ import annotations

import dataclasses

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rag_pipeline.index.database import Connection
from rag_pipeline.index.links import links_of
from rag_pipeline.index.writer import Entry
from rag_pipeline.lake.schemas import DOCUMENTS, documents_of, to_batches
from rag_pipeline_tests.knowledge import entry, thread_entry, write

PULL = {
    "state": "merged", "merge_commit": "3fa9", "closes": ["acme/app#1"], "links": ["acme/app#2", "else/where#3"],
    "files": ["src/a.py", "src/b c.py"],
}  # fmt: skip
LINKS = {
    ("is", "acme/app#4"), ("merged_as", "acme/app@3fa9"), ("closes", "acme/app#1"), ("mentions", "acme/app#2"),
    ("mentions", "else/where#3"), ("changes", "handbook:src/a.py"), ("changes", "handbook:src/b c.py"),
}  # fmt: skip


def stored(connection: Connection) -> dict[tuple[str, str], tuple[object, ...]]:
    """Kind and target of each link, with tenant, scope and the row's version."""
    rows = connection.execute("SELECT kind, target, tenant_id, scope, xmin::text FROM rag.links").fetchall()
    return {(row[0], row[1]): row[2:] for row in rows}


def test_a_pull_request_says_what_it_closes_mentions_changes_and_became():
    assert links_of(thread_entry(4, **PULL).document) == LINKS


def test_the_commit_of_githubs_own_attempt_at_merging_is_no_link():
    assert links_of(thread_entry(4, state="open", merge_commit="3fa9").document) == {("is", "acme/app#4")}


def test_documents_that_say_nothing_of_others_have_no_links():
    assert links_of(entry("a.md", "text", metadata={"front_matter": {"links": ["acme/app#1"]}}).document) == frozenset()


def test_a_tombstone_has_no_links():
    assert links_of(thread_entry(4, deleted=True, **PULL).document) == frozenset()


@pytest.mark.parametrize("odd", ["acme/app#1", 7, None, {"a": "b"}, [[], None, 7, {}, "", "a\0b", "\ud800", "é" * 800]])
def test_odd_metadata_gives_no_links(odd):
    document = thread_entry(4, closes=odd, links=odd, merge_commit=odd, state="merged").document
    assert links_of(document) <= {("is", "acme/app#4"), ("merged_as", f"acme/app@{odd}")}
    assert links_of(dataclasses.replace(document, metadata={"reference": odd, "closes": ["x#1"]})) >= {
        ("closes", "x#1")
    }


def test_links_are_the_same_from_the_lake():
    document = thread_entry(4, **PULL).document
    (batch,) = to_batches([document], DOCUMENTS)
    assert links_of(next(documents_of(batch))) == links_of(document)


def test_links_are_written_with_their_document_and_not_again(connection):
    report = write(connection, thread_entry(4, **PULL), entry("a.md", "one"))
    assert (report.links, report.links_removed, report.rows) == (7, 0, 2 + 2 + 7)
    assert {link: row[:2] for link, row in stored(connection).items()} == dict.fromkeys(LINKS, ("acme", None))
    before = stored(connection)
    assert write(connection, thread_entry(4, **PULL)).rows == 0
    # A document that is written again, as by another chunking, leaves its links alone.
    report = write(connection, thread_entry(4, **PULL), fingerprint="v2")
    assert (report.documents, report.links, report.links_removed, report.rows) == (1, 0, 0, 1)
    assert stored(connection) == before


def test_an_edit_writes_only_the_links_concerned(connection):
    write(connection, thread_entry(4, **PULL))
    before = stored(connection)
    report = write(connection, thread_entry(4, at=2, **PULL | {"closes": ["acme/app#9"]}))
    assert (report.links, report.links_removed) == (1, 1)
    after = stored(connection)
    assert after.keys() == LINKS - {("closes", "acme/app#1")} | {("closes", "acme/app#9")}
    assert {link: row for link, row in after.items() if link in LINKS} == {
        link: before[link] for link in after if link in LINKS
    }


def test_a_tombstone_removes_the_links_and_a_return_brings_them_back(connection):
    write(connection, thread_entry(4, **PULL), thread_entry(5))
    report = write(connection, thread_entry(4, at=2, deleted=True))
    assert (report.links, report.links_removed) == (0, 7)
    assert stored(connection).keys() == {("is", "acme/app#5")}
    assert write(connection, thread_entry(4, at=3, **PULL)).links == 7


def test_an_older_state_that_comes_late_changes_no_link(connection):
    write(connection, thread_entry(4, at=3, **PULL), thread_entry(5, at=3, deleted=True))
    before = stored(connection)
    write(connection, thread_entry(4, at=2, closes=["acme/app#8"]), thread_entry(5, at=2, closes=["acme/app#8"]))
    assert stored(connection) == before


def test_links_have_the_scope_of_their_document(connection):
    write(connection, thread_entry(4, **PULL, scope="user:ada"))
    assert {row[:2] for row in stored(connection).values()} == {("acme", "user:ada")}
    report = write(connection, thread_entry(4, at=2, **PULL))
    assert (report.links, report.links_removed) == (7, 0)
    assert {row[:2] for row in stored(connection).values()} == {("acme", None)}


def test_links_change_with_their_document_or_not_at_all(connection):
    write(connection, thread_entry(4, **PULL))
    before = stored(connection)
    broken = thread_entry(4, "two", at=2)
    broken.chunks[0] = dataclasses.replace(broken.chunks[0], position=None)  # type: ignore[arg-type,index]
    with pytest.raises(psycopg.errors.NotNullViolation):
        write(connection, broken)
    assert stored(connection) == before


def test_the_longest_target_fits_beside_the_longest_tenant(connection):
    # Random, so that no compression makes it fit.
    path = "".join(chr(0x4E00 + (n * 7919) % 20_000) for n in range(496))
    tenant = "".join(chr(0x4E00 + (n * 104_729) % 20_000) for n in range(200))
    assert write(connection, thread_entry(4, files=[path, path + "longer"], tenant=tenant)).links == 2


def version(at: int, seen: int, closes: frozenset[int], scope: str | None, deleted: bool) -> Entry:
    """A state of one pull request that closes these issues."""
    targets = [f"acme/app#{number}" for number in sorted(closes)]
    return thread_entry(4, at=at, seen=seen, closes=targets, scope=scope, deleted=deleted)


@given(
    states=st.dictionaries(
        st.tuples(st.integers(0, 3), st.integers(0, 3)),
        st.tuples(st.frozensets(st.integers(1, 4)), st.sampled_from([None, "user:ada"]), st.booleans()),
        min_size=1, max_size=6,
    ),
    data=st.data(),
)  # fmt: skip
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_order_of_writes_ends_in_the_links_of_the_newest_state(connection, states, data):
    connection.execute("TRUNCATE rag.documents CASCADE")
    made = {age: version(*age, *what) for age, what in states.items()}
    for one in data.draw(st.permutations(list(made.values()))):
        write(connection, one)
    newest = made[max(made)].document
    assert stored(connection).keys() == links_of(newest)
    assert {row[1] for row in stored(connection).values()} <= {newest.scope}
