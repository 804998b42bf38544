"""Work in a child process that can die: forked, so that it starts in milliseconds with all that is imported here.

The child never returns into pytest: it ends by itself or is killed. The detector of secrets is written in Go, whose
threads no fork takes along; a process that has used it cannot be forked any more, so those who fork come first
(`table`).
"""

from __future__ import annotations

import atexit
import faulthandler
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rag_pipeline.defs import plots


@dataclass(kw_only=True)
class Child:
    """A process at work; `said` is what it has printed by now."""

    pid: int
    log: Path
    code: int | None = None
    """Exit status once it has ended; of one that was killed the negative number of the signal."""

    @property
    def said(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")

    def is_running(self) -> bool:
        """Whether it has not ended yet."""
        if self.code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.code = os.waitstatus_to_exitcode(status)
        return self.code is None

    def wait(self, timeout_s: float = 120.0) -> int:
        """Its exit status; one that hangs is killed, and fails the test."""
        until = time.monotonic() + timeout_s
        while self.is_running():
            if time.monotonic() > until:
                # What it is at goes to its log.
                os.kill(self.pid, signal.SIGUSR1)
                time.sleep(0.5)
                self.kill()
                raise AssertionError(f"it did not end within {timeout_s:g} s: {self.said[-4000:]}")
            time.sleep(0.02)
        assert self.code is not None
        return self.code

    def says(self, words: str, timeout_s: float = 120.0) -> None:
        """Wait until it has printed this, or has ended."""
        until = time.monotonic() + timeout_s
        while words not in self.said and self.is_running():
            assert time.monotonic() < until, f"never said {words!r}: {self.said[-4000:]}"
            time.sleep(0.02)

    def kill(self) -> None:
        """As a power cut would."""
        if self.is_running():
            os.kill(self.pid, signal.SIGKILL)
            self.code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def fork(
    work: Callable[[], object], *, log: Path, environ: Mapping[str, str] | None = None, cwd: Path | None = None,
) -> Child:  # fmt: skip
    """Start `work` in a child whose output goes to `log`. It draws no pictures."""
    assert not _has_go(), (
        "this process has looked for secrets, and its children could not: fork before that. "
        "Where no test has run yet, a module of tests looked while it was imported"
    )
    log.touch()
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid:
        return Child(pid=pid, log=log)
    _enter(log, environ, cwd)
    os._exit(_status_of(work))


def _has_go() -> bool:
    """Whether the detector of secrets was loaded into this process."""
    maps = Path("/proc/self/maps")
    return maps.exists() and "betterleaks" in maps.read_text(encoding="utf-8", errors="replace")


def run_command(words: Sequence[str]) -> Callable[[], object]:
    """The command line of ours, as the console script runs it."""

    def work() -> None:
        from rag_pipeline.cli import main

        sys.argv = ["rag-pipeline", *words]
        main()

    return work


def _enter(log: Path, environ: Mapping[str, str] | None, cwd: Path | None) -> None:
    # What pytest and its plugins want done at the end is not for this process.
    atexit._clear()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    file = os.open(log, os.O_WRONLY | os.O_APPEND)
    os.dup2(file, 1)
    os.dup2(file, 2)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    faulthandler.register(signal.SIGUSR1, file=file, all_threads=True)
    sys.stdin, sys.stdout, sys.stderr = (os.fdopen(n, "r" if n == 0 else "w", closefd=False) for n in (0, 1, 2))
    plots._image = lambda title, draw: f"![{title}]()"
    if environ is not None:
        os.environ.clear()
        os.environ.update(environ)
    if cwd is not None:
        os.chdir(cwd)


def _status_of(work: Callable[[], object]) -> int:
    try:
        work()
        status = 0
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else 1
    except BaseException:
        traceback.print_exc()
        status = 1
    try:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        traceback.print_exc()
    return status
