"""Dagster's webserver and daemon, and the search page beside them, as children of this process, ended with it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import FrameType

from rag_pipeline.cli.console import err, out
from rag_pipeline.errors import RagPipelineError, UserError

_GRACE_S = 30.0
# By its own name, so that it is the same program whatever started this one.
_SERVE = [sys.executable, "-c", "from rag_pipeline.cli import main; main()", "serve", "--quiet"]

Process = subprocess.Popen[bytes]


def serve_ui(*, host: str, port: int, search_port: int) -> None:
    """Run `dagster dev`, and the search page beside it, until Dagster ends or this process is told to stop.

    The page is an extra: where its port is taken, or its process ends, that is said, and Dagster goes on. With
    `search_port` 0 there is none. The settings are in the environment by now (`enter_dagster`), which both inherit.
    """
    home = Path(os.environ["DAGSTER_HOME"])
    has_page = search_port != 0 and _is_free_for_page(host, search_port, beside=port)
    shown = "localhost" if host in ("127.0.0.1", "0.0.0.0") else host
    out.print(f"\nDagster UI:  [bold]http://{shown}:{port}[/bold]" + ("" if has_page else "  (Ctrl-C stops it)"))
    if has_page:
        out.print(f"Search page: [bold]http://{shown}:{search_port}[/bold]  (Ctrl-C stops both)")
    command = [sys.executable, "-m", "dagster", "dev", "-w", str(home / "workspace.yaml"), "-h", host, "-p", str(port)]
    environ = os.environ | {"PYTHONWARNINGS": "ignore:Function `dev_command` is superseded"}
    for number in (signal.SIGINT, signal.SIGTERM):
        # Also where we were started in the background, where a shell makes us deaf to Ctrl-C.
        signal.signal(number, _stop)
    children: list[Process] = []
    ending = threading.Event()
    try:
        # Sessions of their own, so that a Ctrl-C reaches each once, from us, and not twice.
        dagster = subprocess.Popen([*command, "--log-level", "info"], cwd=home, env=environ, start_new_session=True)
        children.append(dagster)
        if has_page:
            page = subprocess.Popen([*_SERVE, "--host", host, "--port", str(search_port)], start_new_session=True)
            children.append(page)
            threading.Thread(target=_tell_when_it_ends, args=(page, ending), daemon=True).start()
        code = dagster.wait()
    except KeyboardInterrupt:
        return
    finally:
        ending.set()
        _end(children)
    if code:
        raise RagPipelineError(f"Dagster ended with exit code {code}: its own messages above say why")


def _is_free_for_page(host: str, port: int, *, beside: int) -> bool:
    reason = f"{beside} is Dagster's" if port == beside else _why_not_free(host, port)
    if reason:
        err.print(
            f"\nno search page: port {port} on {host} cannot be used ({reason}); choose another with --search-port",
            markup=False,
        )  # fmt: skip
    return not reason


def _tell_when_it_ends(page: Process, ending: threading.Event) -> None:
    code = page.wait()
    if not ending.is_set():
        err.print(f"the search page ended (exit code {code}): its own messages above say why; Dagster goes on")


def _stop(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _end(children: list[Process]) -> None:
    deadline = time.monotonic() + _GRACE_S
    running = [process for process in children if process.poll() is None]
    for process in running:
        process.send_signal(signal.SIGINT)
    for process in running:
        try:
            process.wait(timeout=max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def require_free_port(host: str, port: int) -> None:
    """Raises UserError when something listens there already."""
    if reason := _why_not_free(host, port):
        raise UserError(
            f"port {port} on {host} cannot be used ({reason}): stop what listens there, or choose another with --port"
        )


def _why_not_free(host: str, port: int) -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            return error.strerror or str(error)
    return ""
