"""The receiver of GitHub's webhook deliveries: checks who sent one, and drops it into the inbox.

Nothing is read into a delivery here beyond what is needed to store it; what it means is found out by the pipeline.
A delivery is answered with 202 when it is on disk, and not before.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import logging
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from urllib.parse import parse_qs

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from rag_pipeline.bounded_json import Malformed, read_checked, storable
from rag_pipeline.errors import ConfigError, ItemError
from rag_pipeline.settings import Settings
from rag_pipeline.sources.drops.inbox import Inbox
from rag_pipeline.sources.drops.parse import DELIVERY_ID, EVENT_NAME

_log = logging.getLogger(__name__)
_READ_TIMEOUT_S = 30.0  # GitHub itself gives up after 10
_GRACE_S = 30


class Receiver:
    """Takes deliveries that are signed with the secret into the inbox."""

    def __init__(
        self, *, secret: str, inbox: Inbox, max_body_bytes: int, clock: Callable[[], datetime],
        max_drop_bytes: int | None = None,
    ) -> None:  # fmt: skip
        self._secret = secret.encode()
        self._inbox = inbox
        self._max_body_bytes = max_body_bytes
        self._clock = clock
        self._max_drop_bytes = max_drop_bytes

    async def receive(self, request: Request) -> Response:
        """POST /webhooks/github."""
        signature = request.headers.get("x-hub-signature-256")
        if signature is None:
            raise HTTPException(401, "the X-Hub-Signature-256 header is missing")
        body = await self._body(request)
        if not self._is_signed(body, signature):
            raise HTTPException(401, "the signature does not fit the body and the secret")
        event = request.headers.get("x-github-event", "")
        delivery = request.headers.get("x-github-delivery", "")
        if not EVENT_NAME.fullmatch(event):
            raise HTTPException(400, "the X-GitHub-Event header is missing or names no event")
        if not DELIVERY_ID.fullmatch(delivery):
            raise HTTPException(400, "the X-GitHub-Delivery header is missing or holds no id")
        text = _json_text(body, request.headers.get("content-type", ""))
        drop = await run_in_threadpool(_drop, text, event=event, delivery=delivery, received_at=self._clock())
        if self._max_drop_bytes is not None and len(drop) > self._max_drop_bytes:
            # What was answered with 202 must not be refused by the inbox later.
            raise HTTPException(
                413, f"the delivery is a drop of more than {self._max_drop_bytes:,} bytes (drops.max_drop_bytes)"
            )
        if event == "ping":
            return JSONResponse({"status": "pong"})
        return await self._store(f"{event}.{delivery}.json", drop)

    async def _store(self, name: str, drop: bytes) -> Response:
        try:
            is_new = await run_in_threadpool(self._inbox.put, name, drop)
        except Exception:
            # Each store has errors of its own. GitHub marks the delivery as failed, so that it can be sent again.
            _log.exception("%s could not be written to the inbox", name)
            raise HTTPException(503, "the inbox cannot be written at the moment: deliver again") from None
        if is_new:
            return JSONResponse({"status": "accepted"}, status_code=202)
        return JSONResponse({"status": "duplicate"})

    async def _body(self, request: Request) -> bytes:
        declared = request.headers.get("content-length", "")
        if declared.isdecimal() and int(declared[:20]) > self._max_body_bytes:
            raise self._too_large()
        body = bytearray()
        try:
            async with asyncio.timeout(_READ_TIMEOUT_S):
                async for piece in request.stream():
                    body += piece
                    if len(body) > self._max_body_bytes:
                        raise self._too_large()
        except TimeoutError:
            raise HTTPException(408, "the body did not arrive in time") from None
        except ClientDisconnect:
            raise HTTPException(400, "the body is incomplete") from None
        return bytes(body)

    def _too_large(self) -> HTTPException:
        return HTTPException(413, f"the body is larger than {self._max_body_bytes:,} bytes")

    def _is_signed(self, body: bytes, signature: str) -> bool:
        expected = "sha256=" + hmac.new(self._secret, body, hashlib.sha256).hexdigest()
        # As bytes: strings that are not ASCII cannot be compared in constant time.
        return hmac.compare_digest(expected.encode(), signature.encode("utf-8", "replace"))


def webhook_app(
    *, secret: str, inbox: Inbox, max_body_bytes: int, clock: Callable[[], datetime],
    max_drop_bytes: int | None = None,
) -> Starlette:  # fmt: skip
    """The application with `POST /webhooks/github` and `GET /health`; every answer is a JSON object.

    Raises:
        ConfigError: the secret is empty, so that anybody could sign.
    """
    if not secret.strip():
        raise ConfigError("the webhook's secret is empty: give the receiver the secret that GitHub signs with")
    receiver = Receiver(
        secret=secret, inbox=inbox, max_body_bytes=max_body_bytes, clock=clock, max_drop_bytes=max_drop_bytes
    )
    routes = [
        Route("/webhooks/github", receiver.receive, methods=["POST"]),
        Route("/health", _health, methods=["GET"]),
    ]
    return Starlette(routes=routes, exception_handlers={HTTPException: _refused, Exception: _failed})


def serve_webhooks(settings: Settings, *, environ: Mapping[str, str], host: str, port: int) -> None:
    """Receive deliveries until this process is told to stop; those that have begun are finished first.

    Raises:
        ConfigError: the variable with the secret is not set.
    """
    variable = settings.webhooks.secret_env
    secret = environ.get(variable, "")
    if not secret.strip():
        raise ConfigError(
            f"{variable or 'webhooks.secret_env'} is not set: put the secret of the webhook into this variable, "
            "the same as on GitHub under Settings, Webhooks, Secret"
        )
    app = webhook_app(
        secret=secret, inbox=Inbox(settings.inbox_url), max_body_bytes=settings.webhooks.max_body_bytes,
        clock=lambda: datetime.now(UTC), max_drop_bytes=settings.drops.max_drop_bytes,
    )  # fmt: skip
    config = uvicorn.Config(app, host=host, port=port, server_header=False, timeout_graceful_shutdown=_GRACE_S)
    uvicorn.Server(config).run()


def _json_text(body: bytes, content_type: str) -> bytes:
    """The JSON of a body, which GitHub sends as it is or as the field `payload` of a form."""
    kind = content_type.partition(";")[0].strip().lower()
    if kind == "application/json":
        return body
    if kind != "application/x-www-form-urlencoded":
        raise HTTPException(415, "the body must be application/json or application/x-www-form-urlencoded")
    try:
        (payload,) = parse_qs(body.decode("ascii"), max_num_fields=10, strict_parsing=True)["payload"]
    except (ValueError, KeyError):
        raise HTTPException(400, "the form must have one field 'payload'") from None
    return payload.encode("utf-8", "replace")


def _drop(content: bytes, *, event: str, delivery: str, received_at: datetime) -> bytes:
    """What is written to the inbox for a delivery."""
    try:
        payload = read_checked(content)
    except ItemError as error:
        raise HTTPException(400, f"the payload {error}") from None
    if isinstance(payload, Malformed):
        raise HTTPException(400, f"the payload {payload.reason}")
    if not isinstance(payload, dict):
        raise HTTPException(400, "the payload must be a JSON object")
    drop = {
        "event": event, "delivery": delivery, "received_at": received_at.isoformat(), "payload": storable(payload),
    }  # fmt: skip
    return json.dumps(drop, ensure_ascii=False, separators=(",", ":")).encode()


async def _health(request: Request) -> Response:
    del request
    return JSONResponse({"status": "ok"})


async def _refused(request: Request, error: Exception) -> Response:
    del request
    assert isinstance(error, HTTPException)
    answer = {"status": "refused", "reason": error.detail}
    return JSONResponse(answer, status_code=error.status_code, headers=error.headers)


async def _failed(request: Request, error: Exception) -> Response:
    """What nobody foresaw: the server's log has the traceback, the answer has not."""
    del request, error
    return JSONResponse({"status": "failed"}, status_code=500)
