"""Calls in a process of their own, for input that may be hostile: one that takes too long or too much ends alone.

No code that runs in a thread can be stopped from outside, least of all inside a parser written in C.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from importlib.abc import MetaPathFinder
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

    Arguments and results are pickled. For one thread at a time, but for `stop`.
    """

    def __init__(self, *, timeout_s: float, memory_bytes: int) -> None:
        """`timeout_s`: of one call; `memory_bytes`: what the process may hold (enforced on Linux)."""
        self._timeout_s = timeout_s
        self._memory_bytes = memory_bytes
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection | None = None
        self._starting = threading.Lock()
        self._is_stopped = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    @property
    def is_running(self) -> bool:
        """Whether there is a process, so that a call need not start one."""
        return self._process is not None

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

    def stop(self) -> None:
        """From another thread: end the call under way, if there is one, and let none follow; both raise `ItemError`."""
        with self._starting:
            self._is_stopped = True
            if self._process is not None:
                self._process.kill()

    def close(self) -> None:
        """End the process; the next call starts another one."""
        if self._connection is not None:
            self._connection.close()
        with self._starting:
            process, self._process, self._connection = self._process, None, None
        if process is not None:
            process.kill()
            process.wait()

    def _connected(self) -> Connection:
        with self._starting:
            if self._is_stopped:
                raise ItemError("the work that it was part of was ended: run it again")
            if self._connection is None:
                self._process, self._connection = self._started()
            return self._connection

    def _started(self) -> tuple[subprocess.Popen[bytes], Connection]:
        ours, theirs = Pipe()
        command = [sys.executable, "-m", __name__, str(theirs.fileno()), str(self._memory_bytes)]
        # In a group of its own, Ctrl-C at a terminal does not reach it before it can say that it does not want it.
        process = subprocess.Popen(
            command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, process_group=0,
        )  # fmt: skip
        theirs.close()
        return process, ours

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
        try:
            connection.send(answer)
        except OSError:
            return  # whoever asked is gone


def _answer(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[bool, Any]:
    try:
        return True, function(*args, **kwargs)
    except MemoryError:
        return False, "it needs more memory than one document may take: leave it out"
    except ItemError as error:
        return False, str(error)
    except Exception as error:
        return False, f"{type(error).__name__}: {error}"


class _WithoutPandas(MetaPathFinder):
    """Spares a process that works for us the import of pandas.

    The first array that pyarrow makes of a list loads it, where it is installed, to see whether the list is one of its
    own. That takes half a second, more than all else that is loaded there, and nothing that is called there needs it.
    """

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> None:  # its contract
        if fullname == "pandas":
            raise ModuleNotFoundError("pandas is not loaded in processes of ours", name=fullname)


def _main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that calls
    sys.meta_path.insert(0, _WithoutPandas())
    if sys.platform == "linux":
        import resource

        limit = int(sys.argv[2])
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    _serve(Connection(int(sys.argv[1])))


if __name__ == "__main__":
    _main()
