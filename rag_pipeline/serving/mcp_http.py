"""The tools for agents over streamable HTTP: who may come in, and from which pages.

Without a key only those on this machine, and only while the server listens on a loopback address; a page of another
site cannot use the browser of somebody here, because Host and Origin are checked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any, Final

import anyio.to_thread
import uvicorn
from mcp.server.context import ServerRequestContext
from mcp.server.transport_security import TransportSecuritySettings
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from rag_pipeline.retrieval.knowledge import Knowledge
from rag_pipeline.serving.bodies import READ_TIMEOUT_S, BodyLimit
from rag_pipeline.serving.caller import Caller
from rag_pipeline.serving.compose import services_of
from rag_pipeline.serving.depends import credentials_of
from rag_pipeline.serving.errors import error_response
from rag_pipeline.serving.gate import Credentials
from rag_pipeline.serving.mcp_server import KnowledgeServer
from rag_pipeline.serving.rates import Allowance
from rag_pipeline.serving.server import is_loopback, server_config
from rag_pipeline.settings import Serving, Settings

PATH: Final = "/mcp"
_CALLER: Final = "rag_pipeline.caller"
_LOCAL_NAMES: Final = ("localhost", "127.0.0.1", "[::1]")

Admit = Callable[[Credentials], tuple[Caller, Allowance]]
"""Tells who shows these credentials; raises an HTTPException for those who may not come in. See `Gate.admit`."""


def mcp_app(
    knowledge: Knowledge, serving: Serving, *, admit: Admit, host: str, scopes: Sequence[str] = ()
) -> ASGIApp:  # fmt: skip
    """The application with the tools at `/mcp`, for a server that listens on `host`.

    `scopes`: of those who come without a key; who has one asks in the name of the scopes of the key.
    """
    tools = KnowledgeServer(
        knowledge, caller_of=_caller_of(scopes), timeout_s=serving.request_timeout_s, at_once=serving.max_concurrent
    )
    # Each request stands for itself, with its own key: there is no session that somebody else could take over.
    app = tools.server.streamable_http_app(
        streamable_http_path=PATH, stateless_http=True, json_response=True, host=host,
        max_request_body_size=serving.max_body_bytes, transport_security=_security(serving, host),
    )  # fmt: skip
    bounded = BodyLimit(
        app, max_bytes=serving.max_body_bytes, read_timeout_s=READ_TIMEOUT_S, is_exempt=lambda path: False
    )
    return _Admission(bounded, admit, cors_origins=serving.cors_origins)


def serve_mcp(
    settings: Settings, *, environ: Mapping[str, str], host: str, port: int, scopes: Sequence[str] = ()
) -> None:  # fmt: skip
    """Answer until this process is told to stop; those that have begun are finished first.

    Raises:
        ConfigError: a model cannot be made as it is configured.
        DatabaseUnavailable: the embedded server does not start.
    """
    with services_of(settings, environ, is_local=is_loopback(host)) as services:
        knowledge = Knowledge(settings, environ=environ, connect=services.reads.connection)
        with closing(knowledge):
            app = mcp_app(knowledge, settings.serving, admit=services.gate.admit, host=host, scopes=scopes)
            uvicorn.Server(server_config(app, host=host, port=port, log_config=None)).run()


class _Admission:
    """Lets nobody through of whom it is not known who they are."""

    def __init__(self, app: ASGIApp, admit: Admit, *, cors_origins: Sequence[str]) -> None:
        self._app = app
        self._admit = admit
        self._cors_origins = cors_origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        shown = credentials_of(Request(scope), cors_origins=self._cors_origins)
        try:
            caller, _ = await anyio.to_thread.run_sync(self._admit, shown)
        except Exception as error:
            answer = error_response(error)
            if answer is None:
                raise
            await answer(scope, receive, send)
            return
        await self._app({**scope, _CALLER: caller}, receive, send)


def _caller_of(scopes: Sequence[str]) -> Callable[[ServerRequestContext[Any, Any]], Caller]:
    def caller_of(context: ServerRequestContext[Any, Any]) -> Caller:
        request = context.request
        assert isinstance(request, Request)
        caller: Caller = request.scope[_CALLER]
        # A key for many scopes (`user:*`) names none of them.
        own = scopes if caller.key_id is None else [scope for scope in caller.scopes if not scope.endswith("*")]
        return replace(caller, scopes=tuple(own))

    return caller_of


def _security(serving: Serving, host: str) -> TransportSecuritySettings:
    """Which Host and Origin headers are taken; any host, where everybody needs a key and none is configured."""
    local = is_loopback(host)
    names = [*serving.allowed_hosts, *(_LOCAL_NAMES if local else ())]
    origins = [f"http://{name}" for name in _LOCAL_NAMES] if local else []
    return TransportSecuritySettings(
        enable_dns_rebinding_protection=bool(names),
        allowed_hosts=[form for name in names for form in (name, f"{name}:*")],
        allowed_origins=[*(form for origin in origins for form in (origin, f"{origin}:*")), *serving.cors_origins],
    )
