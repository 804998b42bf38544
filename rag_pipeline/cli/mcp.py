"""`rag-pipeline mcp`: the index as tools for coding agents."""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Annotated

import typer

from rag_pipeline.cli.session import MAX_PORT, settings_of_process

if TYPE_CHECKING:
    from rag_pipeline.settings import Settings


def mcp(
    http: Annotated[bool, typer.Option("--http", help="Listen for HTTP at /mcp instead of standard input.")] = False,
    host: Annotated[str, typer.Option(help="Address to listen on; others than this machine's need API keys.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(min=1, max=MAX_PORT, help="Port to listen on.")] = 8010,
    tenant: Annotated[str, typer.Option(help="Whose knowledge; by default the configured tenant.")] = "",
    scope: Annotated[list[str] | None, typer.Option(help="Also what this scope may see; repeatable.")] = None,
) -> None:
    """Answer coding agents over the Model Context Protocol: search, documents, context, and what is indexed.

    A client starts this command and speaks with it over standard input and output; with --http it listens instead.
    Tenant and scopes are fixed here; who comes with an API key gets those of the key.
    """
    # Standard output belongs to the protocol.
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    settings = settings_of_process()
    if tenant:
        settings = settings.model_copy(update={"tenant": tenant})
    if http:
        _listen(settings, host=host, port=port, scopes=scope or ())
    else:
        _converse(settings, scopes=scope or ())


def _converse(settings: Settings, *, scopes: Sequence[str]) -> None:
    import anyio

    from rag_pipeline.retrieval.knowledge import Knowledge
    from rag_pipeline.serving.caller import Caller
    from rag_pipeline.serving.mcp_server import KnowledgeServer, serve_stdio

    # Ctrl-C ends it at once: Python would wait for the thread that reads, which reads until the client closes its end.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    caller = Caller(tenant=settings.tenant, role="read", scopes=tuple(scopes))
    timeout_s = settings.serving.request_timeout_s
    with closing(Knowledge(settings, environ=os.environ, timeout_s=timeout_s)) as knowledge:
        server = KnowledgeServer(
            knowledge, caller_of=lambda _: caller, timeout_s=timeout_s, at_once=settings.serving.max_concurrent
        )
        anyio.run(serve_stdio, server)


def _listen(settings: Settings, *, host: str, port: int, scopes: Sequence[str]) -> None:
    from rag_pipeline.cli.console import err
    from rag_pipeline.cli.dagster_ui import require_free_port
    from rag_pipeline.serving.mcp_http import PATH, serve_mcp

    if ":" not in host:
        require_free_port(host, port)
    shown = f"[{host}]" if ":" in host else host
    err.print(f"MCP at http://{shown}:{port}{PATH} (Ctrl-C stops it)", markup=False)
    serve_mcp(settings, environ=os.environ, host=host, port=port, scopes=scopes)
