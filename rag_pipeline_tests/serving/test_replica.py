"""A service that reads from one server and writes to another: nothing on the read path writes."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from psycopg.conninfo import make_conninfo

from rag_pipeline.answering.answerer import Looked, Question
from rag_pipeline.cli.search import search_index
from rag_pipeline.errors import ConfigError
from rag_pipeline.index.api_keys import create_key
from rag_pipeline.index.changes import IndexState
from rag_pipeline.index.database import connected
from rag_pipeline.model import Answer
from rag_pipeline.retrieval.query import SearchQuery
from rag_pipeline.serving.asking import Asking
from rag_pipeline.serving.caches import Caches
from rag_pipeline.settings import Settings, load_settings
from rag_pipeline_tests.serving.apps import NOW, Service, service
from rag_pipeline_tests.serving.asked import Script

NOBODY = "postgresql://nobody@127.0.0.1:1/none"


def read_only(url: str) -> str:
    """The same database, with the writes refused as a standby refuses them."""
    return make_conninfo(url, options="-c default_transaction_read_only=on")


def key_of(url: str) -> dict[str, str]:
    with connected(url) as connection:
        _, text = create_key(connection, tenant="acme", name="wiki", role="write", scopes=["user:ann"], now=NOW)
    return {"X-API-Key": text}


def answers(on: Service, headers: dict[str, str]) -> dict[str, Any]:
    """Everything that reads, asked once; the answers by route."""
    client, found = on.client, {}
    for route, method, body in (
        ("/v1/search?q=roll+back", "GET", None), ("/v1/sources", "GET", None), ("/health", "GET", None),
        ("/v1/ask", "POST", {"question": "how do I roll back?"}),
        ("/v1/context", "POST", {"question": "how do I roll back?", "budget_tokens": 500}),
        ("/v1/chunk", "POST", {"text": "one two three", "path": "a.md", "embed": True}), ("/metrics", "GET", None),
    ):  # fmt: skip
        answer = client.request(method, route, json=body, headers=headers)
        assert answer.status_code == 200, (route, answer.text)
        found[route.split("?")[0]] = answer.text if route == "/metrics" else answer.json()
    return found


def test_everything_that_reads_is_answered_by_a_server_that_takes_no_writes_while_the_primary_is_away(
    indexed: str, tmp_path: Path
) -> None:
    sent = key_of(indexed)
    limited = {"requests_per_month": 1_000}
    with service(NOBODY, tmp_path, replica_url=read_only(indexed), serving=limited) as on:
        for headers in ({}, sent):
            on.clock.now += timedelta(seconds=3)
            found = answers(on, headers)
            assert found["/v1/search"]["hits"][0]["text"] == "roll back with make rollback"
            assert found["/v1/search"]["degraded"] == ""
            health = found["/health"]
            assert (health["status"], health["ready"]) == ("degraded", True)
            assert health["problem"].startswith("the primary does not answer")
            assert health["replica"] == {
                "answers": True, "primary_answers": False, "lag_s": None, "replayed_until": None,
            }  # fmt: skip
        # What has to be written is refused, or waits for the primary.
        thumb = {"query_id": found["/v1/search"]["query_id"], "helpful": True}
        on.services.log.close(timeout_s=0.1)
        assert on.client.post("/v1/feedback", json=thumb, headers=sent).status_code == 503
    with connected(indexed) as connection:
        assert connection.execute("SELECT count(*) FROM rag.query_log").fetchone() == (0,)
        assert connection.execute("SELECT last_used_at FROM rag.api_keys").fetchone() == (None,)


def test_what_is_written_goes_to_the_primary(indexed: str, tmp_path: Path) -> None:
    sent = key_of(indexed)
    with service(indexed, tmp_path, replica_url=read_only(indexed)) as on:
        query_id = on.client.get("/v1/search?q=roll+back", headers=sent).json()["query_id"]
        thumb = {"query_id": query_id, "helpful": True}
        assert on.client.post("/v1/feedback", json=thumb, headers=sent).status_code == 201
        on.services.quotas.flush()
    with connected(indexed) as connection:
        assert connection.execute("SELECT question FROM rag.query_log").fetchall() == [("roll back",)]
        assert connection.execute("SELECT helpful FROM rag.feedback").fetchall() == [(True,)]
        assert connection.execute("SELECT requests FROM rag.requests_served").fetchall() == [(2,)]
        assert connection.execute("SELECT last_used_at IS NOT NULL FROM rag.api_keys").fetchone() == (True,)


def test_without_its_replica_a_service_reads_from_the_primary_and_says_so(indexed: str, tmp_path: Path) -> None:
    with service(indexed, tmp_path, replica_url=NOBODY) as on:
        found = answers(on, {})
        assert found["/v1/search"]["hits"]
        health = found["/health"]
        assert (health["status"], health["ready"]) == ("degraded", True)
        assert health["problem"] == "the replica does not answer: the primary is asked in its place"
        assert (health["replica"]["answers"], health["replica"]["primary_answers"]) == (False, True)
        (fallbacks,) = [
            line for line in found["/metrics"].split("\n") if line.startswith("rag_replica_fallbacks_total")
        ]
        assert float(fallbacks.split()[-1]) > 0
        assert "rag_replica_lag_seconds NaN" in found["/metrics"]
        assert "rag_database_up 1.0" in found["/metrics"]


def test_while_both_are_away_it_says_503(tmp_path: Path, impatient: None) -> None:
    with service(NOBODY, tmp_path, replica_url=NOBODY) as on:
        assert on.client.get("/v1/search?q=x").status_code == 503
        answer = on.client.get("/health")
        assert (answer.status_code, answer.json()["problem"]) == (503, "the database does not answer")
        assert answer.json()["replica"]["answers"] is False


def test_the_command_line_reads_from_the_replica_too(indexed: str, tmp_path: Path) -> None:
    query = SearchQuery(text="roll back", tenant="acme", legs="lexical")
    for urls in ((NOBODY, read_only(indexed)), (indexed, NOBODY)):
        settings = Settings(home=tmp_path, tenant="acme", database_url=urls[0], replica_url=urls[1])
        assert search_index(settings, query)[0].text == "roll back with make rollback"


def test_a_replica_needs_the_address_of_its_primary(tmp_path: Path) -> None:
    both = {"RAG_REPLICA_URL": "postgresql://replica/rag", "DATABASE_URL": "postgresql://primary/rag"}
    settings = load_settings(environ=both | {"RAG_HOME": str(tmp_path)}, cwd=tmp_path)
    assert settings.replica_url == "postgresql://replica/rag"
    with pytest.raises(ConfigError, match="set DATABASE_URL, too"):
        load_settings(environ={"RAG_REPLICA_URL": "postgresql://replica/rag"}, cwd=tmp_path)
    (tmp_path / "rag_pipeline.toml").write_text('replica_url = "postgresql://replica/rag"\n', encoding="utf-8")
    with pytest.raises(ConfigError, match="RAG_REPLICA_URL in the environment"):
        load_settings(environ={}, cwd=tmp_path)


def test_an_answer_is_remembered_for_the_state_that_was_searched_and_for_no_newer_one(asked: Service) -> None:
    # The state was read from a server that is ahead of the one that was searched.
    older = IndexState(space_id=1, changes=1, newest=1, digest="1")
    looked = Looked(asked="how?", hits=(), degraded="", state=older)
    answer = Answer(question="how?", text="So.", status="answered", confidence=1.0)
    script, caches = Script(events=[looked, answer]), Caches(most=10, ttl_s=60.0, monotonic=lambda: 0.0)
    services = asked.services
    asking = Asking(services.settings, reads=services.reads, pool=services.pool, answerer=script, caches=caches)
    question = Question(query=SearchQuery(text="how?", tenant="acme"))
    for _ in range(2):
        assert list(asking.stream(question))[-1].answer.text == "So."  # type: ignore[union-attr]
    assert len(script.questions) == 2
    (kept,) = caches.answers._entries.values()
    assert kept.state == older
