"""What tells whoever caches answers that the index has changed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from rag_pipeline.index.changes import compact_changes, index_state, note_changes
from rag_pipeline.index.database import Connection, connected
from rag_pipeline.index.forgetting import memories, remembered, remove_documents
from rag_pipeline.index.spaces import activate
from rag_pipeline_tests.knowledge import entry, space_of, write


@pytest.fixture
def connection(connection: Connection) -> Connection:
    write(connection, entry("a.md", "one"), entry("b.md", "two", tenant="globex"))
    return connection


def test_writing_a_document_changes_the_state_of_its_tenant_alone(connection):
    before, others = index_state(connection, "acme"), index_state(connection, "globex")
    assert index_state(connection, "acme") == before
    write(connection, entry("a.md", "one", "more", at=2))
    assert index_state(connection, "acme") != before
    assert index_state(connection, "globex") == others


def test_an_unchanged_document_changes_nothing(connection):
    before = index_state(connection, "acme")
    write(connection, entry("a.md", "one"))
    assert index_state(connection, "acme") == before


def test_tombstones_and_removals_change_the_state(connection):
    before = index_state(connection, "acme")
    write(connection, entry("a.md", at=2, deleted=True))
    deleted = index_state(connection, "acme")
    assert deleted != before
    remove_documents(connection, [entry("a.md").document.document_id])
    assert index_state(connection, "acme") not in (before, deleted)


def test_a_promotion_changes_the_state_of_everybody(connection):
    first = space_of(connection)
    activate(connection, first)
    before = {tenant: index_state(connection, tenant) for tenant in ("acme", "globex", "nobody")}
    activate(connection, space_of(connection, model="other"))
    after = {tenant: index_state(connection, tenant) for tenant in before}
    assert all(after[tenant] != before[tenant] for tenant in before)
    # Back again is another state, too: meanwhile the first space may have been fed.
    activate(connection, first)
    assert all(index_state(connection, tenant) not in (before[tenant], after[tenant]) for tenant in before)


def test_a_change_that_is_committed_late_counts(connection, database):
    with connected(database) as slow, slow.transaction():
        write(slow, entry("slow.md", "early"))
        write(connection, entry("quick.md", "late"))
        before = index_state(connection, "acme")
    assert index_state(connection, "acme") != before


def test_what_no_trigger_sees_can_be_noted(connection):
    before, others = index_state(connection, "acme"), index_state(connection, "globex")
    note_changes(connection, ["acme", "acme"])
    assert index_state(connection, "acme").changes == before.changes + 1
    assert index_state(connection, "globex") == others


def test_compacting_leaves_one_row_a_tenant_and_then_nothing_to_do(connection):
    for hour in range(2, 6):
        write(connection, entry("a.md", f"text {hour}", at=hour))
    before = index_state(connection, "acme")
    assert compact_changes(connection) > 0
    assert index_state(connection, "acme").changes == index_state(connection, "globex").changes == 1
    assert index_state(connection, "acme").newest == before.newest
    assert compact_changes(connection) == 0


def test_maintenance_leaves_what_is_young(connection):
    write(connection, entry("a.md", "newer", at=2))
    now = datetime.now(UTC)
    assert compact_changes(connection, before=now - timedelta(days=1)) == 0
    assert compact_changes(connection, before=now + timedelta(days=1)) > 0


def test_compacting_does_not_wait_for_another_one(connection, database):
    for hour in range(2, 6):
        write(connection, entry("a.md", f"text {hour}", at=hour))
    with connected(database) as other, other.transaction():
        assert compact_changes(other) > 0
        assert compact_changes(connection) == 0


@hypothesis_settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(st.sampled_from(["write", "other", "compact", "look"]), max_size=12))
def test_no_state_comes_back(database, steps):
    """Whatever happens in whatever order: after a change the state is none that was ever there before."""
    with connected(database) as connection:
        seen = {index_state(connection, "acme")}
        for step in steps:
            if step == "compact":
                compact_changes(connection)
            elif step != "look":
                note_changes(connection, ["acme" if step == "write" else "globex"])
            state = index_state(connection, "acme")
            assert step != "write" or state not in seen
            assert step not in ("other", "look") or state in seen
            seen.add(state)


def test_a_forgotten_tenant_leaves_no_row(connection):
    assert ("acme", "") in remembered(connection)
    assert memories(connection, "acme", None, remove=True)["index_changes"] > 0
    assert memories(connection, "acme", None, remove=False)["index_changes"] == 0
    assert index_state(connection, "globex").changes == 1
    assert memories(connection, "globex", "handbook", remove=True)["index_changes"] == 0
    assert index_state(connection, "globex").changes == 1


def test_the_reader_of_searches_sees_no_changes(connection):
    with connection.transaction(), pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute("SET LOCAL ROLE rag_reader")
        connection.execute("SELECT FROM rag.index_changes")
