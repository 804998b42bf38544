"""Feedback over HTTP: on what one has asked oneself, kept without secrets."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import httpx
import psycopg

from rag_pipeline.retrieval.query import SearchQuery
from rag_pipeline.serving.caller import Caller
from rag_pipeline.serving.record import note_search
from rag_pipeline_tests.serving.apps import NOW, Service
from rag_pipeline_tests.serving.callers import come_as


def searched(running: Service, question: str = "how to deploy") -> tuple[UUID, UUID]:
    """A search that was answered just now: its id, and the chunk that it found first."""
    services, query = running.services, SearchQuery(text=question, tenant="acme")
    found = services.search(query)
    query_id = note_search(
        services.log, services.metrics, Caller(tenant="acme", role="read"), entrance="search", query=query,
        found=found, asked_at=NOW, milliseconds=3,
    )  # fmt: skip
    assert query_id is not None
    return query_id, found.hits[0].chunk_id


def give(running: Service, query_id: UUID, **more: Any) -> httpx.Response:
    return running.client.post("/v1/feedback", json={"query_id": str(query_id), "helpful": True, **more})


def kept(running: Service) -> list[Any]:
    with psycopg.connect(running.services.settings.database_url or "") as connection:
        return connection.execute("SELECT chunk_id, helpful, reason FROM rag.feedback ORDER BY given_at").fetchall()


def test_a_thumb_is_kept_even_when_it_is_quicker_than_the_log(running: Service) -> None:
    query_id, chunk_id = searched(running)
    answer = give(running, query_id, reason="just so")
    assert (answer.status_code, answer.json()) == (201, {"status": "noted"})
    assert give(running, query_id, chunk_id=str(chunk_id), helpful=False).status_code == 201
    assert sorted(kept(running), key=str) == sorted([(None, True, "just so"), (chunk_id, False, "")], key=str)


def test_what_one_has_not_asked_does_not_exist(running: Service) -> None:
    query_id, chunk_id = searched(running)
    assert give(running, uuid4()).status_code == 404
    assert give(running, query_id, chunk_id=str(uuid4())).status_code == 404
    come_as(running.app, "globex")
    assert give(running, query_id).status_code == 404
    assert give(running, query_id, chunk_id=str(chunk_id)).status_code == 404
    assert kept(running) == []


def test_secrets_in_a_reason_are_not_kept(running: Service) -> None:
    query_id, _ = searched(running)
    assert give(running, query_id, reason="the password=Tr0ub4dor-and-3-horses is old").status_code == 201
    ((_, _, reason),) = kept(running)
    assert "Tr0ub4dor" not in reason
    assert "[REDACTED:" in reason


def test_anything_else_is_refused(running: Service) -> None:
    query_id, _ = searched(running)
    for wrong in (
        {"query_id": "7"}, {"helpful": None}, {"reason": "x" * 2_001}, {"reason": "a\x00"}, {"stars": 5},
        {"chunk_id": "x"}, {"tenant": "acme"},
    ):  # fmt: skip
        body = {"query_id": str(query_id), "helpful": True} | wrong
        assert running.client.post("/v1/feedback", json=body).status_code == 422, wrong
    assert kept(running) == []


def test_the_log_says_what_was_asked_and_with_which_filters(running: Service) -> None:
    services = running.services
    query = SearchQuery(text="deploy", tenant="acme", k=3, repository="handbook", scopes=("user:ann",))
    note_search(
        services.log, services.metrics, Caller(tenant="acme", role="read", key_id="k"), entrance="context",
        query=query, found=services.search(query), asked_at=NOW, milliseconds=3,
    )  # fmt: skip
    assert services.log.flush(30)
    with psycopg.connect(services.settings.database_url or "") as connection:
        (row,) = connection.execute("SELECT entrance, key_id, parameters, outcome FROM rag.query_log").fetchall()
    assert row == ("context", "k", {"k": 3, "repository": "handbook", "scopes": ["user:ann"]}, "found")
