"""A receiver on a real socket: one server for all tests, for each an application and an inbox of its own."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send

from rag_pipeline.serving.webhooks import webhook_app
from rag_pipeline.sources.drops.inbox import Inbox
from rag_pipeline_tests.serving.receivers import MAX_BODY_BYTES, NOW, SECRET, Running


class Served:
    """The application that the server asks at the moment; starting and stopping a server takes longer than a test."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.app: ASGIApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert self.app is not None
        await self.app(scope, receive, send)


@pytest.fixture(scope="session")
def served() -> Iterator[Served]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        served = Served(f"http://127.0.0.1:{listening.getsockname()[1]}")
        server = uvicorn.Server(uvicorn.Config(served, log_level="critical", lifespan="off"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        yield served
        server.should_exit = True
        thread.join()


@pytest.fixture
def receiver(served: Served, tmp_path: Path) -> Iterator[Running]:
    folder = tmp_path / "inbox"
    served.app = webhook_app(secret=SECRET, inbox=Inbox(str(folder)), max_body_bytes=MAX_BODY_BYTES, clock=lambda: NOW)
    limits = httpx.Limits(max_connections=50)
    with httpx.Client(base_url=served.url, limits=limits, trust_env=False, timeout=10) as client:
        yield Running(client=client, inbox=Inbox(str(folder)), folder=folder)
