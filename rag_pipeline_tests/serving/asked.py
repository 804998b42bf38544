"""Asking a service: as somebody, and with an answerer that does what a test says."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from fastapi import FastAPI
from fastapi.testclient import TestClient

from rag_pipeline.answering.answerer import Looked, Question, Wrote
from rag_pipeline.model import Answer
from rag_pipeline.serving import depends
from rag_pipeline.serving.app import make_app
from rag_pipeline.serving.asking import Asking
from rag_pipeline.serving.caches import Caches
from rag_pipeline.serving.caller import Caller
from rag_pipeline_tests.serving.apps import Service
from rag_pipeline_tests.serving.callers import let_in

Event = Looked | Wrote | Answer

ACME = Caller(tenant="acme", role="read")
ANN = Caller(tenant="acme", role="read", scopes=("user:ann",))
GLOBEX = Caller(tenant="globex", role="read", scopes=("user:*",))


@contextmanager
def asking_as(service: Service, caller: Caller) -> Iterator[TestClient]:
    """A client whose requests come from this caller."""
    let_in(service.app, caller)
    try:
        yield service.client
    finally:
        del service.app.dependency_overrides[depends._admission]


@dataclass(kw_only=True)
class Script:
    """An answerer that gives these events; `before` is called before each of them."""

    events: Iterable[Event | Exception]
    before: Callable[[int], object] = lambda number: None
    questions: list[Question] = field(default_factory=list)
    closed: threading.Event = field(default_factory=threading.Event)
    """Somebody has stopped it, or it came to its end."""

    def stream(self, question: Question) -> Iterator[Event]:
        """As `Answerer.stream`."""
        self.questions.append(question)
        try:
            for number, event in enumerate(self.events):
                self.before(number)
                if isinstance(event, Exception):
                    raise event
                yield event
        finally:
            self.closed.set()


def app_with(service: Service, script: Script) -> FastAPI:
    """The same service, but that the script answers, and nothing is remembered of what was answered before."""
    services, caches = service.services, Caches(most=10, ttl_s=60.0, monotonic=time.monotonic)
    asking = Asking(services.settings, reads=services.reads, pool=services.pool, answerer=script, caches=caches)
    return make_app(replace(services, asking=asking, caches=caches))


@contextmanager
def scripted(service: Service, script: Script) -> Iterator[TestClient]:
    """A client of `app_with`."""
    with TestClient(app_with(service, script), base_url="http://localhost", raise_server_exceptions=False) as client:
        yield client


def events_of(text: str) -> list[tuple[str, Any]]:
    """What a stream of server-sent events says: names and data; comments are left out."""
    found = []
    for block in text.replace("\r\n", "\n").split("\n\n"):
        lines = [line.partition(": ") for line in block.split("\n") if line and not line.startswith(":")]
        if lines:
            said = {name: value for name, _, value in lines}
            found.append((said["event"], json.loads(said["data"])))
    return found
