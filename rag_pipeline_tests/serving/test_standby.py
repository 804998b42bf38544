"""A service over a real streaming replica: what it reads, what it remembers, and what happens when one of them goes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from rag_pipeline.embedded import EmbeddedPostgres
from rag_pipeline.index.api_keys import create_key, revoke_key
from rag_pipeline.index.database import connected
from rag_pipeline.index.graph import ensure_graph
from rag_pipeline.index.migrations import migrate
from rag_pipeline.index.spaces import SpaceVectors, active_space
from rag_pipeline.index.writer import Entry
from rag_pipeline.model import text_hash
from rag_pipeline.retrieval import search as search_module
from rag_pipeline.retrieval.knowledge import Knowledge
from rag_pipeline.retrieval.query import SearchQuery
from rag_pipeline_tests.embedded.servers import temporary_postgres
from rag_pipeline_tests.embedded.standbys import Standby, standby_of
from rag_pipeline_tests.end_to_end.installation import WordEmbedder
from rag_pipeline_tests.knowledge import entry, write
from rag_pipeline_tests.serving.apps import CORPUS, NOW, Service, index, service

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def primary() -> Iterator[EmbeddedPostgres]:
    with temporary_postgres() as server:
        migrate(server.url())
        index(server.url(), *CORPUS)
        with connected(server.url()) as connection:
            space = active_space(connection)
            assert space is not None
            assert ensure_graph(connection, space)
        yield server


@pytest.fixture(scope="module")
def standby(primary: EmbeddedPostgres) -> Iterator[Standby]:
    with standby_of(primary) as standby:
        yield standby


@pytest.fixture
def on(primary: EmbeddedPostgres, standby: Standby, tmp_path: Path) -> Iterator[Service]:
    standby.catch_up()
    with service(primary.url(), tmp_path, replica_url=standby.url()) as on:
        yield on


def add(server: EmbeddedPostgres, one: Entry) -> None:
    """Index a document at the primary, with its vectors."""
    embedder = WordEmbedder()
    with connected(server.url()) as connection:
        space = active_space(connection)
        assert space is not None
        for chunk in one.chunks:
            vector = embedder.embed_query(chunk.text)
            SpaceVectors(connection, space, tenant="acme").store([text_hash(chunk.text)], vector[None, :])
        write(connection, one)


def texts(on: Service, question: str) -> list[str]:
    answer = on.client.get("/v1/search", params={"q": question, "k": 3})
    assert answer.status_code == 200, answer.text
    assert answer.json()["degraded"] == ""
    return [hit["text"] for hit in answer.json()["hits"]]


def answered(on: Service, question: str) -> str:
    answer = on.client.post("/v1/ask", json={"question": question})
    assert answer.status_code == 200, answer.text
    return str(answer.json()["text"])


def test_it_answers_by_the_graph_of_the_standby(on: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_module, "EXACT_UP_TO", 0)
    hits = on.client.get("/v1/search?q=deploy+with+make+deploy&legs=vector&k=2&source_type=docs").json()["hits"]
    assert hits[0]["text"] == "deploy with make deploy"


def test_an_index_that_no_standby_can_have_is_not_asked(
    primary: EmbeddedPostgres, standby: Standby, tmp_path: Path
) -> None:
    with connected(primary.url()) as connection:
        connection.execute("CREATE UNLOGGED TABLE rag.pg_search_indexes (tenant_id text, analyzer integer)")
    try:
        standby.catch_up()
        with service(primary.url(), tmp_path, replica_url=standby.url(), retrieval={"lexical": "pg_search"}) as on:
            assert texts(on, "roll back with make rollback")[0] == "roll back with make rollback"
    finally:
        with connected(primary.url()) as connection:
            connection.execute("DROP TABLE rag.pg_search_indexes")


def test_what_it_remembers_follows_the_standby_and_not_the_primary(
    on: Service, primary: EmbeddedPostgres, standby: Standby
) -> None:
    question, news = "how is the lamp changed?", "the lamp is changed with a ladder"
    assert news not in texts(on, question)
    before = answered(on, question)
    standby.pause()
    try:
        add(primary, entry("lamp.md", news, at=20))
        with service(primary.url(), on.services.settings.home) as direct:
            assert news in texts(direct, question)
        # The standby has not seen it yet: what is remembered of it is right.
        assert news not in texts(on, question)
        assert answered(on, question) == before
        on.clock.now += timedelta(seconds=3)
        health = on.client.get("/health").json()
        assert health["replica"]["answers"] and health["replica"]["primary_answers"]
        assert health["replica"]["lag_s"] > 0
    finally:
        standby.resume()
    standby.catch_up()
    assert news in texts(on, question)
    assert news in answered(on, question)
    on.clock.now += timedelta(seconds=3)
    health = on.client.get("/health").json()
    assert (health["problem"], health["replica"]["lag_s"]) == (None, 0.0)


def test_a_replica_that_is_far_behind_shows(primary: EmbeddedPostgres, standby: Standby, tmp_path: Path) -> None:
    with service(primary.url(), tmp_path, replica_url=standby.url(), serving={"replica_lag_s": 0.001}) as on:
        standby.pause()
        try:
            add(primary, entry("later.md", "something else", at=21))
            health = on.client.get("/health").json()
            assert health["status"] == "degraded"
            assert health["problem"].endswith("behind the primary")
        finally:
            standby.resume()


def test_a_key_counts_and_ends_at_once_however_far_the_standby_is(
    on: Service, primary: EmbeddedPostgres, standby: Standby
) -> None:
    standby.pause()
    try:
        with connected(primary.url()) as connection:
            made, text = create_key(connection, tenant="acme", name="new", role="read", now=NOW)
        sent = {"X-API-Key": text}
        assert on.client.get("/v1/search?q=deploy", headers=sent).status_code == 200
        with connected(primary.url()) as connection:
            revoke_key(connection, made.key_id, now=NOW)
        assert on.client.get("/v1/search?q=deploy", headers=sent).status_code == 401
    finally:
        standby.resume()


def test_it_goes_on_reading_while_the_primary_is_away_and_writes_when_that_is_back(
    on: Service, primary: EmbeddedPostgres, standby: Standby
) -> None:
    with connected(primary.url()) as connection:
        _, text = create_key(connection, tenant="acme", name="reader", role="read", now=NOW)
    standby.catch_up()
    sent = {"X-API-Key": text}
    assert on.client.get("/v1/search?q=roll+back", headers=sent).status_code == 200
    assert on.services.log.flush(20)
    assert primary.stop()
    try:
        for _ in range(3):
            answer = on.client.get("/v1/search?q=roll+back+now", headers=sent)
            assert (answer.status_code, answer.json()["hits"][0]["text"]) == (200, "roll back with make rollback")
        on.clock.now += timedelta(seconds=3)
        health = on.client.get("/health")
        assert (health.status_code, health.json()["status"]) == (200, "degraded")
        assert health.json()["replica"]["primary_answers"] is False
        knowledge = Knowledge(on.services.settings, environ={}, make=lambda *_, **__: WordEmbedder())
        with closing(knowledge):
            found = knowledge.find(SearchQuery(text="roll back", tenant="acme"))
        assert found.hits[0].text == "roll back with make rollback"
    finally:
        primary.start()
    assert on.services.log.flush(60)
    with connected(primary.url()) as connection:
        asked = "SELECT count(*) FROM rag.query_log WHERE question = 'roll back now'"
        assert connection.execute(asked).fetchone() == (3,)


def test_it_reads_from_the_primary_while_the_standby_is_away(on: Service, standby: Standby) -> None:
    assert texts(on, "roll back with make rollback")[0] == "roll back with make rollback"
    standby.stop()
    try:
        assert texts(on, "deploy with make deploy")[0] == "deploy with make deploy"
        on.clock.now += timedelta(seconds=3)
        assert on.client.get("/health").json()["replica"]["answers"] is False
    finally:
        standby.start()
