"""The mirror's file: newer wins in any order, what is gone stays gone, and every change of a thread is counted."""

from __future__ import annotations

import multiprocessing
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_pipeline.errors import PermanentError
from rag_pipeline.sources.github.resources import Resource
from rag_pipeline.sources.github.store import Settled, Store
from rag_pipeline_tests.sources.github.mirrors import moment

OLD, NEW = "2024-05-01T12:00:00Z", "2024-05-02T12:00:00Z"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "mirror.sqlite") as store:
        yield store


def comment(text: str, *, version: str = OLD, id_: int = 5, number: int = 1) -> Resource:
    return Resource(kind="comment", id=id_, number=number, version=version, body={"body": text})


def text_of(store: Store, id_: int = 5) -> object:
    return (store.body("comment", id_) or {}).get("body")


# Which of two states stays.


@settings(max_examples=50, deadline=None, derandomize=True)
@given(
    said=st.lists(st.tuples(st.sampled_from([OLD, NEW]), st.sampled_from("123"), st.sampled_from("ab")), min_size=1),
    data=st.data(),
)
def test_deliveries_leave_the_newest_state_in_whatever_order_they_come(
    said: list[tuple[str, str, str]], data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as folder, Store(Path(folder) / "mirror.sqlite") as store:
        for version, seen_at, text in data.draw(st.permutations(said)):
            store.put(comment(text, version=version), seen_at=seen_at, newer_only=True)
        assert text_of(store) == max(said)[2]


def test_what_is_listed_later_is_true_whatever_its_version_is(store: Store) -> None:
    assert store.put(comment("first", version=NEW), seen_at="1")
    assert store.put(comment("edited silently", version=NEW), seen_at="2")
    assert not store.put(comment("from a page out of order", version=OLD), seen_at="2")
    assert text_of(store) == "edited silently"
    assert store.put(comment("from a restored server", version=OLD), seen_at="3")
    assert not store.put(comment("sent before", version=NEW), seen_at="2", newer_only=True)
    assert text_of(store) == "from a restored server"
    assert store.put(comment("sent later", version=NEW), seen_at="4", newer_only=True)


def test_a_delivery_of_the_same_version_counts_only_when_it_came_after_the_last_look(store: Store) -> None:
    store.put(comment("now"), seen_at="1")
    store.put(comment("now"), seen_at="3")
    assert not store.put(comment("before"), seen_at="2", newer_only=True)
    assert store.put(comment("after"), seen_at="4", newer_only=True)


def test_the_same_state_again_changes_nothing(store: Store) -> None:
    store.put(comment("text"), seen_at="1")
    assert not store.put(comment("text"), seen_at="2")
    assert not store.put(comment("text", version=NEW), seen_at="2")
    assert not store.put(comment("older", version=OLD), seen_at="1")
    assert store.put(comment("text", version=NEW, number=2), seen_at="3")
    assert (store.living_of("comment", 1), store.living_of("comment", 2)) == ([], [5])


def test_what_was_deleted_stays_deleted_for_deliveries_and_lives_when_it_is_listed(store: Store) -> None:
    store.put(comment("text"), seen_at="1")
    assert store.delete("comment", 5, number=1, at="2")
    assert not store.delete("comment", 5, number=1, at="3")
    assert not store.put(comment("late", version=NEW), seen_at="4", newer_only=True)
    assert (text_of(store), store.is_deleted("comment", 5), store.living("comment")) == (None, True, {})
    assert store.put(comment("there after all"), seen_at="5")
    assert (text_of(store), store.is_deleted("comment", 5), store.living("comment")) == (
        "there after all",
        False,
        {5: 1},
    )


def test_what_was_never_seen_can_be_deleted_before_news_of_it_come(store: Store) -> None:
    assert store.delete("comment", 5, number=1, at="2")
    assert not store.put(comment("late"), seen_at="1", newer_only=True)
    assert store.bodies("comment", 1) == []


def test_texts_keep_every_character(store: Store) -> None:
    text = "Größe\n山田 👩\u200d👧 'quoted' \\ \x01 \u2028"
    store.put(comment(text), seen_at="1")
    assert text_of(store) == text


# Threads.


def settle(store: Store, digest: str, *, number: int = 1, hour: int = 12, deleted: bool = False) -> bool:
    return store.settle(
        "issue", number, digest=digest, changed_at=OLD, as_of=moment(1, hour), deleted=deleted, content=digest.encode()
    )


def thread(store: Store, number: int = 1) -> Settled:
    found = store.thread("issue", number)
    assert found is not None
    return found


def test_every_change_of_a_thread_has_a_greater_number_and_a_later_moment(store: Store) -> None:
    assert settle(store, "a")
    first = thread(store)
    assert not settle(store, "a", hour=13)
    assert thread(store) == first
    settle(store, "b", number=2)
    for digest, hour in (("c", 12), ("d", 11), ("a", 12)):
        before = thread(store)
        assert settle(store, digest, hour=hour)
        assert thread(store).seq > max(before.seq, thread(store, 2).seq) and thread(store).as_of > before.as_of
    assert [found.number for found in store.threads(after=first.seq)] == [1, 2]
    assert store.last_seq() == thread(store).seq


def test_two_looks_within_one_tick_of_the_clock_still_have_an_order(store: Store) -> None:
    settle(store, "a")
    settle(store, "b")
    assert thread(store).as_of - moment(1) == timedelta(microseconds=1)


def test_a_tombstone_is_a_state_like_any_other(store: Store) -> None:
    settle(store, "a")
    assert settle(store, "", deleted=True) and not settle(store, "", deleted=True)
    assert thread(store).deleted and store.content("issue", 1) == b""
    assert settle(store, "a")
    assert not thread(store).deleted and store.content("issue", 1) == b"a"


def test_threads_are_found_by_the_moment_of_their_last_change(store: Store) -> None:
    for number, changed_at in ((1, NEW), (2, OLD), (3, "2024-05-02T23:59:59Z")):
        store.settle(
            "issue", number, digest="d", changed_at=changed_at, as_of=moment(3), deleted=False, content=b""
        )  # fmt: skip
    between = store.threads_between("2024-05-02T00:00:00Z", "2024-05-02T23:59:59Z")
    assert [found.number for found in between] == [1, 3]
    assert [found.number for found in store.threads()] == [2, 1, 3]


def test_a_thread_of_many_megabytes_comes_back_as_it_was(store: Store) -> None:
    content = bytes(range(256)) * 20_000
    store.settle("issue", 1, digest="d", changed_at=OLD, as_of=moment(1), deleted=False, content=content)
    assert store.content("issue", 1) == content
    assert store.content("issue", 2) == b""


def test_touched_threads_wait_until_they_are_done(store: Store) -> None:
    store.touch(3, 1)
    store.touch(3)
    store.done(1)
    store.done(9)
    assert store.touched() == [3]


# Pages.


def remember(store: Store, ids: Sequence[int] = (5, 6), *, etag: str | None = "e") -> None:
    store.remember_page("url", listing="all", etag=etag, next_url="next", kind="comment", ids=ids)


def test_a_page_is_remembered_with_what_it_held(store: Store) -> None:
    store.put(comment("text"), seen_at="1")
    remember(store)
    page = store.page("url")
    assert page is not None and (page.etag, page.next, page.ids) == ("e", "next", [5, 6])
    assert store.versions("comment", page.ids) == [OLD]
    assert store.page("other") is None


def test_without_an_etag_there_is_nothing_to_remember(store: Store) -> None:
    remember(store, etag=None)
    assert store.page("url") is None


@pytest.mark.parametrize("what", ["edited", "new", "deleted"])
def test_a_page_proves_nothing_once_what_it_held_has_changed_here(store: Store, what: str) -> None:
    store.put(comment("text"), seen_at="1")
    remember(store)
    if what == "edited":
        store.put(comment("as a delivery says"), seen_at="2", newer_only=True)
    elif what == "new":
        store.put(comment("text", id_=6), seen_at="2")
    else:
        store.delete("comment", 5, number=1, at="2")
    assert store.page("url") is None
    remember(store)
    assert store.page("url") is not None


def test_pages_of_a_listing_are_forgotten_but_those_that_will_be_asked_again(store: Store) -> None:
    for url, listing in (("a", "one"), ("b", "one"), ("c", "other")):
        store.remember_page(url, listing=listing, etag="e", next_url=None, kind="comment", ids=[])
    store.forget_pages("one", keep=["b"])
    assert [url for url in "abc" if store.page(url)] == ["b", "c"]


# The file.


def test_a_transaction_is_kept_whole_or_not_at_all(store: Store) -> None:
    with pytest.raises(ZeroDivisionError), store.transaction():
        store.put(comment("text"), seen_at="1")
        with store.transaction():
            store.set_note("name", "value")
        raise ZeroDivisionError
    assert (store.note("name"), text_of(store)) == (None, None)


def test_problems_are_there_until_they_are_solved(store: Store) -> None:
    store.set_problem("b", "why")
    store.set_problem("a", "why")
    store.set_problem("a", "why now")
    assert store.problems() == [("a", "why now"), ("b", "why")]
    store.clear_problem("a")
    assert store.problems() == [("b", "why")]
    store.clear_problems()
    assert store.problems() == []


def test_a_file_of_another_format_says_what_to_do(tmp_path: Path) -> None:
    with Store(tmp_path / "mirror.sqlite") as store:
        store.set_note("format", "0")
    with pytest.raises(PermanentError, match=r"mirror\.sqlite has format 0.*delete the file"):
        Store(tmp_path / "mirror.sqlite")


def _write(path: Path, writer: int) -> None:
    for index in range(50):
        with Store(path) as store, store.transaction():
            store.put(comment(f"by {writer}", id_=index + 1), seen_at=str(writer))
            settle(store, f"{writer} {index}", number=writer * 100 + index)


def test_processes_that_create_and_write_one_file_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "mirror.sqlite"
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_write, args=(path, writer)) for writer in (1, 2, 3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(timeout=60)
    assert [writer.exitcode for writer in writers] == [0, 0, 0]
    with Store(path) as store:
        assert sorted(found.seq for found in store.threads()) == list(range(1, 151))
        assert len(store.living("comment")) == 50


def test_a_file_of_the_former_format_is_upgraded_and_keeps_what_it_holds(tmp_path: Path) -> None:
    path = tmp_path / "mirror.sqlite"
    with Store(path) as store:
        store.put(comment("text"), seen_at="5")
        store.set_note("loaded:pull", "1")
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("ALTER TABLE resources DROP COLUMN listed_at")
        database.execute("DROP TABLE removals")
        database.execute("DROP TABLE only_moved")
        database.execute("UPDATE notes SET value = '2' WHERE name = 'format'")
    for _ in range(2):
        with Store(path) as store:
            assert (store.note("format"), store.note("complete"), text_of(store)) == ("3", "1", "text")
            assert store.listed_at("comment", 5) == "5"
            assert not store.put(comment("sent before", version=NEW), seen_at="4", newer_only=True)
