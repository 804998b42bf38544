"""Calls in a process of their own, for input that may be hostile: one that takes too long or too much ends alone.

No code that runs in a thread can be stopped from outside, least of all inside a parser written in C.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any, Final, ParamSpec, Self, TypeVar

from rag_pipeline.errors import ItemError

SMALL_CHARS: Final = 100_000
"""Of input up to this length every call is quick, so that it need not leave this process."""
_GRACE_S: Final = 5.0

P = ParamSpec("P")
R = TypeVar("R")


class Isolated:
    """Functions of a module, called in a second process that is started on first use and again after each failure.

    Arguments and results are pickled. Not for use by several threads.
    """

    def __init__(self, *, timeout_s: float, memory_bytes: int) -> None:
        """`timeout_s`: of one call; `memory_bytes`: what the process may hold (enforced on Linux)."""
        self._timeout_s = timeout_s
        self._memory_bytes = memory_bytes
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    def call(self, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """What the function returns.

        Raises:
            ItemError: what it raised, or that it took too long, or too much memory, or ended the process.
        """
        connection = self._connected()
        try:
            connection.send((function, args, kwargs, self._timeout_s))
            # The process has set itself an alarm; only if even that is lost is it ended from here.
            if not connection.poll(self._timeout_s + _GRACE_S):
                raise EOFError
            succeeded, value = connection.recv()
        except (EOFError, OSError):
            raise ItemError(self._ended()) from None
        except BaseException:
            self.close()  # an answer may still be under way: it must not be taken for that of the next call
            raise
        if not succeeded:
            raise ItemError(value)
        return value  # type: ignore[no-any-return]  # pickled over there as what the function returned

    def close(self) -> None:
        """End the process; the next call starts another one."""
        if self._connection is not None:
            self._connection.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._process = self._connection = None

    def _connected(self) -> Connection:
        if self._connection is None:
            ours, theirs = Pipe()
            command = [sys.executable, "-m", __name__, str(theirs.fileno()), str(self._memory_bytes)]
            self._process = subprocess.Popen(command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL)
            theirs.close()
            self._connection = ours
        return self._connection

    def _ended(self) -> str:
        """Why there is no answer; the process is gone afterwards."""
        process = self._process
        try:
            status = process.wait(timeout=1) if process else None
        except subprocess.TimeoutExpired:
            status = None
        self.close()
        if status is None or status == -signal.SIGALRM:
            return f"it took longer than {self._timeout_s:g} s: leave it out, or raise documents.timeout_s"
        return f"it ended the process that read it (exit status {status}), probably for want of memory: leave it out"


def _serve(connection: Connection) -> None:
    """Answer calls until the other side closes the connection."""
    while True:
        try:
            function, args, kwargs, timeout_s = connection.recv()
        except EOFError:
            return
        # The default action of this signal ends the process, whatever code it is in, and whoever still waits for it.
        signal.setitimer(signal.ITIMER_REAL, timeout_s)
        answer = _answer(function, args, kwargs)
        signal.setitimer(signal.ITIMER_REAL, 0)
        connection.send(answer)


def _answer(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[bool, Any]:
    try:
        return True, function(*args, **kwargs)
    except MemoryError:
        return False, "it needs more memory than one document may take: leave it out"
    except ItemError as error:
        return False, str(error)
    except Exception as error:
        return False, f"{type(error).__name__}: {error}"


def _main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that calls
    if sys.platform == "linux":
        import resource

        limit = int(sys.argv[2])
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    _serve(Connection(int(sys.argv[1])))


if __name__ == "__main__":
    _main()
