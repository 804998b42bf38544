"""Which space answers: what may be promoted, what a switch carries over, going back, and dropping."""

from __future__ import annotations

import threading
from datetime import timedelta

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rag_pipeline.errors import SpaceUnavailable
from rag_pipeline.index import promotion
from rag_pipeline.index.bookkeeping import SourceKey, advance, position, record_part, stored_parts
from rag_pipeline.index.database import Connection, connected
from rag_pipeline.index.graph import ensure_graph
from rag_pipeline.index.promotion import drop, promote, rollback, standing, writing
from rag_pipeline.index.spaces import (
    activate,
    active_space,
    live_texts,
    numbered_space,
    remember_config,
    resume,
    space_records,
    still_there,
)
from rag_pipeline.lake.store import Part
from rag_pipeline.model import DayRange, EmbeddingSpace, text_hash
from rag_pipeline_tests.databases import empty
from rag_pipeline_tests.knowledge import DAY, NOW, entry, space_of, store_vectors, write

TEXTS = ("install", "deploy", "monitor")
PART = Part(tenant="acme", repository="handbook", day=DAY)
KEY = SourceKey(tenant="acme", repository="handbook", source="git")


def as_good(candidate: EmbeddingSpace, active: EmbeddingSpace) -> list[str]:
    """A gate that finds nothing worse."""
    return []


def fill(connection: Connection, space: EmbeddingSpace, *texts: str) -> None:
    store_vectors(connection, space, {text: np.eye(8)[n % 8] for n, text in enumerate(texts)})


@pytest.fixture
def two(connection: Connection) -> tuple[EmbeddingSpace, EmbeddingSpace]:
    """An index of three texts in an active space, and a candidate that is complete."""
    active, candidate = space_of(connection, model="a"), space_of(connection, model="b")
    for space in (active, candidate):
        fill(connection, space, *TEXTS)
        ensure_graph(connection, space)
    write(connection, entry("a.md", *TEXTS))
    activate(connection, active)
    return active, candidate


def active_id(connection: Connection) -> int | None:
    space = active_space(connection)
    return space.space_id if space else None


def test_a_complete_candidate_is_promoted_and_the_times_are_kept(connection, two):
    _, candidate = two
    assert promote(connection, candidate.space_id, gate=as_good).status == "active"
    before, now = space_records(connection)
    assert (before.space.status, now.space.status) == ("retired", "active")
    assert before.activated_at is not None and before.retired_at == now.activated_at
    assert now.retired_at is None


def test_what_the_pipeline_knows_of_the_index_is_carried_over(connection, two):
    active, candidate = two
    advance(connection, KEY, active, fingerprint="f", to="commit", at=NOW, now=NOW)
    advance(connection, KEY, candidate, fingerprint="old", to="older", at=NOW - timedelta(days=9), now=NOW)
    record_part(connection, active, PART, stage="knowledge_index", fingerprint="p", now=NOW)
    record_part(connection, active, PART, stage="embeddings", fingerprint="v", now=NOW)
    promote(connection, candidate.space_id, gate=as_good)
    assert position(connection, KEY, candidate, fingerprint="f") == ("commit", NOW)
    days = DayRange(first=DAY, last=DAY)
    assert stored_parts(connection, candidate, days, stage="knowledge_index") == {PART: "p"}
    # Vectors in the lake are each space's own.
    assert stored_parts(connection, candidate, days, stage="embeddings") == {}


def test_a_candidate_that_lacks_texts_is_refused_with_what_to_run(connection, two):
    active, candidate = two
    write(connection, entry("b.md", "new", "newer"))
    with pytest.raises(SpaceUnavailable) as caught:
        promote(connection, candidate.space_id, gate=as_good)
    assert "lacks 2 of 5 texts: run `rag-pipeline spaces build 2`" in str(caught.value)
    assert "--force" in str(caught.value)
    assert active_id(connection) == active.space_id


def test_texts_of_a_deleted_document_are_not_missed(connection, two):
    _, candidate = two
    write(connection, entry("b.md", "new"))
    write(connection, entry("b.md", deleted=True, at=2))
    assert standing(connection, candidate).missing == 0
    assert promote(connection, candidate.space_id, gate=as_good).status == "active"


def test_force_accepts_missing_texts_and_lets_the_next_run_find_them(connection, two):
    active, candidate = two
    write(connection, entry("b.md", "new"))
    advance(connection, KEY, active, fingerprint="f", to="commit", at=NOW, now=NOW)
    promote(connection, candidate.space_id, gate=as_good, force=True)
    assert active_id(connection) == candidate.space_id
    assert position(connection, KEY, candidate, fingerprint="f") is None


def test_what_is_worse_is_refused_with_what_it_is_worse_at(connection, two):
    active, candidate = two
    with pytest.raises(SpaceUnavailable, match=r"is worse than 1: nDCG@10 of the vector leg fell; MRR fell"):
        promote(connection, candidate.space_id, gate=lambda *_: ["nDCG@10 of the vector leg fell", "MRR fell"])
    with pytest.raises(SpaceUnavailable, match="configure labelled questions, or promote it with --force"):
        promote(connection, candidate.space_id, gate=lambda *_: None)
    assert active_id(connection) == active.space_id
    assert promote(connection, candidate.space_id, gate=lambda *_: ["worse"], force=True).status == "active"


def test_the_gate_is_given_the_candidate_and_the_active_space(connection, two):
    asked = []
    promote(connection, 2, gate=lambda candidate, active: asked.append((candidate.model, active.model)) or [])
    assert asked == [("b", "a")]


@pytest.mark.parametrize("force", [False, True])
def test_a_space_without_vectors_or_graph_is_refused_even_when_forced(connection, two, force):
    third = space_of(connection, model="c")
    with pytest.raises(SpaceUnavailable, match="holds no vector yet: run `rag-pipeline spaces build 3`"):
        promote(connection, third.space_id, gate=as_good, force=force)
    fill(connection, third, *TEXTS)
    with pytest.raises(SpaceUnavailable, match="has no graph yet: run `rag-pipeline spaces build 3`"):
        promote(connection, third.space_id, gate=as_good, force=force)


def test_an_unknown_space_is_answered_with_those_there_are(connection, two):
    with pytest.raises(SpaceUnavailable, match=r"no embedding space 9: choose from 1 \(fake a, active\), 2 \(fake b,"):
        promote(connection, 9, gate=as_good)
    with pytest.raises(SpaceUnavailable, match="no embedding space 9"):
        drop(connection, 9)


def test_where_there_is_no_space_none_can_be_chosen(connection):
    with pytest.raises(SpaceUnavailable, match="there is no embedding space 1: none is made yet"):
        numbered_space(connection, 1)


def test_the_active_space_is_neither_promoted_nor_dropped(connection, two):
    with pytest.raises(SpaceUnavailable, match="is the active one already"):
        promote(connection, 1, gate=as_good)
    with pytest.raises(SpaceUnavailable, match="is the active one: promote another, or roll back"):
        drop(connection, 1)


def test_a_rollback_goes_back_and_a_second_one_takes_it_back(connection, two):
    active, candidate = two
    with pytest.raises(SpaceUnavailable, match="there is nothing to go back to"):
        rollback(connection)
    promote(connection, candidate.space_id, gate=as_good)
    assert rollback(connection).space_id == active.space_id
    assert rollback(connection).space_id == candidate.space_id


def test_a_rollback_says_what_is_missing_since_and_goes_on_when_it_is_filled(connection, two):
    active, candidate = two
    promote(connection, candidate.space_id, gate=as_good)
    fill(connection, candidate, "new")
    write(connection, entry("b.md", "new"))
    with pytest.raises(SpaceUnavailable, match=r"lacks 1 of 4 texts: run `rag-pipeline spaces build 1`, .*rollback"):
        rollback(connection)
    assert resume(connection, active)
    fill(connection, active, "new")
    assert rollback(connection).space_id == active.space_id


def test_the_space_before_is_the_one_that_was_retired_last(connection, two):
    third = space_of(connection, model="c")
    fill(connection, third, *TEXTS)
    ensure_graph(connection, third)
    promote(connection, 2, gate=as_good)
    promote(connection, 3, gate=as_good)
    drop(connection, 2)
    assert rollback(connection).space_id == 1


def test_a_dropped_space_leaves_nothing_behind(connection, two):
    _, candidate = two
    advance(connection, KEY, candidate, fingerprint="f", to="commit", at=NOW, now=NOW)
    record_part(connection, candidate, PART, stage="embeddings", fingerprint="v", now=NOW)
    drop(connection, candidate.space_id)
    for table in ("source_progress", "stored_parts", "embedding_spaces"):
        query = f"SELECT count(*) FROM rag.{table} WHERE space_id = %s"
        assert connection.execute(query, (candidate.space_id,)).fetchone() == (0,)
    assert connection.execute("SELECT to_regclass('rag.vectors_2')").fetchone() == (None,)
    with pytest.raises(SpaceUnavailable, match="was dropped meanwhile"), still_there(candidate):
        record_part(connection, candidate, PART, stage="embeddings", fingerprint="v", now=NOW)
    with pytest.raises(SpaceUnavailable, match="was dropped meanwhile"), still_there(candidate):
        fill(connection, candidate, "new")


def test_a_switch_waits_for_a_run_that_writes_and_gives_up_in_time(connection, database, two, monkeypatch):
    monkeypatch.setattr(promotion, "_PATIENCE_S", 0.2)
    # Runs do not wait for each other.
    with (
        connected(database) as run, connected(database) as another, writing(run), writing(another),
        pytest.raises(SpaceUnavailable, match="a run is writing to the index: try again"),
    ):  # fmt: skip
        promote(connection, 2, gate=as_good)
    assert promote(connection, 2, gate=as_good).status == "active"


def test_what_a_run_writes_before_the_switch_is_counted(connection, database, two):
    active, candidate = two
    entered, refused = threading.Event(), []

    def switch() -> None:
        with connected(database) as own:
            try:
                promote(own, candidate.space_id, gate=lambda *_: entered.set() or [])
            except SpaceUnavailable as error:
                refused.append(str(error))

    with connected(database) as run, writing(run):
        thread = threading.Thread(target=switch)
        thread.start()
        assert entered.wait(20)
        # The candidate was complete when it was looked at; this text it has not.
        fill(run, active, "new")
        write(run, entry("b.md", "new"))
    thread.join(20)
    assert refused and "lacks 1 of 4 texts" in refused[0]
    assert active_id(connection) == active.space_id


def test_a_run_that_breaks_off_holds_nobody_up(connection, database, two):
    with pytest.raises(RuntimeError), connected(database) as run, writing(run):
        raise RuntimeError
    assert promote(connection, 2, gate=as_good).status == "active"


def test_a_space_remembers_its_settings_and_a_repetition_writes_nothing(connection, two):
    active, _ = two
    assert remember_config(connection, active, {"model": "a", "dimensions": None}) is True
    assert remember_config(connection, active, {"dimensions": None, "model": "a"}) is False
    assert numbered_space(connection, 1).config == {"model": "a", "dimensions": None}


def test_only_texts_that_the_index_shows_are_live(connection, two):
    hashes = [text_hash(text) for text in ("install", "gone")]
    assert live_texts(connection, "acme", hashes) == {hashes[0]}
    assert live_texts(connection, "globex", hashes) == set()


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["write", "delete", "fill", "promote", "rollback", "drop"]), st.integers(0, 3), st.booleans()
    ),
    max_size=25,
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_whatever_happens_the_active_space_holds_every_text_that_is_shown(reused_database, steps):
    """Runs write only what the active space has vectors for, and feed the candidates at random."""
    empty(reused_database)
    with connected(reused_database) as connection:
        spaces = [space_of(connection, model=name) for name in "abcd"]
        activate(connection, spaces[0])
        for hour, (step, number, also) in enumerate(steps, start=1):
            try:
                _do(connection, step, spaces[number], hour, also=also)
            except SpaceUnavailable:
                continue
            finally:
                active = active_space(connection)
                assert active is not None
                assert standing(connection, active).missing == 0


def _do(connection: Connection, step: str, space: EmbeddingSpace, hour: int, *, also: bool) -> None:
    active = active_space(connection)
    assert active is not None
    alive = {record.space.space_id for record in space_records(connection)}
    shown = [row[0] for row in connection.execute("SELECT DISTINCT text FROM rag.chunks")]
    if step == "write":
        for fed in {active.space_id: active} | ({space.space_id: space} if also and space.space_id in alive else {}):
            fill(connection, numbered_space(connection, fed), f"text {hour}")
        write(connection, entry(f"{space.space_id}.md", f"text {hour}", at=hour))
    elif step == "delete":
        write(connection, entry(f"{space.space_id}.md", deleted=True, at=hour))
    elif step == "fill" and space.space_id in alive and shown:
        fill(connection, space, *shown)
        ensure_graph(connection, space)
    elif step == "promote":
        promote(connection, space.space_id, gate=as_good)
    elif step == "rollback":
        rollback(connection)
    elif step == "drop":
        drop(connection, space.space_id)
