"""A receiver on a real socket (one server, an application for each test), and services over a small index."""

from __future__ import annotations

import itertools
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send

from rag_pipeline.embedded import EmbeddedPostgres
from rag_pipeline.serving.webhooks import webhook_app
from rag_pipeline.sources.drops.inbox import Inbox
from rag_pipeline_tests.databases import new_database
from rag_pipeline_tests.serving.apps import CORPUS, Service, index, on_a_port, service
from rag_pipeline_tests.serving.receivers import MAX_BODY_BYTES, NOW, SECRET, Running

_numbers = itertools.count()


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


@pytest.fixture(scope="session")
def corpus_template(server: EmbeddedPostgres, template: str) -> Iterator[str]:
    """The name of a database with `apps.CORPUS` in it, that tests copy."""
    with new_database(server, "serving_corpus", template=template) as url:
        index(url, *CORPUS)
        yield "serving_corpus"


@pytest.fixture
def indexed(server: EmbeddedPostgres, corpus_template: str) -> Iterator[str]:
    """The address of a new database with `apps.CORPUS` in it."""
    with new_database(server, f"serving_{next(_numbers)}", template=corpus_template) as url:
        yield url


@pytest.fixture
def running(indexed: str, tmp_path: Path) -> Iterator[Service]:
    """A service over that index, as the settings have it by default."""
    with service(indexed, tmp_path) as running:
        yield running


@pytest.fixture
def address(running: Service) -> Iterator[str]:
    """Where the same service listens on a real port."""
    with on_a_port(running.app) as address:
        yield address
