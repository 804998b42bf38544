"""Dagster's webserver and daemon as children of this process, ended with it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from types import FrameType

from rag_pipeline.cli.console import out
from rag_pipeline.errors import RagPipelineError, UserError

_GRACE_S = 30.0


def serve_ui(*, host: str, port: int) -> None:
    """Run `dagster dev` until it ends or this process is told to stop."""
    home = Path(os.environ["DAGSTER_HOME"])
    shown = "localhost" if host in ("127.0.0.1", "0.0.0.0") else host
    out.print(f"\nDagster UI: [bold]http://{shown}:{port}[/bold]  (Ctrl-C stops it)")
    command = [sys.executable, "-m", "dagster", "dev", "-w", str(home / "workspace.yaml"), "-h", host, "-p", str(port)]
    environ = os.environ | {"PYTHONWARNINGS": "ignore:Function `dev_command` is superseded"}
    for number in (signal.SIGINT, signal.SIGTERM):
        # Also where we were started in the background, where a shell makes us deaf to Ctrl-C.
        signal.signal(number, _stop)
    # A session of its own, so that a Ctrl-C reaches it once, from us, and not twice.
    process = subprocess.Popen([*command, "--log-level", "warning"], cwd=home, env=environ, start_new_session=True)
    try:
        code = process.wait()
    except KeyboardInterrupt:
        _end(process)
        return
    if code:
        raise RagPipelineError(f"Dagster ended with exit code {code}: its own messages above say why")


def _stop(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _end(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGINT)
    try:
        process.wait(timeout=_GRACE_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def require_free_port(host: str, port: int) -> None:
    """Raises UserError when something listens there already."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise UserError(
                f"port {port} on {host} cannot be used ({error.strerror}): "
                "stop what listens there, or choose another with --port"
            ) from error
