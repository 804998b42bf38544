"""llama-cpp-python's OpenAI-compatible server on a free port, in an environment of its own."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

_STARTS_WITHIN_S = 300.0


@contextmanager
def llama_server(environment: Path, weights: Path) -> Iterator[str]:
    """Serves the weights until the block ends; gives the address for `answering.base_url`."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = environment / "server.log"
    command = [
        str(environment / "bin" / "python"), "-m", "llama_cpp.server", "--model", str(weights),
        "--host", "127.0.0.1", "--port", str(port), "--n_ctx", "4096", "--n_threads", str(os.cpu_count() or 1),
    ]  # fmt: skip
    # Another checkout's PYTHONPATH would put our own dependencies before the server's.
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    with log.open("wb") as written, subprocess.Popen(command, stdout=written, stderr=written, env=clean) as process:
        try:
            _wait_until_it_answers(f"http://127.0.0.1:{port}/v1/models", process, log)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.kill()


def _wait_until_it_answers(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + _STARTS_WITHIN_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            if httpx.get(url, timeout=5).status_code == 200:
                return
        except httpx.HTTPError:
            time.sleep(0.2)
    raise RuntimeError(f"the server did not start: {log.read_text(errors='replace')[-2000:]}")
