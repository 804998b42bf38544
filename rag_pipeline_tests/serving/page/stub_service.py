"""A service that speaks the HTTP contract with canned data, for tests of the page alone: it fails, waits and streams as
a test tells it to."""

from __future__ import annotations

import asyncio
import json
import threading
import uuid
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

from fastapi import FastAPI, Request
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response, StreamingResponse

from rag_pipeline.serving.page import router

QUERY_ID = "0192f5a4-7c1e-7e10-9d5b-0a4b5f1c2d3e"
MOST_WAITING_S = 20.0
REPOSITORY = "https://github.com/acme/warehouse/blob/4f1c2aa"
CODE = '''def requeue(self, delivery: Delivery, *, now: datetime) -> None:
    """Put a delivery back after a transient failure, later each time; 🚀 the retry budget bounds it."""
    if delivery.attempts >= self._budget.retries:
        raise RetriesSpent(f"{delivery.id} failed {delivery.attempts} times: look at its reason file")
    pause = backoff(delivery.attempts, base_s=self._budget.base_s, most_s=self._budget.most_s)
    self._queue.put(delivery, not_before=now + pause)'''
PROSE = """## When a delivery fails

A delivery that fails for a transient reason is put back, and tried again after a pause that doubles each time. The
retry budget says how often; it is counted per delivery, not per run. What failed for good moves to `rejected/` beside
a file with the reason."""


def hit(
    rank: int = 1, *, text: str = PROSE, words: tuple[str, ...] = ("retry", "budget"), **other: Any
) -> dict[str, Any]:
    """A hit as the service gives it, with the words marked in its text, counted in code points."""
    spans = [
        [at, at + len(word)] for word in words for at in range(len(text)) if text[at : at + len(word)].lower() == word
    ]
    return {
        "rank": rank, "score": round(0.9 - 0.07 * rank, 3), "title": "Operations", "text": text,
        "url": f"{REPOSITORY}/docs/operations.md#L{20 * rank}-L{20 * rank + 6}",
        "location": f"docs/operations.md:{20 * rank}-{20 * rank + 6}", "repository": "acme/warehouse",
        "source_type": "docs", "source_id": "acme/warehouse:docs/operations.md", "language": "markdown",
        "heading_path": ["Operations", "When a delivery fails"], "start_line": 20 * rank, "end_line": 20 * rank + 6,
        "document_id": str(uuid.UUID(int=rank)), "chunk_id": str(uuid.UUID(int=100 + rank)),
        "updated_at": "2026-11-20T09:30:00+00:00", "tokens": 96,
        "legs": [{"leg": "lexical", "rank": 7, "score": 4.52}, {"leg": "vector", "rank": rank, "score": 0.741}],
        "matched_terms": ["budget", "retri"], "highlights": sorted(spans),
    } | other  # fmt: skip


def code_hit(rank: int = 2, **other: Any) -> dict[str, Any]:
    """A hit in code, whose title is its path."""
    path = "warehouse/inbox/requeue.py"
    return hit(
        rank, text=CODE,
        **{
            "title": path, "location": f"{path}:41-46", "url": f"{REPOSITORY}/{path}#L41-L46", "source_type": "code",
            "language": "python", "heading_path": ["Inbox", "requeue"], "start_line": 41, "end_line": 46,
            "legs": [{"leg": "lexical", "rank": 1, "score": 11.2}, {"leg": "vector", "rank": None, "score": 0.402}],
        } | other,
    )  # fmt: skip


def issue_hit(rank: int = 3, **other: Any) -> dict[str, Any]:
    """A hit in the thread of an issue."""
    return hit(
        rank, text="We saw the same after the upgrade: the retry budget was spent within a minute, because every "
        "worker counted for itself. Counting per delivery fixed it for us.",
        **{
            "title": "Retries pile up after an outage (#412)", "location": "acme/warehouse#412",
            "url": "https://github.com/acme/warehouse/issues/412#issuecomment-99", "source_type": "github_issue",
            "language": None, "heading_path": ["Comment by ada"],
        } | other,
    )  # fmt: skip


def source(number: int, found: dict[str, Any], *, quote: str, support: float = 0.91) -> dict[str, Any]:
    """A hit as an answer cites it."""
    kept = (
        "title", "url", "location", "score", "repository", "source_type", "start_line", "end_line", "chunk_id",
        "document_id",
    )  # fmt: skip
    return {"number": number, "quote": quote, "support": support} | {name: found[name] for name in kept}


TEXT = """A delivery that failed for a **transient** reason is put back and tried again after a pause that doubles \
each time [Source 1]. How often is bounded by its retry budget:

- the budget is counted per delivery, not per run [Source 1]
- `Inbox.requeue` raises `RetriesSpent` once it is used up [Source 2]

What failed for good moves to `rejected/`, beside a file that says why [Source 1]."""


def answer(**other: Any) -> dict[str, Any]:
    """The body of an answer that a model wrote."""
    sources = [
        source(1, hit(1), quote="The retry budget says how often; it is counted per delivery, not per run."),
        source(2, code_hit(), quote=CODE.splitlines()[3].strip(), support=0.55),
    ]
    return {
        "query_id": QUERY_ID, "question": "how often is a delivery tried again?", "asked": "", "status": "answered",
        "text": TEXT, "sources": sources, "confidence": 0.83,
        "follow_ups": ["How long is the pause?", "Who reads rejected/?"], "removed_citations": 0,
        "model": "claude-haiku", "input_tokens": 1834, "output_tokens": 121, "cost_usd": 0.00244, "degraded": "",
        "milliseconds": 1920,
    } | other  # fmt: skip


SOURCES = [
    {"repository": repository, "source_type": kind, "documents": documents, "chunks": documents * 8,
     "newest_change": "2026-11-21T16:00:00+00:00", "newest_indexed": "2026-11-22T02:00:00+00:00"}
    for repository, kind, documents in [
        ("acme/warehouse", "docs", 214), ("acme/warehouse", "code", 1871), ("acme/warehouse", "github_issue", 633),
        ("acme/handbook", "docs", 96),
    ]
]  # fmt: skip


@dataclass
class StubService:
    """What the service says next, and what it was asked."""

    hits: Callable[[str], list[dict[str, Any]]] = lambda q: [hit(1), code_hit(2), issue_hit(3)]
    answer: dict[str, Any] = field(default_factory=answer)
    sources: list[dict[str, Any]] = field(default_factory=lambda: SOURCES)
    events: list[tuple[str, Any]] | None = None
    """Of a streamed answer; None: `looked`, the text in pieces, and the answer."""
    degraded: str = ""
    key: str | None = None
    """That requests must bring; None: none."""
    failures: dict[str, list[tuple[int, dict[str, str]]]] = field(default_factory=dict)
    """By path: the statuses and headers of the next requests, before it works again."""
    gates: dict[str, threading.Event] = field(default_factory=dict)
    """By question: its result, or the rest of its answer, is held back until the test lets it go."""
    requests: list[tuple[str, Any]] = field(default_factory=list)
    """Path, and parameters or body."""

    def asked(self, path: str) -> list[Any]:
        """What a path was asked, in order."""
        return [given for asked, given in self.requests if asked == path]

    async def let_pass(self, request: Request, given: Any) -> None:
        """Note a request; refuse it when this is what it shall meet.

        Raises:
            HTTPException: no or another key, or a failure that a test ordered.
        """
        path = request.url.path
        self.requests.append((path, given))
        if self.key is not None and request.headers.get("authorization") != f"Bearer {self.key}":
            raise HTTPException(401, "the key is missing or unknown: send it as Authorization: Bearer rag_…")
        if failures := self.failures.get(path):
            status, headers = failures.pop(0)
            raise HTTPException(status, f"told to fail with {status}: <b>come back</b>", headers=headers)

    async def hold(self, question: str) -> None:
        """Wait at the gate of a question, where it has one."""
        if (gate := self.gates.get(question)) is not None:
            await asyncio.to_thread(gate.wait, MOST_WAITING_S)

    async def stream(self, question: str) -> AsyncIterator[bytes]:
        """The events of an answer; in odd pieces, as a network may cut them."""
        text = str(self.answer["text"])
        looked = {"asked": question, "hits": [hit(1), code_hit(2)], "degraded": ""}
        pieces = [("text", {"text": text[at : at + 40]}) for at in range(0, len(text), 40)]
        events = self.events or [("looked", looked), *pieces, ("answer", {**self.answer, "question": question})]
        yield b": hello\r\n\r\n"
        for number, (name, data) in enumerate(events):
            if number == 3:
                await self.hold(question)
            written = f"event: {name}\r\ndata: {json.dumps(data, ensure_ascii=False)}\r\n\r\n".encode()
            yield written[:17]
            await asyncio.sleep(0)
            yield written[17:]


def stub_app(stub: StubService) -> FastAPI:
    """The page, and the routes that it asks."""
    app = FastAPI()
    app.include_router(router)

    @app.exception_handler(HTTPException)
    async def refused(request: Request, error: HTTPException) -> Response:
        del request
        body = {"error": {"code": str(error.status_code), "message": error.detail}}
        return JSONResponse(body, status_code=error.status_code, headers=error.headers)

    @app.get("/v1/search")
    async def search(request: Request) -> Any:
        given = dict(request.query_params)
        await stub.let_pass(request, given)
        hits = stub.hits(given["q"])[: int(given["k"])]
        await stub.hold(given["q"])
        return {"query_id": QUERY_ID, "hits": hits, "degraded": stub.degraded, "milliseconds": 12}

    @app.get("/v1/sources")
    async def sources(request: Request) -> Any:
        await stub.let_pass(request, {})
        return {"sources": stub.sources}

    @app.post("/v1/ask")
    async def ask(request: Request) -> Any:
        given = await request.json()
        await stub.let_pass(request, given)
        if "text/event-stream" not in request.headers["accept"]:
            return stub.answer
        return StreamingResponse(stub.stream(given["question"]), media_type="text/event-stream")

    @app.post("/v1/feedback", status_code=201)
    async def feedback(request: Request) -> Any:
        await stub.let_pass(request, await request.json())
        return {"status": "stored"}

    return app
