"""What browsers are told with every answer, and by which names the service may be called."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rag_pipeline.serving.errors import error_response, refusal

_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; manifest-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_ALWAYS: Final = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_KEPT_NOWHERE: Final = ("/v1/", "/health", "/metrics", "/webhooks/", "/mcp")


class SecurityHeaders:
    """Nothing is loaded from elsewhere, framed, guessed at, or kept in caches on the way."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """As ASGI has it."""

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(raw=message["headers"])
                for name, value in _ALWAYS.items():
                    headers.setdefault(name, value)
                if scope["path"].startswith(_KEPT_NOWHERE) or message["status"] >= 400:
                    headers.setdefault("Cache-Control", "no-store")
            await send(message)

        await self._app(scope, receive, answer if scope["type"] == "http" else send)


class AllowedHosts:
    """Refuses requests for other names (400), if names are given; those of health checks go by the address."""

    def __init__(self, app: ASGIApp, *, names: Sequence[str]) -> None:
        self._app = app
        self._names = {name.lower() for name in names}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """As ASGI has it."""
        if scope["type"] == "http" and self._names and not scope["path"].startswith("/health"):
            host = Headers(scope=scope).get("host", "").lower()
            name = host if host.endswith("]") else host.rpartition(":")[0] or host
            if name not in self._names:
                answer = error_response(refusal(400, "this service is not called by that name (serving.allowed_hosts)"))
                assert answer is not None
                await answer(scope, receive, send)
                return
        await self._app(scope, receive, send)
