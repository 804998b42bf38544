"""`POST /v1/context` answers in time, whatever is away or hangs, and gives nothing to a key that was not verified."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from rag_pipeline.errors import TransientError
from rag_pipeline.index.api_keys import create_key
from rag_pipeline.index.database import connected
from rag_pipeline_tests.end_to_end.installation import WordEmbedder
from rag_pipeline_tests.serving.apps import NOW, Service, service

TIMEOUT_MS = 500
MOST_S = 4.0
"""Far more than the timeout, because machines are busy; far less than the 30 s of a request."""
SOME_KEY = f"rag_{'0' * 12}_{'x' * 43}"
QUESTION = "how to deploy with make?"


def ask(running: Service, *, key: str | None = None, **body: Any) -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    started = time.monotonic()
    answer = running.client.post(
        "/v1/context", json={"question": QUESTION, "timeout_ms": TIMEOUT_MS} | body, headers=headers
    )
    assert time.monotonic() - started < MOST_S
    assert answer.status_code == 200, answer.text
    made: dict[str, Any] = answer.json()
    return made


def is_empty(made: dict[str, Any]) -> bool:
    return (made["text"], made["sources"], made["enabled"], made["tokens"]) == ("", [], False, 0)


def key_for(url: str) -> str:
    with connected(url) as connection:
        return create_key(connection, tenant="acme", name="chat", role="read", scopes=["user:ann"], now=NOW)[1]


@contextmanager
def hanging_server() -> Iterator[tuple[str, Callable[[], None]]]:
    """The address of a server that accepts connections and says nothing, and what ends them."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        held: list[socket.socket] = []

        def accept() -> None:
            while True:
                try:
                    held.append(listening.accept()[0])
                except OSError:
                    return

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()

        def release() -> None:
            listening.close()
            for one in held:
                one.close()

        yield f"postgresql://nobody@127.0.0.1:{listening.getsockname()[1]}/none", release
        release()


@pytest.fixture(params=["away", "hanging"])
def lost(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Service]:
    """A service whose database was never there."""
    with ExitStack() as held:
        url: str = "postgresql://nobody@127.0.0.1:1/none"
        release: Callable[[], None] = lambda: None  # noqa: E731
        if request.param == "hanging":
            url, release = held.enter_context(hanging_server())
        yield held.enter_context(service(url, tmp_path))
        release()  # a pool waits for its attempts to connect


@pytest.mark.parametrize("key", [None, SOME_KEY], ids=["no key", "key"])
def test_without_a_database_there_is_an_empty_context_in_time(lost: Service, key: str | None):
    made = ask(lost, key=key)
    assert is_empty(made) and made["reason"] == "unavailable"


@pytest.mark.parametrize("scopes", [[], ["user:ann"]])
def test_a_database_that_goes_away_gives_nothing_even_to_a_good_key(indexed: str, tmp_path: Path, scopes: list[str]):
    key = key_for(indexed)
    with service(indexed, tmp_path) as running:
        assert ask(running, key=key, timeout_ms=5_000, scopes=scopes)["reason"] == "ok"
        with no_more_connections(indexed):
            made = ask(running, key=key, scopes=scopes)
            assert is_empty(made) and made["reason"] == "unavailable"
            assert ask(running)["reason"] == "unavailable"


@contextmanager
def no_more_connections(url: str) -> Iterator[None]:
    """The database ends all connections and takes no more."""
    name = conninfo_to_dict(url)["dbname"]
    with psycopg.connect(url, dbname="postgres", autocommit=True) as connection:
        connection.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false')
        connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name])
        try:
            yield
        finally:
            connection.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS true')


def test_a_search_that_hangs_is_given_up_in_time(indexed: str, tmp_path: Path):
    with service(indexed, tmp_path) as running, connected(indexed) as other:
        with other.transaction():
            other.execute("LOCK TABLE rag.segments IN ACCESS EXCLUSIVE MODE")
            assert ask(running)["reason"] == "timeout"
        assert ask(running, timeout_ms=5_000)["reason"] == "ok"


@pytest.mark.parametrize("key", [None, SOME_KEY], ids=["no key", "key"])
def test_requests_that_find_no_connection_do_not_wait_longer(indexed: str, tmp_path: Path, key: str | None):
    with service(indexed, tmp_path, serving={"max_concurrent": 1}) as running, ExitStack() as held:
        for _ in range(3):  # one for searches, two to spare
            held.enter_context(running.services.pool.connection())
        made = ask(running, key=key)
        assert is_empty(made) and made["reason"] == "unavailable"


@pytest.mark.parametrize("key", [None, SOME_KEY], ids=["no key", "key"])
def test_requests_that_find_no_thread_do_not_wait_longer(indexed: str, tmp_path: Path, key: str | None):
    busy = threading.Event()
    with service(indexed, tmp_path, serving={"max_concurrent": 1, "max_waiting": 0}) as running:
        running.services.workers._threads.submit(busy.wait, 30)
        try:
            assert is_empty(ask(running, key=key))
        finally:
            busy.set()


def test_without_the_embedder_the_words_answer_and_it_is_said(
    indexed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def fail(*_: object) -> Any:
        raise TransientError("https://internal refused sk-123")

    monkeypatch.setattr(WordEmbedder, "embed_query", fail)
    with service(indexed, tmp_path) as running:
        made = ask(running, timeout_ms=5_000)
    assert made["reason"] == "ok" and made["degraded"].startswith("searched by words alone")
    assert "internal" not in made["degraded"]


def test_an_embedder_that_hangs_costs_a_part_of_the_time(indexed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    awake = threading.Event()
    monkeypatch.setattr(WordEmbedder, "embed_query", lambda *_: awake.wait(30))
    try:
        with service(indexed, tmp_path) as running:
            made = ask(running, timeout_ms=2_000)
            assert made["reason"] == "ok" and made["degraded"].startswith("searched by words alone")
    finally:
        awake.set()


def test_a_whole_context_says_nothing_of_it(asked: Service):
    assert ask(asked, timeout_ms=5_000)["degraded"] == ""


@pytest.mark.parametrize("key", ["rag_no-key", SOME_KEY])
def test_a_key_that_is_known_to_be_wrong_is_still_refused(asked: Service, key: str):
    answer = asked.client.post("/v1/context", json={"question": QUESTION}, headers={"Authorization": f"Bearer {key}"})
    assert answer.status_code == 401


@pytest.mark.parametrize("timeout_ms", [0, 49, 60_001, -1, 500.5, "500", True])
def test_timeouts_out_of_bounds_are_refused(asked: Service, timeout_ms: object):
    answer = asked.client.post("/v1/context", json={"question": QUESTION, "timeout_ms": timeout_ms})
    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "invalid")


def test_the_settings_say_how_long_a_context_may_take(tmp_path: Path):
    with hanging_server() as (url, release), service(url, tmp_path, serving={"context_timeout_ms": 200}) as running:
        started = time.monotonic()
        answer = running.client.post("/v1/context", json={"question": QUESTION})
        assert answer.json()["reason"] == "unavailable" and time.monotonic() - started < MOST_S
        release()
