"""A service over a real index of a few documents: in this process, or on a real port."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import uvicorn
from fastapi import FastAPI
from fastapi.testclient import TestClient
from starlette.types import ASGIApp

from rag_pipeline.embedding.spaces import config_of
from rag_pipeline.index.database import connected
from rag_pipeline.index.spaces import SpaceVectors, activate, create_space
from rag_pipeline.index.writer import Entry
from rag_pipeline.model import text_hash
from rag_pipeline.serving.app import make_app
from rag_pipeline.serving.compose import services_of
from rag_pipeline.serving.server import server_config
from rag_pipeline.serving.services import Services
from rag_pipeline.settings import Embedding, Settings
from rag_pipeline_tests.end_to_end.installation import WordEmbedder
from rag_pipeline_tests.knowledge import entry, write

NOW = datetime(2024, 6, 2, 12, tzinfo=UTC)
CORPUS = (
    entry("install.md", "install with pip install tool", "set HOME before the first start", at=2),
    entry("deploy.md", "deploy with make deploy", "roll back with make rollback", at=3),
    entry("oncall.md", "who is on call is written in the rota of ann", scope="user:ann", at=4),
    entry("plans.md", "globex keeps its plans in the vault", tenant="globex", at=5),
)
"""Of the tenant acme, one of them for Ann's eyes, and one document of another tenant."""


def index(url: str, *entries: Entry) -> None:
    """Index these with their vectors, in a space that answers."""
    embedder = WordEmbedder()
    with connected(url) as connection:
        space = create_space(
            connection, provider="local", model="words", recipe=embedder.recipe, dimensions=embedder.dimensions,
            config=config_of(Embedding(model="words")),
        )  # fmt: skip
        write(connection, *entries)
        for tenant in {e.document.tenant for e in entries}:
            texts = list({c.text: None for e in entries if e.document.tenant == tenant for c in e.chunks})
            vectors = np.array([embedder.embed_query(text) for text in texts], dtype=np.float32)
            SpaceVectors(connection, space, tenant=tenant).store([text_hash(text) for text in texts], vectors)
        activate(connection, space)


@dataclass(kw_only=True)
class Clock:
    """A clock that a test moves."""

    now: datetime = NOW

    def __call__(self) -> datetime:
        return self.now


@dataclass(frozen=True, kw_only=True)
class Service:
    """A service in this process; it is asked as if from this machine."""

    services: Services
    app: FastAPI
    client: TestClient
    clock: Clock


@contextmanager
def service(
    url: str | None, home: Path, *, is_local: bool = True, environ: Mapping[str, str] | None = None, **settings: Any
) -> Iterator[Service]:
    """A service over a database; `settings` are those of the file, such as `serving={"anonymous": "never"}`."""
    clock = Clock()
    chosen = Settings(**{"home": home, "tenant": "acme", "database_url": url} | settings)
    made = services_of(
        chosen, environ or {}, is_local=is_local, clock=clock, make=lambda *_, **__: WordEmbedder()
    )  # fmt: skip
    with made as services:
        app = make_app(services)
        with TestClient(app, base_url="http://localhost", raise_server_exceptions=False) as client:
            yield Service(services=services, app=app, client=client, clock=clock)


@contextmanager
def on_a_port(app: ASGIApp, *, headers_timeout_s: float = 10.0) -> Iterator[str]:
    """The address at which the server of `rag-pipeline serve` answers with this app."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        config = server_config(app, host="127.0.0.1", port=0, log_config=None, headers_timeout_s=headers_timeout_s)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()
