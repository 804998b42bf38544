"""The receiver under load and in trouble: each delivery once, and on disk before it is answered."""

from __future__ import annotations

import json
import os
import socket
import statistics
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path

import httpx
import pytest

from rag_pipeline.errors import ConfigError
from rag_pipeline.serving.webhooks import serve_webhooks, webhook_app
from rag_pipeline.settings import Settings
from rag_pipeline.sources.drops.inbox import Inbox
from rag_pipeline_tests.serving.receivers import DELIVERY, NOW, PAYLOAD, SECRET, Running, signed


def test_a_delivery_that_comes_again_is_a_duplicate_waiting_or_taken(receiver: Running) -> None:
    assert receiver.post(PAYLOAD).status_code == 202
    for _ in range(2):
        answer = receiver.post(PAYLOAD)
        assert (answer.status_code, answer.json()) == (200, {"status": "duplicate"})
        receiver.inbox.accept(f"issues.{DELIVERY}.json", day=date(2024, 5, 1))
    assert receiver.drops == [f"issues.{DELIVERY}.json"]


def test_equal_deliveries_at_once_make_one_drop(receiver: Running) -> None:
    with ThreadPoolExecutor(max_workers=20) as pool:
        answers = list(pool.map(lambda _: receiver.post(PAYLOAD).status_code, range(40)))
    assert sorted(answers) == [200] * 39 + [202]
    assert receiver.drops == [f"issues.{DELIVERY}.json"]


def test_many_deliveries_at_once_all_arrive(receiver: Running) -> None:
    def deliver(number: int) -> tuple[int, float]:
        start = time.perf_counter()
        status = receiver.post(PAYLOAD | {"n": number}, X_GitHub_Delivery=f"delivery-{number}").status_code
        return status, time.perf_counter() - start

    with ThreadPoolExecutor(max_workers=16) as pool:
        answers = list(pool.map(deliver, range(200)))
    assert {status for status, _ in answers} == {202}
    assert len(receiver.drops) == 200
    percentiles = statistics.quantiles([1_000 * seconds for _, seconds in answers], n=20)
    print(f"\n200 deliveries, 16 at once: p50 {percentiles[9]:.1f} ms, p95 {percentiles[18]:.1f} ms")


def test_an_inbox_that_cannot_be_written_is_told_to_try_again(
    receiver: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    fsync = os.fsync

    def fail(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    answer = receiver.post(PAYLOAD)
    assert answer.status_code == 503
    assert "Traceback" not in answer.text
    assert "No space" not in answer.text
    assert receiver.drops == []
    monkeypatch.setattr(os, "fsync", fsync)
    assert receiver.post(PAYLOAD).status_code == 202


def test_what_nobody_foresaw_is_answered_without_a_trace(receiver: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rag_pipeline.serving.webhooks.read_checked", lambda _: 1 / 0)
    answer = receiver.post(PAYLOAD)
    assert (answer.status_code, answer.json()) == (500, {"status": "failed"})


def test_the_loop_answers_others_while_a_drop_is_written(receiver: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    fsync, writing, go_on = os.fsync, threading.Event(), threading.Event()

    def wait(descriptor: int) -> None:
        writing.set()
        assert go_on.wait(10)
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", wait)
    with ThreadPoolExecutor(max_workers=1) as pool:
        delivered = pool.submit(receiver.post, PAYLOAD)
        assert writing.wait(10)
        assert receiver.client.get("/health").json() == {"status": "ok"}
        assert not delivered.done(), "answered before it was on disk"
        go_on.set()
        assert delivered.result().status_code == 202


def test_a_sender_that_hangs_up_leaves_nothing(receiver: Running) -> None:
    body = json.dumps(PAYLOAD).encode()
    head = "".join(f"{name}: {value}\r\n" for name, value in signed(body).items())
    url = receiver.client.base_url
    with socket.create_connection((url.host, url.port or 80)) as raw:
        raw.sendall(f"POST /webhooks/github HTTP/1.1\r\nHost: x\r\n{head}Content-Length: {len(body)}\r\n\r\n".encode())
        raw.sendall(body[:-1])
    assert receiver.client.get("/health").status_code == 200
    assert receiver.drops == []


@pytest.mark.parametrize("environ", [{}, {"GITHUB_WEBHOOK_SECRET": ""}, {"GITHUB_WEBHOOK_SECRET": " \n"}])
def test_without_a_secret_nothing_is_served(tmp_path: Path, environ: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="GITHUB_WEBHOOK_SECRET is not set: put the secret"):
        serve_webhooks(Settings(home=tmp_path), environ=environ, host="127.0.0.1", port=0)
    with pytest.raises(ConfigError):
        webhook_app(secret=" ", inbox=Inbox(str(tmp_path)), max_body_bytes=1, clock=lambda: NOW)


SERVE = """
import os, sys
from pathlib import Path
from rag_pipeline.serving.webhooks import serve_webhooks
from rag_pipeline.settings import Settings
serve_webhooks(Settings(home=Path(sys.argv[1])), environ=os.environ, host="127.0.0.1", port=int(sys.argv[2]))
"""


def test_the_server_takes_a_delivery_logs_it_on_one_line_and_stops_when_told(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "-c", SERVE, str(tmp_path), str(port)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, env=os.environ | {"GITHUB_WEBHOOK_SECRET": SECRET},
    )  # fmt: skip
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client:
            deadline = time.monotonic() + 60
            while time.monotonic() < deadline:
                try:
                    client.get("/health")
                    break
                except httpx.ConnectError:
                    time.sleep(0.05)
            body = json.dumps(PAYLOAD).encode()
            assert client.post("/webhooks/github", content=body, headers=signed(body)).status_code == 202
    finally:
        process.terminate()
        output, _ = process.communicate(timeout=60)
    assert (tmp_path / "inbox" / f"issues.{DELIVERY}.json").is_file()
    assert [line for line in output.splitlines() if "/webhooks/github" in line and "202" in line]
    assert "Traceback" not in output
    assert SECRET not in output
