"""An agent that uses the tools, with the SDK's own client."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import httpx2
import mcp_types as types
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from rag_pipeline.retrieval.knowledge import Knowledge
from rag_pipeline.serving.caller import Caller
from rag_pipeline.serving.mcp_server import KnowledgeServer
from rag_pipeline.settings import Settings
from rag_pipeline_tests.end_to_end.installation import WordEmbedder

R = TypeVar("R")
MODES = ("auto", "legacy")
"""Of the protocol: each request for itself, and the handshake of older clients."""


def knowledge_of(url: str | None, home: Path, **options: Any) -> Knowledge:
    """The index in a database, with the model of `apps.index`."""
    settings = Settings(home=home, tenant="acme", database_url=url)
    return Knowledge(settings, environ={}, make=lambda *_, **__: WordEmbedder(), **options)


def tools(
    knowledge: Knowledge, *, tenant: str = "acme", scopes: tuple[str, ...] = (), timeout_s: float = 30.0
) -> KnowledgeServer:
    """The tools for one tenant."""
    caller = Caller(tenant=tenant, role="read", scopes=scopes)
    return KnowledgeServer(knowledge, caller_of=lambda _: caller, timeout_s=timeout_s, at_once=4)


def with_client(transport: Any, work: Callable[[Client], Coroutine[Any, Any, R]], *, mode: str = "auto") -> R:
    """What `work` returns with a client that speaks over this transport, or with this server in memory."""

    async def run() -> R:
        async with Client(transport, mode=mode) as client:
            return await work(client)

    return asyncio.run(run())


def call(server: KnowledgeServer, name: str, *, mode: str = "auto", **arguments: Any) -> types.CallToolResult:
    """The result of one tool, in memory; the client checks it against the schema that the tool was listed with."""

    async def work(client: Client) -> types.CallToolResult:
        await client.list_tools()
        return await client.call_tool(name, arguments)

    return with_client(server.server, work, mode=mode)


def call_over_http(
    address: str, name: str, *, mode: str = "auto", headers: dict[str, str] | None = None, **arguments: Any
) -> types.CallToolResult:
    """The same over HTTP."""

    async def run() -> types.CallToolResult:
        async with (
            httpx2.AsyncClient(headers=headers, trust_env=False) as http,
            Client(streamable_http_client(f"{address}/mcp", http_client=http), mode=mode) as client,
        ):
            return await client.call_tool(name, arguments)

    return asyncio.run(run())


def text_of(result: types.CallToolResult) -> str:
    """What a model reads."""
    (content,) = result.content
    assert isinstance(content, types.TextContent)
    return content.text
