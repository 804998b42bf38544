"""`python -m rag_pipeline_tests.supply_chain.use RECORD`: a use of everything that needs no account, in this folder.

Indexes the repository that is configured, answers a sample question, opens Dagster with its code location and the
search page (`rag-pipeline up`), asks both, then searches and asks on the command line. The record tells the steps.
"""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

_CLI: Final = (sys.executable, "-c", "from rag_pipeline.cli import main; main()")
_PATIENCE_S: Final = 120
_BATCHED_S: Final = 12
"""So long a library may gather what it then sends at once: onnxruntime ten seconds."""
_QUESTION: Final = "How often is a key rotated?"
_LOCATIONS: Final = """{
  repositoriesOrError { ... on RepositoryConnection { nodes { name assetNodes { id } } } }
  workspaceOrError { ... on Workspace { locationEntries { locationOrLoadError { __typename } } } }
}"""


def main() -> None:
    """The steps, one after the other."""
    record = Path(sys.argv[1])
    ui, page = _free_port(), _free_port()
    _step(record, "rag-pipeline up")
    up = subprocess.Popen([*_CLI, "up", "--port", str(ui), "--search-port", str(page)])
    try:
        _step(record, "rag-pipeline up: the search page")
        health = json.loads(_when_it_answers(up, f"http://127.0.0.1:{page}/health"))
        found = json.loads(_get(f"http://127.0.0.1:{page}/v1/search?{urlencode({'q': _QUESTION})}"))
        searched = time.monotonic()
        _step(record, "rag-pipeline up: Dagster's UI")
        located = _located(up, f"http://127.0.0.1:{ui}/graphql")
        _get(f"http://127.0.0.1:{ui}/assets")
        time.sleep(max(0.0, searched + _BATCHED_S - time.monotonic()))
    finally:
        up.send_signal(signal.SIGINT)
        up.wait(timeout=_PATIENCE_S)
    _step(record, "rag-pipeline search")
    hits = json.loads(_output("search", _QUESTION, "--json"))
    _step(record, "rag-pipeline ask")
    answer = json.loads(_output("ask", _QUESTION, "--json"))
    _step(record, "rag-pipeline report")
    _output("report")
    _step(record, "rag-pipeline down")
    _output("down")
    done = {"health": health, "found": found, "located": located, "hits": len(hits), "answer": answer["text"]}
    with record.open("a", encoding="utf-8") as file:
        file.write(json.dumps({"by": "use", "done": done}) + "\n")


def _step(record: Path, name: str) -> None:
    with record.open("a", encoding="utf-8") as file:
        file.write(json.dumps({"by": "use", "step": name}) + "\n")


def _output(*arguments: str) -> str:
    return subprocess.run([*_CLI, *arguments], check=True, stdout=subprocess.PIPE, text=True).stdout


def _located(up: subprocess.Popen[bytes], address: str) -> dict[str, Any]:
    """What the UI shows of the code location, once it has loaded it."""
    deadline = time.monotonic() + _PATIENCE_S
    while time.monotonic() < deadline:
        body = json.dumps({"query": _LOCATIONS}).encode()
        _when_it_answers(up, address.replace("/graphql", "/server_info"))
        data: dict[str, Any] = json.loads(_get(address, body=body))["data"]
        if data["repositoriesOrError"].get("nodes"):
            return data
        time.sleep(0.2)
    raise TimeoutError(f"Dagster's UI shows no code location: {data}")


def _when_it_answers(process: subprocess.Popen[bytes], address: str) -> str:
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        try:
            return _get(address)
        except OSError:
            if process.poll() is not None or time.monotonic() > deadline:
                raise
            time.sleep(0.2)


def _get(address: str, *, body: bytes | None = None) -> str:
    request = urllib.request.Request(address, data=body, headers={"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        text: str = answer.read().decode()
    return text


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


if __name__ == "__main__":
    main()
