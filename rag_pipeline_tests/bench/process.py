"""Commands run to their end, with the time they took and the most memory they held."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

_MEGABYTE = 1e6


class CommandFailed(Exception):
    """A command under measurement ended with an error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """A command that ended well."""

    stdout: str
    wall_s: float
    cpu_s: float
    peak_mb: float
    """Largest resident set of the process or of one of its children; PostgreSQL's server is not among them."""


def run(
    command: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    watching: Callable[[int], AbstractContextManager[object]] = nullcontext,
) -> Finished:
    """Run a command to its end; while it runs, inside what `watching` makes of its process id.

    Raises:
        CommandFailed: its exit code is not 0; the message has the end of what it said.
    """
    with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        started = time.perf_counter()
        process = subprocess.Popen(
            command, cwd=cwd, env=dict(env), stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr
        )
        with watching(process.pid):
            _, status, usage = os.wait4(process.pid, 0)
            wall_s = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        stdout.seek(0)
        stderr.seek(0)
        said = stdout.read().decode(errors="replace")
        if process.returncode:
            tail = stderr.read().decode(errors="replace")[-4000:]
            raise CommandFailed(f"{' '.join(command)} ended with {process.returncode}:\n{said[-1000:]}{tail}")
    # Linux counts in kilobytes, macOS in bytes.
    unit = 1 if sys.platform == "darwin" else 1024
    return Finished(
        stdout=said, wall_s=wall_s, cpu_s=usage.ru_utime + usage.ru_stime, peak_mb=usage.ru_maxrss * unit / _MEGABYTE
    )
