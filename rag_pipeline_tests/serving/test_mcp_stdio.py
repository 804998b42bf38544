"""The command that agents start: the protocol on standard output and nothing else, with the real model."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from rag_pipeline.embedding import make_embedder
from rag_pipeline.embedding.spaces import config_of
from rag_pipeline.index.database import connected
from rag_pipeline.index.spaces import SpaceVectors, activate, create_space
from rag_pipeline.model import text_hash
from rag_pipeline.settings import Embedding
from rag_pipeline_tests.knowledge import write
from rag_pipeline_tests.serving.agents import MODES, call_over_http, text_of
from rag_pipeline_tests.serving.apps import CORPUS

COMMAND = ("-c", "from rag_pipeline.cli import main; main()", "mcp")
HELLO: dict[str, Any] = {
    "jsonrpc": "2.0", "id": 1, "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}  # fmt: skip
READY: dict[str, Any] = {"jsonrpc": "2.0", "method": "notifications/initialized"}
CALL: dict[str, Any] = {
    "jsonrpc": "2.0", "id": 2, "method": "tools/call",
    "params": {"name": "search_knowledge", "arguments": {"question": "how do I deploy"}},
}  # fmt: skip


def environment(home: Path, url: str | None) -> dict[str, str]:
    """Of the command; it runs where no configuration file is."""
    place = {"RAG_HOME": str(home / "home"), "PYTHONPATH": os.pathsep.join(sys.path)}
    return {name: value for name, value in os.environ.items() if name != "DATABASE_URL"} | place | (
        {"DATABASE_URL": url} if url else {}
    )  # fmt: skip


@pytest.fixture
def indexed(database: str) -> str:
    """A database with `apps.CORPUS` in it, and the vectors of the real model."""
    embedding = Embedding()
    embedder = make_embedder(embedding, environ={})
    with closing(embedder), connected(database) as connection:
        space = create_space(
            connection, provider="local", model=embedder.model, recipe=embedder.recipe, dimensions=384,
            config=config_of(embedding),
        )  # fmt: skip
        write(connection, *CORPUS)
        for tenant in ("acme", "globex"):
            texts = [c.text for e in CORPUS if e.document.tenant == tenant for c in e.chunks]
            vectors = np.stack([embedder.embed_query(text) for text in texts])
            SpaceVectors(connection, space, tenant=tenant).store([text_hash(text) for text in texts], vectors)
        activate(connection, space)
    return database


def running(home: Path, url: str | None, *arguments: str) -> subprocess.Popen[str]:
    """The command, to be spoken with."""
    return subprocess.Popen(
        [sys.executable, *COMMAND, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, cwd=home, env=environment(home, url),
    )  # fmt: skip


def spoken(command: subprocess.Popen[str], *messages: object, until: int) -> tuple[list[Any], str]:
    """Everything it writes to standard output, line by line, and to standard error; it ends with its client.

    Its client leaves when the answer to request `until` has come.
    """
    assert command.stdin is not None
    assert command.stdout is not None
    for message in messages:
        command.stdin.write(f"{message if isinstance(message, str) else json.dumps(message)}\n")
    command.stdin.flush()
    lines = []
    for line in command.stdout:
        lines.append(json.loads(line))
        if lines[-1].get("id") == until:
            break
    rest, said = command.communicate(timeout=60)
    assert command.returncode == 0
    return [*lines, *(json.loads(line) for line in rest.splitlines())], said


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_an_agent_starts_the_command_and_uses_every_tool(indexed, tmp_path, mode):
    parameters = StdioServerParameters(
        command=sys.executable, args=[*COMMAND, "--tenant", "acme", "--scope", "user:ann"], cwd=tmp_path,
        env=environment(tmp_path, indexed),
    )  # fmt: skip

    async def run() -> None:
        async with Client(stdio_client(parameters), mode=mode) as client:
            assert len((await client.list_tools()).tools) == 4
            found = (
                await client.call_tool("search_knowledge", {"question": "who is on call", "k": 1})
            ).structured_content
            (hit,) = found["hits"]
            assert (found["degraded"], hit["source_id"]) == ("", "handbook:oncall.md")
            assert {leg["leg"] for leg in hit["legs"]} == {"lexical", "vector"}
            document = await client.call_tool("get_document", {"document": hit["document_id"]})
            assert "rota of ann" in document.structured_content["text"]
            context = await client.call_tool("get_context", {"question": "how do I deploy the tool"})
            assert "make deploy" in text_of(context)
            listed = await client.call_tool("list_sources", {})
            assert listed.structured_content["sources"][0]["documents"] == 3

    asyncio.run(run())


@pytest.mark.slow
def test_standard_output_holds_the_protocol_alone(indexed, tmp_path):
    command = running(tmp_path, indexed, "--tenant", "acme")
    answers, said = spoken(command, HELLO, "this is no message", READY, CALL, until=2)
    assert all(answer["jsonrpc"] == "2.0" for answer in answers)
    by_id = {answer.get("id"): answer for answer in answers}
    assert by_id[1]["result"]["serverInfo"]["name"] == "rag-pipeline"
    assert by_id[2]["result"]["structuredContent"]["degraded"] == ""
    assert "Traceback" not in said


@pytest.mark.slow
def test_it_starts_without_a_database_and_ends_with_its_client(tmp_path):
    answers, said = spoken(running(tmp_path, None), HELLO, READY, CALL, until=2)
    assert "instructions" in answers[0]["result"]
    assert answers[1]["result"]["isError"] is True
    assert "rag-pipeline up" in answers[1]["result"]["content"][0]["text"]
    assert "Traceback" not in said
    assert not (tmp_path / "home").exists()


@pytest.mark.slow
def test_ctrl_c_ends_it_while_its_client_is_still_there(tmp_path):
    command = running(tmp_path, None)
    assert command.stdin is not None
    assert command.stdout is not None
    command.stdin.write(f"{json.dumps(HELLO)}\n")
    command.stdin.flush()
    assert json.loads(command.stdout.readline())["id"] == 1
    command.send_signal(signal.SIGINT)
    assert command.wait(timeout=30) == -signal.SIGINT
    assert "Traceback" not in command.communicate()[1]


@pytest.mark.slow
def test_it_listens_when_it_is_told_to(indexed, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    command = running(tmp_path, indexed, "--http", "--port", str(port), "--tenant", "acme")
    try:
        assert command.stderr is not None
        assert f"http://127.0.0.1:{port}/mcp" in command.stderr.readline()
        for _ in range(200):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            time.sleep(0.1)
        found = call_over_http(f"http://127.0.0.1:{port}", "search_knowledge", question="how do I deploy", k=1)
        assert found.structured_content["hits"][0]["source_id"] == "handbook:deploy.md"
    finally:
        command.terminate()
        said, _ = command.communicate(timeout=60)
    assert said == ""
