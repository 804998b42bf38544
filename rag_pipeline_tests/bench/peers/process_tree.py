"""A command and all that it starts: its time, the most memory they held together, and killing all of it."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

import psutil

from rag_pipeline_tests.bench.process import Finished, run

_EVERY_S: Final = 0.05


def run_tree(command: Sequence[str], *, cwd: Path, env: Mapping[str, str]) -> Finished:
    """Run a command to its end.

    Its `peak_mb` is the largest sum of the resident sets of the process and all below it, looked at 20 times a second.

    Raises:
        CommandFailed: its exit code is not 0; the message has the end of what it said.
    """
    watch = _Watch()
    done = run(command, cwd=cwd, env=env, watching=watch.over)
    return replace(done, peak_mb=watch.peak_mb)


def kill_after(seconds: float, command: Sequence[str], *, cwd: Path, env: Mapping[str, str]) -> bool:
    """Start a command and kill it with all that it started; False when it had ended by then."""
    process = subprocess.Popen(
        command, cwd=cwd, env=dict(env), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return True
    return False


class _Watch:
    """Looks at a process tree from a thread of its own."""

    def __init__(self) -> None:
        self.peak_mb = 0.0

    @contextmanager
    def over(self, pid: int) -> Iterator[None]:
        """Look, until the block is left."""
        ended = threading.Event()
        thread = threading.Thread(target=self._look, args=(pid, ended), daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def _look(self, pid: int, ended: threading.Event) -> None:
        while not ended.wait(_EVERY_S):
            self.peak_mb = max(self.peak_mb, _resident(pid) / 1e6)


def _resident(pid: int) -> int:
    total = 0
    try:
        root = psutil.Process(pid)
        tree = [root, *root.children(recursive=True)]
    except psutil.Error:
        return 0
    for process in tree:
        try:
            # The server is everyone's; the embedded one may have been started by the command.
            if process.name().startswith("postgres"):
                continue
            total += process.memory_info().rss
        except psutil.Error:
            continue
    return total
