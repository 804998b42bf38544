"""One line for each request, and an id that ties it to everything else that is logged on its way.

A line says who asked for which route and how that went. What was asked, keys, and addresses with ids in them are not
in it.
"""

from __future__ import annotations

import logging
import re
import secrets
import time
from contextvars import ContextVar
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rag_pipeline.serving.errors import unexpected

_log = logging.getLogger(__name__)
_SANE_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)
_GONE: Final = 499  # as nginx has it: whoever asked did not wait for the answer

request_id: ContextVar[str] = ContextVar("request_id", default="")
"""Of the request that is being answered."""


class RequestLog:
    """The outer part of the application: gives each request an id, and logs its end; a crash is answered with 500."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """As ASGI has it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        sent = Headers(scope=scope).get("x-request-id", "")
        identity = sent if _SANE_ID.fullmatch(sent) else secrets.token_hex(8)
        request_id.set(identity)
        state = scope.setdefault("state", {})
        started, status = time.perf_counter(), 0

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(raw=message["headers"])
                headers["X-Request-ID"] = identity
                if "allowance" in state:
                    headers.update(state["allowance"].headers())
            await send(message)

        try:
            await self._app(scope, receive, answer)
        except Exception as error:
            _log.error("unexpected", extra={"fields": {"error": told(error)}})
            if status:
                raise  # half an answer cannot be taken back; the connection ends
            await unexpected(identity)(scope, receive, answer)
        finally:
            _log.info("request", extra={"fields": _line(scope, status, time.perf_counter() - started)})


def told(error: BaseException) -> str:
    """Which errors, and where; not what they say, for that may be what somebody asked or a text of the index."""
    lines: list[str] = []
    cause: BaseException | None = error
    while cause is not None and len(lines) < 100:
        lines.append(f"{type(cause).__module__}.{type(cause).__qualname__}")
        trace = cause.__traceback__
        while trace is not None:
            code = trace.tb_frame.f_code
            lines.append(f"  {code.co_filename}:{trace.tb_lineno} {code.co_name}")
            trace = trace.tb_next
        cause = cause.__cause__ or cause.__context__
    return "\n".join(lines)


def _line(scope: Scope, status: int, seconds: float) -> dict[str, object]:
    caller = scope.get("state", {}).get("caller")
    route = scope.get("route")
    return {
        "method": scope["method"][:20], "route": getattr(route, "path", "") or "", "status": status or _GONE,
        "ms": round(1_000 * seconds, 1), "tenant": caller.tenant if caller else None,
        "key_id": caller.key_id if caller else None,
    }  # fmt: skip
