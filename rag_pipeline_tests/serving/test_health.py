"""Health: whether it runs, whether it can answer, and how fresh the index is; also while there is no database."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import date, timedelta
from pathlib import Path

import httpx
import psycopg
import pytest

from rag_pipeline.index.api_keys import create_key
from rag_pipeline.index.bookkeeping import SourceKey
from rag_pipeline.index.database import connected
from rag_pipeline.index.freshness import note_complete
from rag_pipeline.index.migrations import migrate
from rag_pipeline.settings.sections import Repository
from rag_pipeline_tests.embedded.servers import temporary_postgres
from rag_pipeline_tests.serving.apps import CORPUS, NOW, Service, index, on_a_port, service
from rag_pipeline_tests.serving.receivers import DELIVERY, PAYLOAD, SECRET, signed
from rag_pipeline_tests.serving.test_gate import key, with_doors

REPOSITORIES = tuple(
    Repository(source="/nowhere", name=name, tenant=tenant, start_date=date(2024, 5, 1))
    for name, tenant in (("handbook", "acme"), ("plans", "globex"))
)
NOBODY = "postgresql://postgres@127.0.0.1:1/rag"


def complete(url: str, tenant: str, repository: str, *, hours_ago: float) -> None:
    with connected(url) as connection:
        source = SourceKey(tenant=tenant, repository=repository, source="git")
        note_complete(connection, source, until=NOW - timedelta(hours=hours_ago), now=NOW)


def test_what_runs_is_live_and_ready(running: Service, address: str) -> None:
    assert running.client.get("/health/live").json() == {"status": "ok", "live": True}
    answer = httpx.get(f"{address}/health", trust_env=False)
    assert (answer.status_code, answer.json()) == (200, {
        "status": "ok", "live": True, "ready": True, "index": [], "problem": None, "replica": None,
    })  # fmt: skip


def test_it_tells_a_tenant_how_fresh_its_own_sources_are_and_strangers_nothing(indexed: str, tmp_path: Path) -> None:
    complete(indexed, "acme", "handbook", hours_ago=1)
    complete(indexed, "globex", "plans", hours_ago=2)
    with service(indexed, tmp_path, repositories=REPOSITORIES) as running:
        anonymous = running.client.get("/health").json()
        assert anonymous["status"] == "ok"
        (own,) = anonymous["index"]
        assert own | {"last_indexed": 0} == {
            "repository": "handbook", "source": "git", "state": "fresh", "lag_s": 3_600.0, "last_indexed": 0,
            "complete_until": "2024-06-02T11:00:00Z",
        }  # fmt: skip
        (theirs,) = running.client.get("/health", headers=key(running)).json()["index"]
        assert (theirs["repository"], theirs["lag_s"]) == ("plans", 7_200.0)
        for stranger in ({"Host": "evil.example"}, {"X-API-Key": "rag_wrong"}, {"Authorization": "Bearer x"}):
            answer = running.client.get("/health", headers=stranger)
            assert (answer.status_code, answer.json()["index"]) == (200, None)
            assert "plans" not in answer.text
        # A source that is too old makes the whole degraded, and is looked at again after two seconds.
        complete(indexed, "acme", "handbook", hours_ago=1)
        running.clock.now += timedelta(days=30)
        later = running.client.get("/health")
        assert (later.status_code, later.json()["status"]) == (200, "degraded")
        assert {row["state"] for row in later.json()["index"]} == {"stale"}


def test_health_is_looked_up_once_for_all_who_ask_at_a_time(running: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    looked = []
    look = running.services.conditions._condition
    monkeypatch.setattr(type(running.services.conditions), "_condition", lambda _: looked.append(1) or look())
    for _ in range(5):
        assert running.client.get("/health").status_code == 200
    assert len(looked) == 1
    running.clock.now += timedelta(seconds=2)
    running.client.get("/health")
    assert len(looked) == 2


def test_nothing_indexed_and_an_old_schema_are_told_apart(database: str, tmp_path: Path) -> None:
    with service(database, tmp_path) as running:
        answer = running.client.get("/health")
        assert (answer.status_code, answer.json()["status"]) == (200, "degraded")
        assert answer.json()["problem"].startswith("nothing is indexed yet")
    with connected(database) as connection:
        connection.execute("DELETE FROM rag.schema_migrations WHERE version = 6")
    with service(database, tmp_path) as running:
        answer = running.client.get("/health")
        assert (answer.status_code, answer.json()["ready"]) == (503, False)
        assert answer.json()["problem"] == "the schema lacks 1 migrations: run `rag-pipeline migrate`"


def test_without_a_database_it_starts_says_so_and_answers_503(tmp_path: Path) -> None:
    with service(NOBODY, tmp_path) as running:
        with_doors(running)
        assert running.client.get("/health/live").status_code == 200
        answer = running.client.get("/health")
        assert (answer.status_code, answer.json()["status"]) == (503, "unavailable")
        assert answer.json()["problem"] == "the database does not answer"
        refused = running.client.get("/v1/read", headers={"X-API-Key": f"rag_{'0' * 12}_{'A' * 43}"})
        assert (refused.status_code, refused.headers["Retry-After"]) == (503, "5")
        assert refused.json()["error"]["code"] == "unavailable"
        assert "127.0.0.1" not in refused.text


def test_the_service_takes_deliveries_if_it_has_their_secret(indexed: str, tmp_path: Path) -> None:
    body = json.dumps(PAYLOAD).encode()
    with service(indexed, tmp_path, environ={"GITHUB_WEBHOOK_SECRET": SECRET}, serving={"max_body_bytes": 1_000}) as on:
        assert on.client.post("/webhooks/github", content=body, headers=signed(body)).status_code == 202
        assert on.services.inbox.read(f"issues.{DELIVERY}.json", max_bytes=10_000)
        again = on.client.post("/webhooks/github", content=body, headers=signed(body))
        assert (again.status_code, again.json()) == (200, {"status": "duplicate"})
        forged = on.client.post("/webhooks/github", content=body, headers=signed(body, secret="other"))
        assert (forged.status_code, forged.json()["error"]["code"]) == (401, "unauthorized")
        # GitHub's limit is its own, not that of requests.
        large = json.dumps(PAYLOAD | {"text": "x" * 5_000}).encode()
        headers = signed(large, X_GitHub_Delivery="large")
        assert on.client.post("/webhooks/github", content=large, headers=headers).status_code == 202
    with service(indexed, tmp_path) as off:
        refused = off.client.post("/webhooks/github", content=body, headers=signed(body))
        assert refused.status_code == 404
        assert "GITHUB_WEBHOOK_SECRET" in refused.json()["error"]["message"]


@pytest.mark.slow
def test_health_answers_while_postgres_restarts_and_everything_recovers_by_itself(tmp_path: Path) -> None:
    with temporary_postgres() as server:
        migrate(server.url())
        index(server.url(), *CORPUS)
        with service(server.url(), tmp_path) as running, on_a_port(with_doors(running).app) as address:
            sent = key(running)
            seen: list[tuple[float, int]] = []

            def ask(path: str) -> int:
                return httpx.get(f"{address}{path}", headers=sent, trust_env=False, timeout=30).status_code

            assert (ask("/health"), ask("/v1/read")) == (200, 200)
            with ThreadPoolExecutor(max_workers=8) as busy:
                # Connections are in use and in the pool when the server goes.
                assert set(busy.map(ask, ["/v1/read"] * 40)) == {200}
                assert server.stop()
                running.clock.now += timedelta(minutes=1)
                during = list(busy.map(ask, ["/v1/read"] * 8))
                for _ in range(4):
                    running.clock.now += timedelta(seconds=3)
                    started = time.monotonic()
                    status = ask("/health")
                    seen.append((time.monotonic() - started, status))
                assert ask("/health/live") == 200
                server.start()
                back = time.monotonic()
                while ask("/v1/read") != 200:
                    assert time.monotonic() - back < 30
                running.clock.now += timedelta(seconds=3)
                assert ask("/health") == 200
                assert set(busy.map(ask, ["/v1/read"] * 40)) == {200}
            print(f"\nslowest answer of /health without a database: {max(seen)[0]:.2f} s; back after "
                  f"{time.monotonic() - back:.1f} s")  # fmt: skip
            assert set(during) == {503}
            assert {status for _, status in seen} == {503}
            assert max(seen)[0] < 10


SLOW_ROUTE = """
import os, sys, time
from rag_pipeline.serving import app as module
from rag_pipeline.serving.depends import Reader, ServicesOf
make = module.make_app
def with_a_slow_route(services):
    app = make(services)
    @app.get("/v1/slow")
    async def slow(caller: Reader, services: ServicesOf) -> str:
        print("begun", flush=True)
        return await services.workers.run(lambda: time.sleep(1.5) or "done")
    return app
import rag_pipeline.serving.server as server
server.make_app = with_a_slow_route
sys.argv = ["rag-pipeline", "serve", "--port", sys.argv[1]]
from rag_pipeline.cli import main
main()
"""


@pytest.mark.slow
def test_the_command_serves_logs_json_and_ends_in_order_when_told(indexed: str, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with connected(indexed) as connection:
        _, text = create_key(connection, tenant="acme", name="ci", role="read", now=NOW)
    environ = os.environ | {"DATABASE_URL": indexed, "RAG_HOME": str(tmp_path)}
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW_ROUTE, str(port)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=environ, cwd=tmp_path,
    )  # fmt: skip
    try:
        url = f"http://127.0.0.1:{port}"
        with httpx.Client(base_url=url, trust_env=False, timeout=30) as client, ThreadPoolExecutor() as asking:
            _until_it_listens(client)
            assert client.get("/health").json()["ready"]
            slow = asking.submit(client.get, "/v1/slow?q=hush", headers={"X-API-Key": text, "X-Request-ID": "mine"})
            assert process.stdout is not None
            while "begun" not in process.stdout.readline():
                pass
            process.send_signal(signal.SIGTERM)
            assert slow.result().json() == "done", "what has begun is finished"
        lines, told = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 0, told
    assert f"Serving on {url}" in told
    logged = [json.loads(line) for line in lines.splitlines()]
    (asked,) = [line for line in logged if line["message"] == "request" and line["route"] == "/v1/slow"]
    assert (asked["status"], asked["tenant"], asked["request_id"]) == (200, "acme", "mine")
    assert asked["ms"] >= 1_000
    assert text not in lines + told
    assert "hush" not in lines + told
    # The last requests were counted, although nobody waited for that.
    with psycopg.connect(indexed) as connection:
        assert connection.execute("SELECT sum(requests) FROM rag.requests_served").fetchone() == (1,)


def _until_it_listens(client: httpx.Client) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            client.get("/health/live")
        except httpx.ConnectError:
            time.sleep(0.1)
        else:
            return
    raise AssertionError("nothing listens")
