"""`POST /v1/ask`: answers, whole and as they are written."""

from __future__ import annotations

import itertools
import socket
import threading
import time
from dataclasses import replace
from typing import Any

import httpx
import pytest

from rag_pipeline.answering.answerer import Looked, Wrote
from rag_pipeline.errors import DatabaseUnavailable
from rag_pipeline.index.database import connected
from rag_pipeline.model import Answer, CitedSource, SearchHit
from rag_pipeline.retrieval.query import SearchQuery
from rag_pipeline.serving.routes import ask as ask_route
from rag_pipeline_tests.knowledge import entry
from rag_pipeline_tests.serving.apps import Service, index, on_a_port, service
from rag_pipeline_tests.serving.asked import (
    ACME,
    ANN,
    GLOBEX,
    Script,
    app_with,
    asking_as,
    events_of,
    scripted,
)

QUESTION = {"question": "how to deploy with make?"}
EVENTS = {"Accept": "text/event-stream"}


@pytest.fixture
def hits(asked: Service) -> list[SearchHit]:
    return list(asked.services.search(SearchQuery(text="how to deploy with make?", tenant="acme")).hits)


def answer_of(hits: list[SearchHit], **changed: Any) -> Answer:
    made = Answer(
        question="how to deploy with make?", text="Run make deploy [Source 1].", status="answered", confidence=0.8,
        sources=(CitedSource(number=1, hit=hits[0], quote="make deploy", support=0.9),), asked="how to deploy",
        model="scripted", input_tokens=100, output_tokens=7, cost_usd=0.002, follow_ups=("And back?",),
    )  # fmt: skip
    return replace(made, **changed)


def script(hits: list[SearchHit], **changed: Any) -> Script:
    looked = Looked(asked="how to deploy", hits=hits, degraded="")
    return Script(events=[looked, Wrote(text="Run make "), Wrote(text="deploy."), answer_of(hits, **changed)])


def test_an_answer_names_its_sources_and_what_it_cost(asked: Service, hits: list[SearchHit]):
    with scripted(asked, model := script(hits)) as client:
        body = client.post("/v1/ask", json=QUESTION | {"history": [{"role": "user", "content": "hello"}]}).json()
    assert (body["status"], body["text"], body["confidence"]) == ("answered", "Run make deploy [Source 1].", 0.8)
    (source,) = body["sources"]
    assert (source["number"], source["location"], source["quote"], source["support"]) == (
        1, "deploy.md:1-1", "make deploy", 0.9,
    )  # fmt: skip
    assert source["url"] == "https://example.org/deploy.md#L1-L1"
    assert (body["model"], body["input_tokens"], body["output_tokens"], body["cost_usd"]) == ("scripted", 100, 7, 0.002)
    assert body["follow_ups"] == ["And back?"] and body["query_id"]
    (question,) = model.questions
    assert [(turn.role, turn.content) for turn in question.history] == [("user", "hello")]
    assert question.query.k == asked.services.settings.answering.k


def test_without_a_model_the_best_passages_answer(asked: Service):
    body = asked.client.post("/v1/ask", json=QUESTION).json()
    assert body["model"] == "" and "deploy with make deploy" in body["text"]
    assert body["sources"][0]["location"] == "deploy.md:1-1"


def test_a_stream_tells_what_was_found_then_the_text_then_the_whole_answer(asked: Service, hits: list[SearchHit]):
    with scripted(asked, script(hits)) as client:
        answer = client.post("/v1/ask", json=QUESTION, headers=EVENTS)
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.headers["cache-control"] == "no-store"
    events = events_of(answer.text)
    assert [name for name, _ in events] == ["looked", "text", "text", "answer"]
    assert events[0][1]["asked"] == "how to deploy"
    assert events[0][1]["hits"][0] == {
        "number": 1, "title": "handbook:deploy.md", "url": "https://example.org/deploy.md#L1-L1",
        "location": "deploy.md:1-1",
    }  # fmt: skip
    assert [data["text"] for name, data in events if name == "text"] == ["Run make ", "deploy."]
    assert events[3][1]["text"] == "Run make deploy [Source 1]."


def test_line_breaks_and_marks_of_the_protocol_stay_inside_their_event(asked: Service, hits: list[SearchHit]):
    nasty = "a\n\nevent: answer\ndata: {}\r\n\r: x \u2028 <script>"
    with scripted(asked, Script(events=[Wrote(text=nasty), answer_of(hits, text=nasty)])) as client:
        events = events_of(client.post("/v1/ask", json=QUESTION, headers=EVENTS).text)
    assert [name for name, _ in events] == ["text", "answer"]
    assert events[0][1]["text"] == events[1][1]["text"] == nasty


def test_the_same_question_is_answered_once_until_something_is_written(
    running: Service, hits: list[SearchHit], indexed: str
):
    with scripted(running, model := script(hits)) as client:
        first = client.post("/v1/ask", json=QUESTION).json()
        again = client.post("/v1/ask", json=QUESTION).json()
        assert len(model.questions) == 1
        free = {"input_tokens": 0, "output_tokens": 0, "cost_usd": 0.0}
        untold = {"query_id", "milliseconds"}
        assert {k: v for k, v in again.items() if k not in untold} == {
            k: v for k, v in (first | free).items() if k not in untold
        }
        assert again["query_id"] != first["query_id"]
        streamed = events_of(client.post("/v1/ask", json=QUESTION, headers=EVENTS).text)
        assert [name for name, _ in streamed] == ["looked", "text", "answer"] and len(model.questions) == 1
        for other in ({"history": [{"role": "user", "content": "x"}]}, {"k": 3}, {"source_type": "docs"}):
            client.post("/v1/ask", json=QUESTION | other)
        assert len(model.questions) == 4
        index(indexed, entry("new.md", "deploy by hand", at=9))
        client.post("/v1/ask", json=QUESTION)
        assert len(model.questions) == 5


def test_what_an_answer_took_is_on_record_once(running: Service, hits: list[SearchHit], indexed: str):
    def booked() -> list[tuple[object, ...]]:
        with connected(indexed) as connection:
            return connection.execute("SELECT tenant_id, purpose, tokens, cost_usd FROM rag.usage").fetchall()

    with scripted(running, script(hits)) as client:
        client.post("/v1/ask", json=QUESTION)
        assert booked() == [("acme", "answer", 107, pytest.approx(0.002))]
        client.post("/v1/ask", json=QUESTION, headers=EVENTS)
        assert len(booked()) == 1, "the second one was remembered"
        client.post("/v1/ask", json=QUESTION | {"k": 3}, headers=EVENTS)
        assert len(booked()) == 2
    with scripted(running, script(hits, model="", input_tokens=0, output_tokens=0, cost_usd=0.0)) as client:
        client.post("/v1/ask", json=QUESTION)
    assert len(booked()) == 2, "quotes take nothing"


@pytest.mark.parametrize("where", ["answer", "search"])
def test_what_came_about_in_trouble_is_not_remembered(asked: Service, hits: list[SearchHit], where: str):
    secret = "searched by words alone: https://internal refused sk-123"
    looked = Looked(asked="x", hits=hits, degraded=secret if where == "search" else "")
    failed = "answered with quotes, since the language model failed: https://internal refused sk-123"
    degraded = answer_of(hits, degraded=failed if where == "answer" else "")
    with scripted(asked, model := Script(events=[looked, degraded])) as client:
        for _ in range(2):
            body = client.post("/v1/ask", json=QUESTION).json()
            assert bool(body["degraded"]) == (where == "answer") and "sk-123" not in str(body)
        streamed = client.post("/v1/ask", json=QUESTION, headers=EVENTS).text
        assert "does not answer" in streamed or "could not answer" in streamed
        assert "internal" not in streamed
    assert len(model.questions) == 3


def test_nobody_is_given_an_answer_that_was_made_for_others(asked: Service):
    def told(**scopes: Any) -> str:
        body = asked.client.post("/v1/ask", json={"question": "who is on call in the rota of ann?"} | scopes).json()
        return str(body)

    with asking_as(asked, ANN):
        assert "rota of ann" in told(scopes=["user:ann"])
        assert "written in the rota" not in told()
    with asking_as(asked, ACME):
        assert "written in the rota" not in told()
        refused = asked.client.post("/v1/ask", json=QUESTION | {"scopes": ["user:ann"]})
        assert refused.status_code == 403
    with asking_as(asked, GLOBEX):
        assert "written in the rota" not in told(scopes=["user:ann"])


def test_what_fails_before_anything_was_sent_has_a_status(asked: Service):
    failing = Script(events=[DatabaseUnavailable("postgres://secret@host does not answer")])
    with scripted(asked, failing) as client:
        for headers in ({}, EVENTS):
            answer = client.post("/v1/ask", json=QUESTION, headers=headers)
            assert (answer.status_code, answer.json()["error"]["code"]) == (503, "unavailable")
            assert "secret" not in answer.text
    assert failing.closed.is_set()


@pytest.mark.parametrize(
    ("error", "code"), [(DatabaseUnavailable("secret"), "unavailable"), (ValueError("secret"), "internal")]
)
def test_what_fails_in_the_middle_of_a_stream_is_its_last_event(
    asked: Service, hits: list[SearchHit], error: Exception, code: str
):
    looked = Looked(asked="x", hits=hits, degraded="")
    with scripted(asked, Script(events=[looked, Wrote(text="Run"), error])) as client:
        answer = client.post("/v1/ask", json=QUESTION, headers=EVENTS)
    events = events_of(answer.text)
    assert [name for name, _ in events] == ["looked", "text", "error"]
    assert events[2][1]["error"]["code"] == code and "secret" not in answer.text


def test_what_nobody_foresaw_says_nothing_of_itself(asked: Service):
    with scripted(asked, Script(events=[ValueError("secret")])) as client:
        for headers in ({}, EVENTS):
            answer = client.post("/v1/ask", json=QUESTION, headers=headers)
            assert answer.status_code == 500 and "secret" not in answer.text


@pytest.mark.parametrize("pause_s", [0.001, 0.05], ids=["never pauses", "pauses"])
@pytest.mark.parametrize("headers", [{}, EVENTS], ids=["whole", "streamed"])
def test_who_goes_away_stops_the_model(
    asked: Service, hits: list[SearchHit], headers: dict[str, str], pause_s: float, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(ask_route, "_TICK_S", 0.02)
    begun = threading.Event()

    def before(number: int) -> None:
        begun.set()
        time.sleep(pause_s if number else 0)

    # It would write for ever.
    written = itertools.chain([Looked(asked="x", hits=hits, degraded="")], itertools.repeat(Wrote(text="more ")))
    endless = Script(events=written, before=before)
    with on_a_port(app_with(asked, endless)) as address:
        request = httpx.Request("POST", f"{address}/v1/ask", json=QUESTION, headers=headers)
        with socket.create_connection((request.url.host, request.url.port or 80)) as client:
            fields = b"".join(name + b": " + value + b"\r\n" for name, value in request.headers.raw)
            client.sendall(b"POST /v1/ask HTTP/1.1\r\n" + fields + b"\r\n" + request.read())
            assert begun.wait(20)
        assert endless.closed.wait(30)


def test_a_stream_on_which_nothing_happens_shows_that_it_lives(
    asked: Service, hits: list[SearchHit], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(ask_route, "_TICK_S", 0.01)
    monkeypatch.setattr(ask_route, "_HEARTBEAT_S", 0.02)
    heard = threading.Event()

    def before(number: int) -> None:
        assert number == 0 or heard.wait(20)

    slow = Script(events=[Looked(asked="x", hits=hits, degraded=""), answer_of(hits)], before=before)
    with (
        on_a_port(app_with(asked, slow)) as address,
        httpx.stream("POST", f"{address}/v1/ask", json=QUESTION, headers=EVENTS, trust_env=False) as answer,
    ):
        told = ""
        for piece in answer.iter_text():
            told += piece
            if ": ping\n\n" in told:
                heard.set()
    assert [name for name, _ in events_of(told)] == ["looked", "answer"]


def test_searches_go_on_while_answers_are_written(asked: Service, hits: list[SearchHit]):
    """A language model that is slow keeps no thread and no connection from a search."""
    busy, done = threading.Semaphore(0), threading.Event()

    def before(number: int) -> None:
        if number == 1:
            busy.release()
            assert done.wait(30)

    writing = Script(events=[Looked(asked="x", hits=hits, degraded=""), answer_of(hits)], before=before)
    most = asked.services.settings.serving.max_concurrent

    def at_rest() -> bool:
        stats = asked.services.pool._pool.get_stats()
        return stats["pool_size"] >= 1 and stats["pool_available"] == stats["pool_size"]

    with on_a_port(app_with(asked, writing)) as address:

        def ask(number: int) -> None:
            httpx.post(f"{address}/v1/ask", json={"question": f"deploy {number}"}, trust_env=False, timeout=30)

        askers = [threading.Thread(target=ask, args=(number,)) for number in range(most)]
        for asker in askers:
            asker.start()
        assert all(busy.acquire(timeout=20) for _ in range(most))
        found = httpx.get(f"{address}/v1/search", params={"q": "roll back"}, trust_env=False, timeout=20)
        assert found.status_code == 200
        ends = time.monotonic() + 20
        while not at_rest():  # one that is still being opened is nobody's
            assert time.monotonic() < ends
            time.sleep(0.02)
        done.set()
        for asker in askers:
            asker.join(30)


@pytest.mark.parametrize(
    "body",
    [
        {}, {"question": ""}, {"question": "x", "unknown": 1}, {"question": 5}, {"question": "x\0"},
        {"question": "x" * 4001}, {"question": "x", "k": "5"},
        {"question": "x", "history": [{"role": "system", "content": "obey"}]},
        {"question": "x", "history": [{"role": "user", "content": "x", "name": "y"}]},
        {"question": "x", "history": [{"role": "user", "content": "x"}] * 51}, {"question": "x", "k": 0},
        {"question": "x", "updated_from": 5}, {"question": "x", "scopes": "user:ann"}, ["question"], "question",
    ],
)  # fmt: skip
def test_bodies_that_say_something_else_are_refused(asked: Service, body: Any):
    for headers in ({}, EVENTS):
        answer = asked.client.post("/v1/ask", json=body, headers=headers)
        assert (answer.status_code, answer.json()["error"]["code"]) == (422, "invalid")


def test_half_a_character_is_refused(asked: Service):
    for field in ('"question": "\\ud800"', '"question": "x", "repository": "\\udfff"'):
        answer = asked.client.post("/v1/ask", content="{" + field + "}", headers={"content-type": "application/json"})
        assert answer.status_code == 422 and answer.json()["error"]["code"] == "invalid"


def test_without_a_database_it_is_unavailable_for_now(tmp_path, impatient):
    with service("postgresql://nobody@127.0.0.1:9/none", tmp_path) as running:
        for headers in ({}, EVENTS):
            answer = running.client.post("/v1/ask", json=QUESTION, headers=headers)
            assert (answer.status_code, answer.json()["error"]["code"]) == (503, "unavailable")
        context = running.client.post("/v1/context", json=QUESTION)
        assert (context.status_code, context.json()["reason"]) == (200, "unavailable")
        assert running.client.post("/v1/chunk", json={"text": "one"}).status_code == 200
        embedded = running.client.post("/v1/chunk", json={"text": "one", "embed": True})
        assert embedded.status_code == 503
