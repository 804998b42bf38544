"""The query log: it keeps what was asked, without secrets, and makes nobody wait; and what feedback makes of it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_pipeline.index.database import Connection, connected
from rag_pipeline.index.feedback import (
    Noted,
    asked_questions,
    helpful_hits,
    note_feedback,
    remove_old_queries,
)
from rag_pipeline.index.query_log import QueryLog
from rag_pipeline.model import SearchHit
from rag_pipeline_tests.knowledge import entry, write

NOW = datetime(2024, 6, 2, 12, tzinfo=UTC)
WAIT_S = 30.0


def without_passwords(text: str) -> str:
    return text.replace("hunter2", "[REDACTED:password]")


def hit(document: UUID | None = None, chunk: UUID | None = None, *, rank: int = 1, score: float = 0.5) -> SearchHit:
    return SearchHit(
        rank=rank, score=score, title="A", text="a", url="", location="a:1-1", repository="r", source_type="docs",
        source_id="r:a", language=None, heading_path=(), start_line=1, end_line=1, document_id=document or uuid4(),
        chunk_id=chunk or uuid4(), source_updated_at=NOW, tokens=1,
    )  # fmt: skip


@pytest.fixture
def log(database: str) -> Iterator[QueryLog]:
    log = QueryLog(lambda: connected(database), redact=without_passwords)
    yield log
    log.close(WAIT_S)


def ask(log: QueryLog, question: str = "how to deploy", **more: Any) -> UUID | None:
    what: dict[str, Any] = {
        "tenant": "acme", "entrance": "search", "asked_at": NOW, "outcome": "found", "milliseconds": 7,
    }  # fmt: skip
    return log.asked(question=question, **(what | more))


def asked(log: QueryLog, question: str = "how to deploy", **more: Any) -> UUID:
    """A question that is in the log."""
    query_id = ask(log, question, **more)
    assert query_id is not None
    assert log.flush(WAIT_S)
    return query_id


def rows(connection: Connection, columns: str) -> list[Any]:
    return connection.execute(f"SELECT {columns} FROM rag.query_log ORDER BY asked_at, question").fetchall()  # type: ignore[arg-type]


def test_a_question_is_kept_with_what_came_of_it(log: QueryLog, connection: Connection) -> None:
    found = hit(score=0.75)
    query_id = asked(
        log, entrance="ask", outcome="answered", confidence=0.5, key_id="abc", hits=[found],
        parameters={"repository": "handbook", "scopes": ("user:ann",)},
    )  # fmt: skip
    (row,) = rows(connection, "query_id, tenant_id, entrance, key_id, question, parameters, hits, outcome, confidence")
    assert row == (
        query_id, "acme", "ask", "abc", "how to deploy", {"repository": "handbook", "scopes": ["user:ann"]},
        [{"document_id": str(found.document_id), "chunk_id": str(found.chunk_id), "rank": 1, "score": 0.75}],
        "answered", 0.5,
    )  # fmt: skip


def test_secrets_and_what_no_database_holds_do_not_reach_it(log: QueryLog, connection: Connection) -> None:
    asked(log, "is hunter2\x00 right \ud800?", parameters={"metadata": {"password": ["hunter2"]}})
    (row,) = rows(connection, "question, parameters")
    assert row == ("is [REDACTED:password] right ??", {"metadata": {"password": ["[REDACTED:password]"]}})


def test_a_question_whose_secrets_cannot_be_found_is_not_kept(database: str, connection: Connection) -> None:
    def redact(text: str) -> str:
        if "bad" in text:
            raise RuntimeError("no engine")
        return text

    dropped: list[int] = []
    log = QueryLog(lambda: connected(database), redact=redact, on_dropped=dropped.append)
    ask(log, "a bad one")
    asked(log, "a good one")
    log.close(WAIT_S)
    assert rows(connection, "question") == [("a good one",)]
    assert sum(dropped) == 1


def test_one_that_cannot_be_stored_takes_no_others_with_it(log: QueryLog, connection: Connection) -> None:
    ask(log, "before")
    ask(log, "too long", milliseconds=2**40)
    asked(log, "after")
    assert rows(connection, "question") == [("after",), ("before",)]


def test_a_log_that_is_off_keeps_nothing_and_says_so(database: str, connection: Connection) -> None:
    log = QueryLog(lambda: connected(database), redact=str, enabled=False)
    assert ask(log) is None
    assert log.flush(0)
    log.close()
    assert rows(connection, "question") == []


def test_closing_writes_what_waits_and_takes_nothing_more(database: str, connection: Connection) -> None:
    dropped: list[int] = []
    log = QueryLog(lambda: connected(database), redact=str, on_dropped=dropped.append)
    for number in range(450):
        ask(log, f"question {number}")
    log.close(WAIT_S)
    assert len(rows(connection, "question")) == 450
    assert ask(log) is None
    assert sum(dropped) == 1
    log.close(WAIT_S)


class Gone:
    """A database that is away until somebody says that it is back."""

    def __init__(self, database: str) -> None:
        self.database = database
        self.is_back = False
        self.tried = threading.Event()

    @contextmanager
    def __call__(self) -> Iterator[Connection]:
        self.tried.set()
        if not self.is_back:
            raise psycopg.OperationalError("the server is away")
        with connected(self.database) as connection:
            yield connection


def test_while_the_database_is_away_questions_wait_and_the_newest_are_dropped_and_counted(
    database: str, connection: Connection
) -> None:
    gone, dropped = Gone(database), list[int]()
    log = QueryLog(gone, redact=str, capacity=3, on_dropped=dropped.append)
    kept = [ask(log, f"question {number}") is not None for number in range(5)]
    assert kept == [True, True, True, False, False]
    assert sum(dropped) == 2
    assert gone.tried.wait(WAIT_S)
    gone.is_back = True
    assert log.flush(WAIT_S)
    assert rows(connection, "question") == [(f"question {number}",) for number in range(3)]
    log.close(WAIT_S)


def test_what_cannot_be_written_until_the_end_is_dropped_and_counted(database: str, connection: Connection) -> None:
    gone, dropped = Gone(database), list[int]()
    log = QueryLog(gone, redact=str, on_dropped=dropped.append)
    ask(log)
    ask(log)
    log.close(timeout_s=0)
    assert sum(dropped) == 2
    assert log.flush(0)


@settings(deadline=None, max_examples=50)
@given(
    capacity=st.integers(1, 6),
    steps=st.lists(st.sampled_from(["ask", "ask", "ask", "write"]), max_size=40),
    is_away=st.booleans(),
)
def test_whatever_happens_every_question_is_written_or_counted_and_none_waits(
    capacity: int, steps: list[str], is_away: bool
) -> None:
    turnstile, dropped = threading.Semaphore(0), list[int]()
    written: list[str] = []

    class Cursor:
        def __enter__(self) -> Cursor:
            return self

        def __exit__(self, *_: object) -> None: ...

        def executemany(self, _: str, rows: list[dict[str, Any]]) -> None:
            written.extend(row["question"] for row in rows)

    class Table:
        def transaction(self) -> Cursor:
            return Cursor()

        def cursor(self) -> Cursor:
            return Cursor()

    @contextmanager
    def connect() -> Iterator[Any]:
        turnstile.acquire()
        if is_away:
            raise psycopg.OperationalError("away")
        yield Table()

    make: Callable[[], AbstractContextManager[Any]] = connect
    log = QueryLog(make, redact=str, capacity=capacity, on_dropped=dropped.append)
    taken: list[str] = []
    for number, step in enumerate(steps):
        if step == "write":
            turnstile.release()
        else:
            # The writer stands still at the turnstile: who asks comes back all the same.
            if ask(log, str(number)) is not None:
                taken.append(str(number))
            assert log.waiting <= capacity
    turnstile.release(1_000)
    log.close(timeout_s=0 if is_away else WAIT_S)
    assert written == ([] if is_away else taken)
    assert sum(dropped) + len(written) == steps.count("ask")


def thumb(connection: Connection, query_id: UUID, *, helpful: bool = True, **more: Any) -> Noted:
    what: dict[str, Any] = {"tenant": "acme", "reason": "", "now": NOW}
    return note_feedback(connection, query_id=query_id, helpful=helpful, **(what | more))


def test_feedback_on_the_same_takes_the_place_of_the_earlier(log: QueryLog, connection: Connection) -> None:
    found = hit()
    query_id = asked(log, hits=[hit(), found])
    assert thumb(connection, query_id, helpful=True) == "noted"
    assert thumb(connection, query_id, helpful=False, reason="wrong") == "noted"
    assert thumb(connection, query_id, chunk_id=found.chunk_id) == "noted"
    assert thumb(connection, query_id, chunk_id=found.chunk_id, helpful=False) == "noted"
    kept = connection.execute("SELECT chunk_id, helpful, reason FROM rag.feedback ORDER BY reason").fetchall()
    assert kept == [(found.chunk_id, False, ""), (None, False, "wrong")]


def test_feedback_is_for_queries_of_ones_own_and_for_their_hits(log: QueryLog, connection: Connection) -> None:
    query_id = asked(log, hits=[hit()])
    assert thumb(connection, uuid4()) == "no query"
    assert thumb(connection, query_id, tenant="globex") == "no query"
    assert thumb(connection, query_id, chunk_id=uuid4()) == "no hit"
    assert connection.execute("SELECT count(*) FROM rag.feedback").fetchone() == (0,)


def test_the_worst_questions_come_first(log: QueryLog, connection: Connection) -> None:
    asked(log, "fine", outcome="answered", confidence=0.9)
    asked(log, "unsure", outcome="answered", confidence=0.2)
    for _ in range(2):
        asked(log, "missing", outcome="nothing_found")
    disliked = asked(log, "Disliked ", outcome="answered", confidence=0.8)
    asked(log, "disliked", asked_at=NOW + timedelta(minutes=1), outcome="answered", confidence=0.6)
    asked(log, "old", asked_at=NOW - timedelta(days=3), outcome="nothing_found")
    asked(log, "theirs", tenant="globex", outcome="nothing_found")
    thumb(connection, disliked, helpful=False, reason="out of date")
    found = asked_questions(connection, since=NOW - timedelta(days=1), tenant="acme", limit=10)
    assert [question.question for question in found] == ["disliked", "missing", "unsure", "fine"]
    first, second = found[:2]
    assert (first.asked, first.unhelpful, first.helpful, first.reasons) == (2, 1, 0, ["out of date"])
    assert first.confidence == pytest.approx(0.7)
    assert (second.asked, second.unanswered) == (2, 2)
    everybody = asked_questions(connection, since=NOW - timedelta(days=9), tenant=None, limit=10)
    assert {question.question for question in everybody} >= {"old", "theirs"}
    assert len(asked_questions(connection, since=NOW - timedelta(days=9), tenant=None, limit=2)) == 2


def test_what_was_searched_while_somebody_typed_is_no_question(log: QueryLog, connection: Connection) -> None:
    def typed(question: str, at_s: float, **more: Any) -> UUID:
        return asked(log, question, asked_at=NOW + timedelta(seconds=at_s), **{"entrance": "search"} | more)

    for at_s, question in enumerate(("how", "How do", "how do I ", "how do I deploy")):
        typed(question, at_s)
    typed("how do I deploy", 4, entrance="ask")
    typed("how do", 4.5, key_id="another")  # somebody else's
    typed("roll", 10)
    typed("roll back", 16)  # so late that "roll" was worth looking at
    liked = typed("resta", 30)
    typed("restart", 31)
    typed("bac", 40, entrance="ask")  # nobody asks a model without meaning to
    typed("backup", 41)
    thumb(connection, liked)
    found = asked_questions(connection, since=NOW - timedelta(days=1), tenant="acme", limit=50)
    assert {question.question: question.asked for question in found} == {
        "how do I deploy": 2, "how do": 1, "roll": 1, "roll back": 1, "resta": 1, "restart": 1, "bac": 1, "backup": 1
    }  # fmt: skip


def test_old_questions_go_with_their_feedback(log: QueryLog, connection: Connection) -> None:
    old, new = asked(log, "old", asked_at=NOW - timedelta(days=91)), asked(log, "new")
    thumb(connection, old)
    thumb(connection, new)
    assert remove_old_queries(connection, before=NOW - timedelta(days=90)) == 1
    assert rows(connection, "question") == [("new",)]
    assert connection.execute("SELECT count(*) FROM rag.feedback").fetchone() == (1,)


def test_helpful_hits_are_named_by_document_and_lines_and_outlive_their_chunks(
    log: QueryLog, connection: Connection
) -> None:
    guide = entry("guide.md", "how to deploy it", "how to roll back")
    gone = entry("old.md", "how to deploy it in the past")
    private = entry("mine.md", "how I deploy it", scope="user:ann")
    write(connection, guide, gone, private)
    hits = [hit(c.document_id, c.chunk_id) for e in (guide, gone, private) for c in e.chunks]
    first, second = asked(log, "How to deploy", hits=hits), asked(log, "how to deploy", hits=hits)
    private_one = asked(log, "who is on call", hits=hits, parameters={"scopes": ["user:ann"]})
    for query_id in (first, second, private_one):
        for found in hits:
            thumb(connection, query_id, chunk_id=found.chunk_id)
    # One likes it, the other does not: that is no label.
    thumb(connection, second, chunk_id=hits[1].chunk_id, helpful=False)
    write(connection, entry("old.md", "something else altogether", at=5))
    found_helpful = helpful_hits(connection, tenant="acme", limit=10)
    assert {(h.question.lower(), h.source_id, h.lines) for h in found_helpful} == {
        ("how to deploy", "handbook:guide.md", (1, 1)),
        ("how to deploy", "handbook:old.md", None),
    }
    assert helpful_hits(connection, tenant="globex", limit=10) == []
